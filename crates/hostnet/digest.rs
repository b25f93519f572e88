//! Digest of what the compiler sees of a tree of Rust sources: tokens, without comments, documentation and tests.
//!
//! `build.rs` makes the engine's version from it, so that a cached result outlives a corrected comment and never a
//! changed constant.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The digest of the sources below each of `roots` as a 64-bit FNV-1a hash.
///
/// # Panics
/// When a file cannot be read or is no Rust source; the message names the file.
pub fn of_sources(roots: &[&Path]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let all = roots.iter().flat_map(|root| compiled_sources(root).into_iter().map(move |source| (root, source)));
    for (root, (file, words)) in all {
        let name = file.strip_prefix(root).expect("files lie below the root").to_string_lossy().replace('\\', "/");
        for byte in name.bytes().chain([0]).chain(words.join("\u{1f}").bytes()).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

/// The files below `root` that reach the compiled crate, with their tokens; a file that is no Rust source is one token.
///
/// # Panics
/// When a file cannot be read or is no Rust source; the message names the file.
pub fn compiled_sources(root: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();
    let mut tests = BTreeSet::new();
    let mut sources = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        if file.extension().is_some_and(|e| e == "rs") {
            let tokens = TokenStream::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
            let mut kept = Vec::new();
            compiled(tokens, &mut kept, &mut |module| {
                tests.insert(module_file(&file, module));
            });
            sources.push((file, kept));
        } else {
            sources.push((file, vec![text])); // such as a table that the sources include
        }
    }
    let is_test = |file: &Path| tests.iter().any(|t| file.starts_with(t.with_extension("")) || file == t);
    sources.retain(|(file, _)| !is_test(file));
    sources
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|why| panic!("{}: {why}", dir.display())).flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// A module that only tests have and whose source is a file of its own.
struct TestModule {
    name: String,
    path: Option<String>,
}

/// The file of a module that `file` declares.
fn module_file(file: &Path, module: &TestModule) -> PathBuf {
    let beside = file.parent().expect("a file is in a directory");
    if let Some(path) = &module.path {
        return beside.join(path);
    }
    let stem = file.file_stem().expect("a file has a name").to_string_lossy();
    let inside = if matches!(&*stem, "mod" | "lib" | "main") { beside.to_path_buf() } else { beside.join(&*stem) };
    inside.join(format!("{}.rs", module.name))
}

/// Appends the tokens of `stream` that decide what is compiled; tells `found` of every module that only tests have.
fn compiled(stream: TokenStream, kept: &mut Vec<String>, found: &mut dyn FnMut(&TestModule)) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match attribute(&tokens, at) {
            Some((end, text)) if text.starts_with("doc ") || text == "doc" => at = end,
            Some((end, text)) if text == "cfg (test)" => at = skip_item(&tokens, end, found),
            _ => {
                match &tokens[at] {
                    TokenTree::Group(g) => {
                        let (open, close) = match g.delimiter() {
                            Delimiter::Parenthesis => ("(", ")"),
                            Delimiter::Brace => ("{", "}"),
                            Delimiter::Bracket => ("[", "]"),
                            Delimiter::None => ("", ""),
                        };
                        kept.push(open.into());
                        compiled(g.stream(), kept, found);
                        kept.push(close.into());
                    }
                    token => kept.push(token.to_string()),
                }
                at += 1;
            }
        }
    }
}

/// The attribute that begins at `at`, if one does: where it ends, and its words.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(usize, String)> {
    let is = |n: usize, c: char| matches!(tokens.get(n), Some(TokenTree::Punct(p)) if p.as_char() == c);
    if !is(at, '#') {
        return None;
    }
    let group = if is(at + 1, '!') { at + 2 } else { at + 1 };
    match tokens.get(group)? {
        TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket => Some((group + 1, g.stream().to_string())),
        _ => None,
    }
}

/// Where the item, statement or field ends that begins at `at`.
fn skip_item(tokens: &[TokenTree], mut at: usize, found: &mut dyn FnMut(&TestModule)) -> usize {
    let mut path = None;
    while let Some((end, text)) = attribute(tokens, at) {
        if let Some(quoted) = text.strip_prefix("path = ") {
            path = Some(quoted.trim_matches('"').to_string());
        }
        at = end;
    }
    let mut name = None;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Ident(word) if word == "mod" => name = tokens.get(at).map(ToString::to_string),
            TokenTree::Group(g) if g.delimiter() == Delimiter::Brace => return at,
            TokenTree::Punct(p) if p.as_char() == ',' => return at,
            TokenTree::Punct(p) if p.as_char() == ';' => {
                if let Some(name) = name {
                    found(&TestModule { name, path });
                }
                return at;
            }
            _ => {}
        }
    }
    at
}
