//! Tables whose entries are aligned to the cache lines of the computer that runs the simulation.

use super::Id;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line<T>(T);

/// A vector of values of up to 64 bytes, each aligned to a cache line, so that an access touches only one line.
#[derive(Clone)]
pub struct CacheAligned<I, T>(Vec<Line<T>>, PhantomData<fn(I) -> I>);

impl<I: Id, T> CacheAligned<I, T> {
    /// An empty table with room for `n` values.
    pub fn with_capacity(n: usize) -> CacheAligned<I, T> {
        const { assert!(size_of::<T>() <= 64) };
        CacheAligned(Vec::with_capacity(n), PhantomData)
    }

    /// Appends `value` and returns its identifier.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> I {
        let id = I::new(self.0.len());
        self.0.push(Line(value));
        id
    }

    /// Number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table has no value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in the order of their identifiers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

impl<I: Id, T> Index<I> for CacheAligned<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.0[id.index()].0
    }
}

impl<I: Id, T> IndexMut<I> for CacheAligned<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.0[id.index()].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::TxnId;

    #[test]
    fn every_entry_begins_with_a_line_of_the_host_s_cache() {
        let mut table = CacheAligned::with_capacity(1);
        let ids: Vec<TxnId> = (0..100u64).map(|n| table.push([n; 5])).collect();
        let mut values = ids.iter().map(|id| &table[*id]).zip(0..);
        assert!(values.all(|(value, n)| std::ptr::from_ref(value).addr() % 64 == 0 && *value == [n; 5]));
        assert_eq!((table.len(), table.iter().count()), (100, 100));
    }
}
