//! Conversions between number types go through `From`, identifiers and `kernel::num`, which state their guarantees.

use crate::engine_digest::digest::compiled_sources;
use std::path::Path;

/// The most numeric `as` that the engine may have. Those that are left stand in constants, in the positions of enums,
/// and in the functions that name each kind of conversion.
const MOST: usize = 20;

const NUMBERS: [&str; 14] =
    ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64"];

/// The number of numeric `as` among the tokens of a file.
fn casts(tokens: &[String]) -> usize {
    tokens.windows(2).filter(|pair| pair[0] == "as" && NUMBERS.contains(&pair[1].as_str())).count()
}

#[test]
fn the_engine_converts_numbers_by_name() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files: Vec<(usize, String)> = compiled_sources(&src)
        .into_iter()
        .map(|(file, tokens)| (casts(&tokens), file.strip_prefix(&src).expect("below src").display().to_string()))
        .filter(|(n, _)| *n > 0)
        .collect();
    let all: usize = files.iter().map(|(n, _)| n).sum();
    files.sort();
    files.reverse();
    let list: Vec<String> = files.iter().map(|(n, file)| format!("{n} {file}")).collect();
    assert!(all > 0, "the sources of `kernel::num` are among those that are counted");
    assert!(all <= MOST, "{all} numeric `as`, of which {MOST} may be; see `kernel::num`:\n{}", list.join("\n"));
}

#[test]
fn a_cast_is_told_from_a_name_and_from_another_as() {
    let tokens = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    assert_eq!(casts(&tokens("let a = b as u64 + c as f64 ;")), 2);
    assert_eq!(casts(&tokens("use x as u64x ; y as Box ; u64 as_u64")), 0);
}
