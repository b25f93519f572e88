//! A name of the engine denotes one type.

use std::collections::BTreeMap;
use std::path::Path;

/// Adds the types that `text` defines outside functions and `impl` blocks: `(name, file:line)`.
fn types_of(file: &str, text: &str, into: &mut BTreeMap<String, Vec<String>>) {
    let mut tests = false;
    for (i, line) in text.lines().enumerate() {
        // The tests of a file are at its end, and their helpers are local to them.
        tests |= line == "#[cfg(test)]";
        let indent = line.len() - line.trim_start().len();
        let mut words = line.split_whitespace().filter(|w| !w.starts_with("pub"));
        let (Some(keyword), Some(name)) = (words.next(), words.next()) else { continue };
        let is_type =
            matches!(keyword, "struct" | "enum" | "trait" | "union") && indent <= 8 || keyword == "type" && indent == 0;
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if is_type && !tests && name.starts_with(char::is_uppercase) && !LOCAL.contains(&name.as_str()) {
            into.entry(name).or_default().push(format!("{file}:{}", i + 1));
        }
    }
}

/// Visitors of deserializers, each of which is a type of one function.
const LOCAL: &[&str] = &["V"];

fn walk(dir: &Path, root: &Path, into: &mut BTreeMap<String, Vec<String>>) {
    for entry in std::fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, root, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let file = path.strip_prefix(root).expect("below the root").display().to_string();
            let of_tests = ["tests", "testing"]
                .iter()
                .any(|name| path.file_stem().is_some_and(|f| f.to_string_lossy().ends_with(name)));
            if !of_tests && !file.contains("/tests/") {
                types_of(&file, &std::fs::read_to_string(&path).expect("a source"), into);
            }
        }
    }
}

#[test]
fn type_names_are_unique_within_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut types = BTreeMap::new();
    walk(&root, &root, &mut types);
    assert!(types.contains_key("Memory") && types.contains_key("Scenario"), "the sources were not read");
    let twice: Vec<_> = types.iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(twice.is_empty(), "name these types by their room: {twice:#?}");
}

#[test]
fn a_name_that_stands_for_two_types_is_found() {
    let mut types = BTreeMap::new();
    types_of("a.rs", "pub struct Slot {\n}\n", &mut types);
    types_of("b.rs", "    pub(super) enum Slot<T> {\nimpl X for Y {\n    type Slot = u8;\n}\n", &mut types);
    types_of("c.rs", "#[cfg(test)]\nmod tests {\n    struct Slot;\n", &mut types);
    assert_eq!(types["Slot"], ["a.rs:1", "b.rs:1"]);
}
