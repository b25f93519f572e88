//! What a DMA engine has under way: pieces of work whose lines are not all done.

/// Pieces of work that a DMA engine may have under way.
const CONTEXTS: u16 = 256;

/// Pieces of work whose lines are under way, and how many of their lines are not done.
#[derive(Clone)]
pub(super) struct Contexts<T> {
    of: Vec<Option<(T, u32)>>,
    spare: Vec<u16>,
}

impl<T: Copy> Contexts<T> {
    pub fn new() -> Contexts<T> {
        let spare = (0..CONTEXTS).rev().collect();
        Contexts { of: vec![None; CONTEXTS.into()], spare }
    }

    /// Whether there may be one more.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Whether none is open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spare.len() == usize::from(CONTEXTS)
    }

    pub fn open(&mut self, what: T, lines: u32) -> u16 {
        let slot = self.spare.pop().expect("whoever opens a context looked whether one is free");
        self.of[usize::from(slot)] = Some((what, lines));
        slot
    }

    /// `n` lines are done, if they are not the last of what they belong to.
    #[inline]
    pub fn part(&mut self, slot: u16, n: u32) -> bool {
        let (_, left) = self.of[usize::from(slot)].as_mut().expect("lines of an open context");
        if *left <= n {
            return false;
        }
        *left -= n;
        true
    }

    /// `n` lines are done; what they belong to, when they were its last.
    #[inline]
    pub fn done(&mut self, slot: u16, n: u32) -> Option<T> {
        let context = &mut self.of[usize::from(slot)];
        let (what, left) = context.as_mut().expect("lines of an open context");
        assert!(*left >= n, "more lines are done than were asked for");
        *left -= n;
        if *left > 0 {
            return None;
        }
        let what = *what;
        *context = None;
        self.spare.push(slot);
        Some(what)
    }
}
