//! A module of the engine imports only from modules above it in the table of docs/develop/architecture.md.
//!
//! The test reads the sources as tokens, so comments and strings do not count as imports, and the bodies of macros,
//! `$crate` and unit tests count like all other code.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../docs/develop/architecture.md");

/// The modules of the table under "Layers", from the lowest to the highest.
fn order(page: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|s| s.starts_with("Layers\n")).expect("a section on layers");
    let rows = section.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_string()).collect()
}

/// The tokens of a file, with the module to which the file belongs.
struct Source {
    /// The directory of the file, which `#[path]` counts from.
    dir: PathBuf,
    /// The paths of all items that the file names from the crate's root.
    named: BTreeSet<Vec<String>>,
    /// Files that belong to a module of another name.
    elsewhere: BTreeMap<PathBuf, Vec<String>>,
}

impl Source {
    /// Reads `tokens`, which belong to the module with this path.
    fn read(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (i, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Ident(word) if word == "crate" => self.path(&tokens[i + 1..], Vec::new()),
                TokenTree::Ident(word) if word == "super" && !follows_path(&tokens[..i]) => {
                    let (mut up, mut rest) = (1, &tokens[i + 1..]);
                    while let Some(after) = behind_colons(rest).filter(|r| is_word(r.first(), "super")) {
                        (up, rest) = (up + 1, &after[1..]);
                    }
                    self.path(rest, module[..module.len().saturating_sub(up)].to_vec());
                }
                TokenTree::Group(group) => {
                    let inner = match (&tokens[..i], group.delimiter()) {
                        ([.., TokenTree::Ident(word), TokenTree::Ident(name)], Delimiter::Brace) if word == "mod" => {
                            [module, &[name.to_string()]].concat()
                        }
                        _ => module.to_vec(),
                    };
                    self.note_file(group.stream(), &tokens[i + 1..], module);
                    self.read(group.stream(), &inner);
                }
                _ => {}
            }
        }
    }

    /// Records the item, or the group of items, that `rest` names after `prefix`.
    fn path(&mut self, rest: &[TokenTree], prefix: Vec<String>) {
        match behind_colons(rest) {
            Some([TokenTree::Ident(name), ..]) => {
                self.named.insert([prefix, vec![name.to_string()]].concat());
            }
            Some([TokenTree::Group(group), ..]) => {
                let items: Vec<TokenTree> = group.stream().into_iter().collect();
                for item in items.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
                    if let Some(TokenTree::Ident(name)) = item.first() {
                        self.named.insert([prefix.clone(), vec![name.to_string()]].concat());
                    }
                }
            }
            _ => {}
        }
    }

    /// Records the file to which `#[path = "file"] mod name;` refers; `attribute` is the content of the brackets.
    fn note_file(&mut self, attribute: TokenStream, rest: &[TokenTree], module: &[String]) {
        let attribute: Vec<TokenTree> = attribute.into_iter().collect();
        let ([key, _, TokenTree::Literal(file)], [word, TokenTree::Ident(name), ..]) = (&attribute[..], rest) else {
            return;
        };
        if is_word(Some(key), "path") && is_word(Some(word), "mod") {
            let file = self.dir.join(file.to_string().trim_matches('"'));
            self.elsewhere.insert(file, [module, &[name.to_string()]].concat());
        }
    }
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(name)) if name == word)
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == ':')
}

/// The tokens that follow `::`, if the tokens begin with `::`.
fn behind_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [a, b, rest @ ..] if is_colon(a) && is_colon(b) => Some(rest),
        _ => None,
    }
}

/// Whether the next token is a later part of a path.
fn follows_path(before: &[TokenTree]) -> bool {
    matches!(before, [.., a, b] if is_colon(a) && is_colon(b))
}

/// The items that the text of a file in module `module` names from the crate's root.
fn named(text: &str, module: &[&str]) -> BTreeSet<String> {
    let module: Vec<String> = module.iter().map(|m| (*m).to_string()).collect();
    let mut source = Source { dir: PathBuf::new(), named: BTreeSet::new(), elsewhere: BTreeMap::new() };
    source.read(text.parse().expect("Rust"), &module);
    source.named.iter().map(|path| path.join("::")).collect()
}

