//! Places of received lines in the caches, counted incrementally from records of changes in tag arrays and line states.

use super::array::CacheArray;
use super::region::RegionKind;
use super::{rx_line_states, Memory};
use crate::kernel::{Int, LineAddr};

/// Number of lines in a page of `ReceivedLines`, as a power of two.
const PAGE_BITS: u32 = 11;
/// Number of recorded changes above which it is cheaper to count the cached lines anew.
const MOST_NOTES: usize = 1 << 16;
/// Largest number of ways of an LLC.
const MOST_WAYS: usize = 32;

/// Changes since the last call that took them; more than `MOST_NOTES` are not recorded.
#[derive(Clone, Debug)]
pub(super) struct ChangeLog<T>(Vec<T>);

impl<T> ChangeLog<T> {
    pub fn new() -> Box<ChangeLog<T>> {
        Box::new(ChangeLog(Vec::new()))
    }

    #[cold]
    #[inline(never)]
    pub fn add(&mut self, what: T) {
        if self.0.len() <= MOST_NOTES {
            self.0.push(what);
        }
    }
    fn are_all(&self) -> bool {
        self.0.len() <= MOST_NOTES
    }
    pub fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }
}

/// A line that entered a way of an array, or left it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineMove {
    pub line: LineAddr,
    pub way: u32,
    pub comes: bool,
}

/// State of a line at the last count.
#[derive(Clone, Copy, Default)]
struct LineRecord {
    in_l2: u8,
    /// Way in which each node's LLC holds the line, counted from 1; 0 when it does not.
    ways: [u8; 2],
    life: u8,
    /// Whether the previous line held no data, so that the line begins a packet.
    begins: bool,
}

/// Numbers of received lines by place and state.
#[derive(Clone, Default)]
struct ReceivedCounts {
    in_l2: u64,
    in_way: [u64; MOST_WAYS],
    unread: u64,
    spent: u64,
    headers: u64,
    spent_in_l2: u64,
}

impl ReceivedCounts {
    /// Adds a line to the counts; with a negative `by`, subtracts the line.
    fn count(&mut self, s: LineRecord, by: fn(u64, u64) -> u64) {
        if s.life == rx_line_states::FREE {
            return;
        }
        let in_l2 = u64::from(s.in_l2);
        let mut all = in_l2;
        self.in_l2 = by(self.in_l2, in_l2);
        for way in s.ways.into_iter().filter(|w| *w > 0) {
            let n = &mut self.in_way[usize::from(way) - 1];
            *n = by(*n, 1);
            all += 1;
        }
        match s.life {
            rx_line_states::UNCONSUMED => self.unread = by(self.unread, all),
            rx_line_states::CONSUMED => {
                self.spent = by(self.spent, all);
                self.spent_in_l2 = by(self.spent_in_l2, in_l2);
            }
            _ => {}
        }
        if s.begins {
            self.headers = by(self.headers, in_l2);
        }
    }
}

/// States of the lines between the first and the last receive buffer, in pages that are allocated when needed.
#[derive(Clone, Default)]
pub(super) struct ReceivedLines {
    base: LineAddr,
    pages: Vec<Option<Box<[LineRecord; 1 << PAGE_BITS]>>>,
    counts: ReceivedCounts,
}

impl ReceivedLines {
    fn change(&mut self, line: LineAddr, what: impl FnOnce(&mut LineRecord)) {
        let i = (line - self.base).to_usize();
        let page = i >> PAGE_BITS;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([LineRecord::default(); 1 << PAGE_BITS]));
        let seen = &mut page[i & ((1 << PAGE_BITS) - 1)];
        self.counts.count(*seen, |n, m| n - m);
        what(seen);
        self.counts.count(*seen, |n, m| n + m);
    }
}

impl Memory {
    /// Numbers of received lines: in L2s, in the LLC's ways for devices, and in the other ways of the LLC. Among all
    /// these lines, the function counts those of packets that no core has read and those of packets that were read.
    /// Among the lines in L2s, it counts those that begin a packet and those of packets that were read.
    pub fn received_lines(&mut self) -> [u64; 7] {
        if self.rx_line_states.range().is_empty() {
            return [0; 7];
        }
        let mut received = match self.received.take() {
            Some(r) if self.notes_are_all() => r,
            _ => self.received_anew(),
        };
        self.follow_notes(&mut received);
        let n = &received.counts;
        let of_devices = |way: &usize| self.device_ways >> way & 1 == 1;
        let in_ways: u64 = n.in_way.iter().sum();
        let ddio = (0..MOST_WAYS).filter(of_devices).map(|way| n.in_way[way]).sum();
        let all = [n.in_l2, ddio, in_ways - ddio, n.unread, n.spent, n.headers, n.spent_in_l2];
        self.received = Some(received);
        all
    }

    fn notes_are_all(&self) -> bool {
        let arrays = self.l2.iter().chain(self.nodes.iter().map(|n| &n.llc));
        let moves = arrays.map(|a| a.moves.as_ref());
        self.rx_line_states.changed.as_ref().is_some_and(|n| n.are_all()) && moves.flatten().all(|m| m.1.are_all())
    }

    /// Starts a new count: the present contents of the caches take the place of the recorded changes.
    #[cold]
    fn received_anew(&mut self) -> Box<ReceivedLines> {
        let lines = self.rx_line_states.range();
        self.rx_line_states.changed = Some(ChangeLog::new());
        let arrays = self.l2.iter_mut().chain(self.nodes.iter_mut().map(|n| &mut n.llc));
        for array in arrays {
            let held = array.iter_within(lines.clone());
            let held = held.map(|(line, way, _)| LineMove { line, way, comes: true }).collect();
            array.moves = Some((lines.clone(), Box::new(ChangeLog(held))));
        }
        Box::new(ReceivedLines { base: lines.start, ..ReceivedLines::default() })
    }

    fn follow_notes(&mut self, received: &mut ReceivedLines) {
        let Memory { l2, nodes, rx_line_states, map, .. } = self;
        let counted = |line: LineAddr| map.of(line).kind == RegionKind::Rx;
        let first = rx_line_states.range().start;
        let begins = |rx_line_states: &rx_line_states::RxLineStates, line: LineAddr| {
            line == first || rx_line_states.of(line - 1) == rx_line_states::FREE
        };
        let mut follow = |place: Option<usize>, m: LineMove| {
            if counted(m.line) {
                received.change(m.line, |s| {
                    (s.life, s.begins) = (rx_line_states.of(m.line), begins(rx_line_states, m.line));
                    match place {
                        None => s.in_l2 = if m.comes { s.in_l2 + 1 } else { s.in_l2 - 1 },
                        Some(node) => s.ways[node] = if m.comes { m.way.to_u8() + 1 } else { 0 },
                    }
                });
            }
        };
        for m in l2.iter_mut().flat_map(CacheArray::moved) {
            follow(None, m);
        }
        for (node, n) in nodes.iter_mut().enumerate() {
            n.llc.moved().into_iter().for_each(|m| follow(Some(node), m));
        }
        let end = rx_line_states.range().end;
        let changed = rx_line_states.changed.as_mut().map(|n| n.take()).unwrap_or_default();
        for line in changed.into_iter().flat_map(|l| [l, l + 1]).filter(|l| *l < end && counted(*l)) {
            received.change(line, |s| (s.life, s.begins) = (rx_line_states.of(line), begins(rx_line_states, line)));
        }
    }
}
