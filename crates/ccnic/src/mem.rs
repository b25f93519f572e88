//! The few memory operations the shared-memory protocols are made of.
//!
//! Rings and pools are written against [`Mem`], so that one source runs over a mapped
//! region in production and over loom's checked atomics in the model tests.

/// A span of shared 64-bit words addressed by word index.
///
/// Implementations panic on an index outside the span: indices come from a side's own
/// layout, never from the peer.
pub trait Mem {
    /// Relaxed load.
    fn get(&self, word: usize) -> u64;
    /// Load that orders later accesses after it.
    fn get_acquire(&self, word: usize) -> u64;
    /// Relaxed store.
    fn put(&self, word: usize, value: u64);
    /// Store that orders earlier accesses before it.
    fn put_release(&self, word: usize, value: u64);
    /// Atomic add; returns the value before it.
    fn add(&self, word: usize, value: u64) -> u64;
    /// Compare and swap; true when `word` held `old` and now holds `new`.
    fn swap_if(&self, word: usize, old: u64, new: u64) -> bool;
    /// Orders everything before it against everything after it.
    fn fence(&self);
    /// Fence for a rare event, such as going to sleep, on behalf of both sides: with [`light_fence`](Self::light_fence)
    /// on the other side, neither can miss what the other wrote.
    fn heavy_fence(&self);
    /// Fence for a frequent event, the counterpart of [`heavy_fence`](Self::heavy_fence).
    fn light_fence(&self);
    /// Hint that this side will write the line of `word` soon.
    fn prefetch_write(&self, _word: usize) {}
    /// Hint that this side will read the line of `word` soon.
    fn prefetch_read(&self, _word: usize) {}
}