fn files_below(dir: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// The path of the module that a file of `src` holds.
fn module_of(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let parts: Vec<String> = parts.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    parts.into_iter().filter(|p| p != "mod" && p != "lib").collect()
}

/// The modules that each top-level module imports from, with the files that do.
fn imports(src: &Path) -> BTreeMap<(String, String), BTreeSet<PathBuf>> {
    let mut files = Vec::new();
    files_below(src, &mut files);
    let read = |file: &Path, elsewhere: &BTreeMap<PathBuf, Vec<String>>| {
        let at = file.strip_prefix(src).expect("below src");
        let module = elsewhere.get(file).cloned().unwrap_or_else(|| module_of(at));
        let dir = file.parent().expect("a directory").to_path_buf();
        let mut source = Source { dir, named: BTreeSet::new(), elsewhere: BTreeMap::new() };
        source.read(fs::read_to_string(file).expect("a source").parse().expect("Rust"), &module);
        (module, source)
    };
    let elsewhere = files.iter().flat_map(|f| read(f, &BTreeMap::new()).1.elsewhere).collect();
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for file in &files {
        let (module, source) = read(file, &elsewhere);
        let Some(from) = module.first() else { continue };
        for path in source.named.iter().filter(|p| p[0] != *from) {
            all.entry((from.clone(), path[0].clone())).or_default().insert(file.clone());
        }
    }
    all
}

#[test]
fn modules_import_only_from_modules_above_them_in_the_table() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let order = order(PAGE);
    let place = |module: &str| order.iter().position(|m| m == module);
    let imports = imports(&src);
    assert!(imports.len() > 40, "the sources import each other: {imports:?}");
    let upwards = imports.iter().filter(|((from, to), _)| place(to).is_some() && place(from) < place(to));
    let upwards: Vec<String> = upwards.map(|((from, to), files)| format!("{from} imports {to}: {files:?}")).collect();
    assert!(upwards.is_empty(), "against the order of docs/develop/architecture.md:\n{}", upwards.join("\n"));
}

#[test]
fn the_table_and_lib_rs_list_every_module_in_one_order() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let order = order(PAGE);
    let in_lib = fs::read_to_string(src.join("lib.rs")).expect("lib.rs");
    let in_lib: Vec<&str> = in_lib.lines().filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(in_lib, order);
    let mut present: Vec<_> =
        fs::read_dir(&src).expect("sources").map(|e| module_of(Path::new(&e.unwrap().file_name()))).collect();
    present.retain(|m| !m.is_empty());
    let listed: BTreeSet<_> = order.iter().map(|m| vec![m.clone()]).collect();
    assert_eq!(present.into_iter().collect::<BTreeSet<_>>(), listed);
}

#[test]
fn imports_are_seen_in_every_form_and_comments_are_not() {
    let seen = |text: &str| named(text, &["memory", "array"]).into_iter().collect::<Vec<_>>();
    assert_eq!(seen("use crate::stack::qp;"), ["stack"]);
    assert_eq!(seen("use crate::{flow::Domain, stack, kernel::{Time, Clock}};"), ["flow", "kernel", "stack"]);
    assert_eq!(seen("#[cfg(test)] mod tests { fn f() { crate::host::run(); } }"), ["host"]);
    assert_eq!(seen("macro_rules! m { () => { $crate::config::resolve() } }"), ["config"]);
    assert_eq!(seen("lists! { /// A leaf.\n mod leaf => Leaf(crate::app::Leaf), }"), ["app"]);
    assert_eq!(seen("use super::super::stack;"), ["stack"]);
    assert_eq!(seen("mod tests { use super::super::super::{host, stack::Thread}; }"), ["host", "stack"]);
    assert_eq!(seen("mod tests { use super::super::Txn; use super::Array; }"), ["memory::Txn", "memory::array::Array"]);
    assert_eq!(seen("// use crate::stack;\n/// [`crate::app::App`]\nconst S: &str = \"crate::host\";"), [""; 0]);
}
