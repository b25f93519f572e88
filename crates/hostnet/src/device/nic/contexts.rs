//! Contexts of a NIC's DMA engine: one for each transfer whose lines are not all done.

/// Number of transfers that a DMA engine may have outstanding.
const CONTEXTS: u16 = 256;

/// Transfers whose lines are in flight, each with the number of lines that are not done.
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

    /// Whether another context may be opened.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Whether no context is open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spare.len() == usize::from(CONTEXTS)
    }

    pub fn open(&mut self, what: T, lines: u32) -> u16 {
        let slot = self.spare.pop().expect("whoever opens a context looked whether one is free");
        self.of[usize::from(slot)] = Some((what, lines));
        slot
    }

    /// The transfer whose lines `slot` counts, if the slot is open.
    pub fn of(&self, slot: u16) -> Option<T> {
        Some(self.of.get(usize::from(slot)).copied()??.0)
    }

    /// Counts `n` lines of `slot` as done and returns true, unless these are the last lines of the transfer.
    #[inline]
    pub fn part(&mut self, slot: u16, n: u32) -> bool {
        let (_, left) = self.of[usize::from(slot)].as_mut().expect("lines of an open context");
        if *left <= n {
            return false;
        }
        *left -= n;
        true
    }

    /// Counts `n` lines of `slot` as done; returns the transfer when these were its last lines.
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
