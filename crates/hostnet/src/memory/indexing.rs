//! Indexing: the function that spreads lines over the slices and sets of a cache.

use super::LINE;
use crate::kernel::units::Size;
use crate::kernel::Int;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Function that maps a line to a slice and a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Indexing {
    /// The set is the line number modulo the number of sets; there are no slices.
    Modulo,
    /// A hash of the line number selects the slice, and the low bits of the line number select the set within the
    /// slice.
    #[default]
    HashedSlices,
    /// A sequence of slices of 2^14 lines, permuted block by block: the XOR of a line's place in its block and a hash
    /// of the block selects the element. Intel's processors have this structure according to McCalpin (ACELab
    /// TR-2021-03); the sequence itself (slice after slice) and the hash are assumed.
    InterleavedSlices,
    /// A contiguous stretch of as many lines as the cache has sets, from a border on, has exactly one line in each set.
    /// The slice is the sum, modulo the number of slices, of the stretch's number and of the line's place in a slice,
    /// which a hash of the stretch permutes. Even spreading is measured (DDIO on a Xeon Gold 6140: Farshin et al.,
    /// ATC'20, keep 98 % of 1536 buffers of 24 lines in two ways, where independent slices keep 91 % at most); the
    /// function itself is assumed.
    EvenSlices,
    /// The XOR of the line number's four groups of 16 bits, modulo the number of slices, selects the slice; the low
    /// bits of the line number select the set within it. If the number of slices is a multiple of a power of two, the
    /// low bits of slice and set are correlated (zSim with Sweeper's changes).
    FoldedSlices,
}

/// Ways that a cache has at most.
pub const MOST_WAYS: usize = 24;

/// Checks the shape of a cache of `sets` x `ways` lines, and returns its number of slices.
///
/// # Errors
/// Fails with one clause that names the shape that does not work.
pub fn shape(sets: u64, ways: u32, indexing: Indexing, slices: u32) -> Result<u32, String> {
    let slices = if indexing == Indexing::Modulo { 1 } else { slices.max(1) };
    if ways == 0 || ways.to_usize() > MOST_WAYS || sets == 0 || sets > 1 << 24 {
        return Err(format!("{sets} sets of {ways} ways, which is no cache (1 to {MOST_WAYS} ways, 1 to 2^24 sets)"));
    }
    if sets % u64::from(slices) != 0 || !(sets / u64::from(slices)).is_power_of_two() {
        let below = 1 << (sets / u64::from(slices)).max(1).ilog2();
        let size = |sets: u64| Size(sets * u64::from(slices) * u64::from(ways) * LINE);
        return Err(format!(
            "{sets} sets in {slices} slices: the sets of a slice must be a power of two, as with \"{}\" or \"{}\"",
            size(below),
            size(2 * below)
        ));
    }
    Ok(slices)
}
