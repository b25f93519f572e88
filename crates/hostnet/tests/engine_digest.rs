//! The engine's digest changes with the tokens that the compiler sees, and with nothing else.

#[path = "../digest.rs"]
pub mod digest;

use std::path::{Path, PathBuf};

/// A source that contains parts that reach the compiled engine and parts that do not.
const LIB: &str = r#"
//! What the module is.
pub mod part;
/// A limit.
pub const LIMIT: u64 = 48; // credits
#[cfg(test)]
mod apart;
pub struct Log {
    #[cfg(test)]
    seen: Vec<u64>,
    pub kept: u64,
}
#[cfg(test)]
mod tests {
    #[test]
    fn holds() {
        assert_eq!(super::LIMIT, 48);
    }
}
"#;

/// A temporary tree of sources, which is removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let root = std::env::temp_dir().join(format!("hostnet-digest-{}-{name}", std::process::id()));
        let tree = Tree(root);
        tree.write("lib.rs", LIB);
        tree.write(
            "part.rs",
            "pub fn double(n: u64) -> u64 { n * 2 }\n#[cfg(test)]\n#[path = \"part_tests.rs\"]\nmod tests;\n",
        );
        tree.write("apart.rs", "pub fn helper() {}\n");
        tree.write("part_tests.rs", "#[test]\nfn doubles() { assert_eq!(super::double(2), 4) }\n");
        tree
    }
    fn write(&self, file: &str, text: &str) {
        std::fs::create_dir_all(&self.0).expect("a directory for temporary files");
        std::fs::write(self.0.join(file), text).expect("a temporary file");
    }
    fn digest(&self) -> u64 {
        digest::of_sources(&[&self.0])
    }
    /// The digest after `from` in lib.rs has been replaced.
    fn with(&self, from: &str, to: &str) -> u64 {
        assert!(LIB.contains(from), "{from}");
        self.write("lib.rs", &LIB.replace(from, to));
        let digest = self.digest();
        self.write("lib.rs", LIB);
        digest
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn comments_layout_and_tests_leave_the_digest_as_it_is() {
    let tree = Tree::new("kept");
    let before = tree.digest();
    for (from, to) in [
        ("// credits", "// lines"),
        ("/// A limit.", "/// The most credits."),
        ("//! What the module is.", "//! Credits."),
        ("u64 = 48;", "u64 =\n    48;"),
        ("assert_eq!(super::LIMIT, 48)", "assert!(super::LIMIT > 1)"),
        ("seen: Vec<u64>", "seen: Vec<u32>"),
    ] {
        assert_eq!(tree.with(from, to), before, "{to}");
    }
    tree.write("apart.rs", "pub fn helper() { println!() }\n");
    tree.write("part_tests.rs", "");
    assert_eq!(tree.digest(), before);
}

#[test]
fn constants_code_and_names_change_the_digest() {
    let tree = Tree::new("lost");
    let before = tree.digest();
    for (from, to) in [
        ("LIMIT: u64 = 48", "LIMIT: u64 = 49"),
        ("kept: u64", "kept: u32"),
        ("pub struct Log", "#[derive(Clone)]\npub struct Log"),
        ("#[cfg(test)]\nmod apart;", "mod apart;"),
    ] {
        assert_ne!(tree.with(from, to), before, "{to}");
    }
    tree.write("part.rs", "pub fn double(n: u64) -> u64 { n + n }\n");
    assert_ne!(tree.digest(), before);
}

#[test]
fn the_engine_carries_the_digest_of_its_own_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (engine, recordings) = (here.join("src"), here.join("../recording/src"));
    let digest = format!("+{:016x}", digest::of_sources(&[&engine, &recordings]));
    assert!(hostnet::VERSION.ends_with(&digest), "{} is not of {digest}", hostnet::VERSION);
}
