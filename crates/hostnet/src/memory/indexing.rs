//! How lines spread over the sets and slices of a cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a line address picks its set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Indexing {
    /// Line number modulo the number of sets.
    Modulo,
    /// A hash of the line number picks the slice, its low bits the set inside it.
    #[default]
    HashedSlices,
    /// A sequence of slices of 2^14 lines, permuted block by block: the XOR of a line's place in its block and a hash
    /// of the block picks the element. So are Intel's, as McCalpin found (ACELab TR-2021-03); the sequence itself
    /// (slice after slice) and the hash are not his.
    InterleavedSlices,
    /// As many contiguous lines as the cache has sets, from a border on, are one in each set. The line's place in a
    /// slice, permuted by a hash for each such stretch, and the stretch's part that it lies in, added, modulo the
    /// slices, pick the slice. That it is even is measured (DDIO on a Xeon Gold 6140: Farshin et al., ATC'20, keep 98 %
    /// of 1536 buffers of 24 lines in two ways, where independent slices keep 91 % at most); its form is ours.
    EvenSlices,
    /// The XOR of the line number's four groups of 16 bits, modulo the slices, picks the slice; its low bits the set
    /// inside it. With slices that share a power of two, the low bits of both are tied (zSim with Sweeper's changes).
    FoldedSlices,
}

/// The slices of a cache of `sets` x `ways` lines.
///
/// # Errors
/// One clause naming the shape that does not work.
pub fn shape(sets: u64, ways: u32, indexing: Indexing, slices: u32) -> Result<u32, String> {
    let slices = if indexing == Indexing::Modulo { 1 } else { slices.max(1) };
    if ways == 0 || ways > 24 || sets == 0 || sets > 1 << 24 {
        return Err(format!("{sets} sets of {ways} ways, which is no cache (1 to 24 ways, 1 to 2^24 sets)"));
    }
    if sets % u64::from(slices) != 0 || !(sets / u64::from(slices)).is_power_of_two() {
        return Err(format!("{sets} sets in {slices} slices: the sets of a slice must be a power of two"));
    }
    Ok(slices)
}
