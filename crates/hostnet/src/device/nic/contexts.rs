//! What a DMA engine has under way: pieces of work whose lines are not all done.

use crate::flow::Credits;
use crate::kernel::Time;

/// Pieces of work that a DMA engine may have under way.
const CONTEXTS: u32 = 256;

/// Pieces of work whose lines are under way, and how many of their lines are not done.
#[derive(Clone)]
pub(super) struct Contexts<T> {
    of: Vec<Option<(T, u32)>>,
    spare: Vec<u16>,
    pub in_use: Credits,
}

impl<T: Copy> Contexts<T> {
    pub fn new() -> Contexts<T> {
        let spare = (0..CONTEXTS as u16).rev().collect();
        Contexts { of: vec![None; CONTEXTS as usize], spare, in_use: Credits::new(CONTEXTS) }
    }

    pub fn open(&mut self, what: T, lines: u32, now: Time) -> u16 {
        self.in_use.take(1, now).expect("whoever opens a context looked whether one is free");
        let slot = self.spare.pop().expect("as many as credits");
        self.of[usize::from(slot)] = Some((what, lines));
        slot
    }

    /// `n` lines are done; what they belong to, when they were its last.
    pub fn done(&mut self, slot: u16, n: u32, now: Time) -> Option<T> {
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
        self.in_use.give(1, now);
        Some(what)
    }
}
