//! Tables whose entries begin with a line of the host's cache each.

use std::ops::{Index, IndexMut};

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line<T>(T);

/// A vector of values of up to 64 bytes: to look at one takes no more than one line of the host's cache.
#[derive(Clone)]
pub struct Apart<T>(Vec<Line<T>>);

impl<T> Apart<T> {
    pub fn with_capacity(n: usize) -> Apart<T> {
        const { assert!(size_of::<T>() <= 64) };
        Apart(Vec::with_capacity(n))
    }

    #[inline]
    pub fn push(&mut self, value: T) {
        self.0.push(Line(value));
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

impl<T> Index<usize> for Apart<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, i: usize) -> &T {
        &self.0[i].0
    }
}

impl<T> IndexMut<usize> for Apart<T> {
    #[inline(always)]
    fn index_mut(&mut self, i: usize) -> &mut T {
        &mut self.0[i].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_begins_with_a_line_of_the_host_s_cache() {
        let mut table = Apart::with_capacity(1);
        (0..100u64).for_each(|n| table.push([n; 5]));
        assert!((0..100).all(|i| std::ptr::from_ref(&table[i]).addr() % 64 == 0 && table[i] == [i as u64; 5]));
        assert_eq!((table.len(), table.iter().count()), (100, 100));
    }
}
