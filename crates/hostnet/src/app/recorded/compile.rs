//! Templates of recorded packets: ops whose lines are relative to the places that a packet gets when it is served.
//!
//! A load whose address depends on earlier loads waits for the one of them that ends the longest chain of dependences.
//! The op stream knows a single anchor, so the template keeps anchors in slots and recalls them.

use super::PAGE_LINES;
use crate::core::op::KEPT_ANCHORS;
use crate::kernel::Int;
use crate::memory::{LINE, LINE_U32};
use hostnet_recording::{AccessKind, Counts, Packet, PageKind, Recording, Sources};
use std::collections::{HashMap, HashSet, VecDeque};

/// Number of accesses that one access may lie behind another one of the same line and still hit the L1 for certain.
const NEAR: usize = 16;

/// Memory of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::app) enum Place {
    /// The received frame.
    Frame,
    /// The reply.
    Reply,
    /// Memory of the core.
    Own,
    /// Memory that cores share.
    Shared,
    /// The packet's copy of the core's tables.
    OwnTable,
    /// The packet's copy of the shared tables.
    SharedTable,
}

impl Place {
    /// Index of the memory among those of a packet.
    pub(in crate::app) const fn index(self) -> usize {
        match self {
            Place::Frame => 0,
            Place::Reply => 1,
            Place::Own => 2,
            Place::Shared => 3,
            Place::OwnTable => 4,
            Place::SharedTable => 5,
        }
    }

    /// Whether a shorter packet has fewer lines in this memory than the recorded one.
    const fn is_cut(self) -> bool {
        matches!(self, Place::Frame | Place::Reply)
    }
}

/// Number of places.
pub(in crate::app) const PLACES: usize = 6;

/// Operation of a step on its lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::app) enum Act {
    Nothing,
    Load,
    Anchor,
    DependentLoad,
    Chase,
    Store,
    DependentStore,
    Atomic,
    Prefetch,
    DependentPrefetch,
    PrefetchOwn,
    StreamStore,
    Flush,
    Fence,
    Await,
    Keep(u8),
    Recall(u8),
}

/// A step of a template: instructions, and then an act. A step on the frame or the reply is left out as a whole when
/// its first line lies beyond the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::app) struct TemplateStep {
    pub instructions: u32,
    pub line: u32,
    pub lines: u16,
    pub place: Place,
    pub act: Act,
}

/// Places of the program's pages.
pub(super) struct Layout {
    /// Whether a page is one core's, and its number in the memory of the core or in the shared memory.
    pages: Vec<(bool, u32)>,
    stacks: Vec<bool>,
    /// Lines that belong to tables, of which each packet uses a copy.
    tables: HashSet<(u32, u16)>,
    own: u32,
    shared: u32,
}

impl Layout {
    /// The layout of the recording's pages, all in the memory of each core if `own`; with tables if there are several
    /// `copies` of them.
    pub fn new(r: &Recording, own: bool, copies: u32) -> Layout {
        let several = r.threads.len() > 1;
        let (mut own_pages, mut shared_pages) = (0, 0);
        let pages = r.pages.iter().map(|p| {
            let of_core = own || p.kind == PageKind::Stack || several && p.thread.is_some();
            let count = if of_core { &mut own_pages } else { &mut shared_pages };
            *count += 1;
            (of_core, *count - 1)
        });
        let pages = pages.collect();
        let stacks: Vec<bool> = r.pages.iter().map(|p| p.kind == PageKind::Stack).collect();
        let tables = if copies > 1 { tables(r, &stacks) } else { HashSet::new() };
        Layout { pages, stacks, tables, own: own_pages, shared: shared_pages }
    }

    /// Whether there are lines that copies of the program's tables would multiply.
    pub fn has_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Lines of one copy of a core's memory, and of the shared memory.
    pub fn lines(&self) -> (u64, u64) {
        (u64::from(self.own) * PAGE_LINES, u64::from(self.shared) * PAGE_LINES)
    }

    /// Place and line of a recorded access to page `page` at `offset`.
    fn place(&self, page: u32, offset: u16) -> (Place, u32) {
        let in_page = offset / LINE.to_u16();
        let (of_core, number) = self.pages[page.to_usize()];
        let place = match (of_core, self.tables.contains(&(page, in_page))) {
            (true, false) => Place::Own,
            (false, false) => Place::Shared,
            (true, true) => Place::OwnTable,
            (false, true) => Place::SharedTable,
        };
        (place, number * PAGE_LINES.to_u32() + u32::from(in_page))
    }
}

/// Lines outside stacks that at most half of the packets access.
fn tables(r: &Recording, stacks: &[bool]) -> HashSet<(u32, u16)> {
    let mut packets: HashMap<(u32, u16), usize> = HashMap::new();
    for p in &r.packets {
        let lines: HashSet<(u32, u16)> = p
            .steps
            .iter()
            .flat_map(|s| match s.access.place {
                hostnet_recording::Place::Memory { page, offset } if !stacks[page.to_usize()] => {
                    let last = u32::from(offset) + s.access.bytes.max(1) - 1;
                    let lines = offset / LINE.to_u16()..=(last / LINE_U32).min(PAGE_LINES.to_u32() - 1).to_u16();
                    Some(lines.map(move |l| (page, l)))
                }
                _ => None,
            })
            .flatten()
            .collect();
        lines.into_iter().for_each(|l| *packets.entry(l).or_default() += 1);
    }
    packets.retain(|_, n| *n * 2 <= r.packets.len());
    packets.into_keys().collect()
}

/// A load or an atomic operation of a template that later steps may wait for.
#[derive(Clone, Copy)]
pub(in crate::app) struct Source {
    /// Index of the step.
    pub step: usize,
    /// Number of loads in the chain that ends here.
    pub depth: u32,
}

/// A step before anchors are assigned, with the step whose data it waits for.
pub(in crate::app) struct Draft {
    pub step: TemplateStep,
    pub after: Option<usize>,
}

/// Compiles packets, each list of steps once.
pub(super) struct Compiler<'a> {
    layout: &'a Layout,
    /// Instructions with which the simulated core accesses a line.
    per_line: u32,
    templates: Vec<Box<[TemplateStep]>>,
    known: HashMap<(*const hostnet_recording::Step, usize, Counts), u32>,
}

impl<'a> Compiler<'a> {
    pub fn new(layout: &'a Layout, per_line: u32) -> Compiler<'a> {
        Compiler { layout, per_line, templates: Vec::new(), known: HashMap::new() }
    }

    /// Index of the template of packet `p`.
    pub fn template(&mut self, p: &Packet) -> u32 {
        let key = (p.steps.as_ptr(), p.steps.len(), p.rest);
        if let Some(i) = self.known.get(&key) {
            return *i;
        }
        let drafts = Drafter::new(self.layout, self.per_line).draft(p);
        self.templates.push(with_anchors(drafts).into());
        let i = self.templates.len().to_u32() - 1;
        self.known.insert(key, i);
        i
    }

    pub fn finish(self) -> Vec<Box<[TemplateStep]>> {
        self.templates
    }
}

/// Effect of an earlier access on a line.
#[derive(Clone, Copy)]
struct Recent {
    place: Place,
    line: u32,
    read: bool,
    written: bool,
    streamed: bool,
    /// The load of the line, for whose data others wait.
    source: Option<Source>,
}

struct Drafter<'a> {
    layout: &'a Layout,
    per_line: u32,
    out: Vec<Draft>,
    recent: VecDeque<Recent>,
    /// Instructions since the latest step.
    pending: u32,
    /// Instructions of accesses that the simulated core executes in excess of the recorded ones; later instructions
    /// make up for them.
    excess: u32,
    /// For each recorded step, the load that its data waits for.
    sources: Vec<Option<Source>>,
}

impl<'a> Drafter<'a> {
    fn new(layout: &'a Layout, per_line: u32) -> Drafter<'a> {
        Drafter {
            layout,
            per_line,
            out: Vec::new(),
            recent: VecDeque::new(),
            pending: 0,
            excess: 0,
            sources: Vec::new(),
        }
    }

    fn draft(mut self, p: &Packet) -> Vec<Draft> {
        for s in p.steps.iter() {
            self.before(s.before, &s.branches_from);
            let source = self.access(s.access);
            self.sources.push(source);
        }
        self.before(p.rest, &Sources::default());
        self.add(Place::Own, 0, 0, Act::Nothing, None, 0);
        self.out
    }

    /// Counts what precedes an access.
    fn before(&mut self, counts: Counts, branches_from: &Sources) {
        if let Some(s) = self.latest(branches_from).filter(|_| counts.mispredicted > 0) {
            self.add(Place::Own, 0, 0, Act::Await, Some(s.step), 0);
        }
        self.pending += counts.instructions;
        if counts.fences > 0 {
            self.add(Place::Own, 0, 0, Act::Fence, None, 0);
        }
    }

    /// The source among `from` that ends the longest chain; of several, the latest.
    fn latest(&self, from: &Sources) -> Option<Source> {
        let of = |d: u32| self.sources.get(self.sources.len().checked_sub(d.to_usize())?).copied().flatten();
        from.iter().filter_map(of).max_by_key(|s| (s.depth, s.step))
    }

    /// Appends an access, and returns the load that its data waits for.
    fn access(&mut self, a: hostnet_recording::Access) -> Option<Source> {
        let address = self.latest(&a.address_from);
        let (place, line, offset) = match a.place {
            hostnet_recording::Place::Metadata(_) | hostnet_recording::Place::ReplyMetadata(_) => return address,
            hostnet_recording::Place::Frame(o) => (Place::Frame, o.max(0).to_u32() / LINE_U32, o.max(0).to_u32()),
            hostnet_recording::Place::Reply(o) => (Place::Reply, o.max(0).to_u32() / LINE_U32, o.max(0).to_u32()),
            hostnet_recording::Place::Memory { page, offset } => {
                let (place, line) = self.layout.place(page, offset);
                (place, line, offset.into())
            }
        };
        let stack =
            matches!(a.place, hostnet_recording::Place::Memory { page, .. } if self.layout.stacks[page.to_usize()]);
        let bytes = a.bytes.max(1);
        let lines = ((offset % LINE_U32 + bytes).div_ceil(LINE_U32)).min(u16::MAX.into());
        let before =
            (line..line + lines).map(|l| self.recent.iter().find(|r| r.place == place && r.line == l).copied());
        let before: Vec<Option<Recent>> = before.collect();
        let all = |what: fn(&Recent) -> bool| before.iter().all(|r| r.as_ref().is_some_and(what));
        let hits = match a.kind {
            AccessKind::Load => all(|r| r.read || r.written),
            AccessKind::Store => all(|r| r.written),
            AccessKind::Prefetch => all(|r| r.read || r.written),
            AccessKind::PrefetchOwn => all(|r| r.written),
            AccessKind::StreamStore => all(|r| r.streamed),
            AccessKind::Atomic | AccessKind::Flush => false,
        };
        let deeper =
            |a: Option<Source>, b: Option<Source>| [a, b].into_iter().flatten().max_by_key(|s| (s.depth, s.step));
        if hits {
            let of_line = before.iter().flatten().fold(None, |s, r| deeper(s, r.source));
            if place.is_cut() {
                self.add(place, line, 0, Act::Nothing, None, 0);
            }
            return deeper(address, of_line);
        }
        let act = match a.kind {
            AccessKind::Load if address.is_some() => Act::DependentLoad,
            AccessKind::Load => Act::Load,
            AccessKind::Store if address.is_some() => Act::DependentStore,
            AccessKind::Store => Act::Store,
            AccessKind::Atomic => Act::Atomic,
            AccessKind::Prefetch if address.is_some() && lines == 1 => Act::DependentPrefetch,
            AccessKind::Prefetch => Act::Prefetch,
            AccessKind::PrefetchOwn => Act::PrefetchOwn,
            AccessKind::StreamStore => Act::StreamStore,
            AccessKind::Flush => Act::Flush,
        };
        let waits = matches!(act, Act::DependentLoad | Act::DependentStore | Act::DependentPrefetch);
        let after = address.filter(|_| waits).map(|s| s.step);
        // A single instruction that moves many lines takes the core the time of its lines.
        let executed = match act {
            _ if bytes > LINE_U32 => 1,
            Act::Prefetch | Act::DependentPrefetch | Act::PrefetchOwn | Act::Flush => lines,
            _ => lines * self.per_line,
        };
        self.add(place, line, lines.to_u16(), act, after, executed);
        let source = a
            .kind
            .loads()
            .then(|| Source { step: self.out.len() - 1, depth: address.map_or(0, |s| s.depth) + u32::from(!stack) });
        for (l, old) in (line..line + lines).zip(before) {
            self.note(place, l, a.kind, old, source);
        }
        source
    }

    /// Notes what an access of `kind` has done with a line.
    fn note(&mut self, place: Place, line: u32, kind: AccessKind, old: Option<Recent>, source: Option<Source>) {
        self.recent.retain(|r| r.place != place || r.line != line);
        if matches!(kind, AccessKind::Prefetch | AccessKind::PrefetchOwn | AccessKind::Flush) {
            return;
        }
        let stores = matches!(kind, AccessKind::Store | AccessKind::Atomic);
        let streamed = kind == AccessKind::StreamStore;
        let keeps = old.filter(|_| !streamed);
        if self.recent.len() == NEAR {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            place,
            line,
            read: !streamed && (kind == AccessKind::Load || keeps.is_some_and(|r| r.read)),
            written: stores || keeps.is_some_and(|r| r.written),
            streamed,
            source: source.or(keeps.and_then(|r| r.source)),
        });
    }

    /// Appends a step behind the pending instructions. The simulated core executes the act as `executed` instructions.
    fn add(&mut self, place: Place, line: u32, lines: u16, act: Act, after: Option<usize>, executed: u32) {
        let made_up = self.excess.min(self.pending);
        let instructions = std::mem::take(&mut self.pending) - made_up;
        self.excess = self.excess - made_up + executed;
        if act == Act::Nothing && instructions == 0 {
            return;
        }
        let mut step = TemplateStep { instructions, line, lines, place, act };
        if let Some(last) = self.out.last().map(|d| d.step).filter(|last| last.act == Act::Nothing) {
            // The first line is there in every packet, so that its instructions may be those of another step.
            let of_line = (last.place, last.line) == (place, line) && (act == Act::Nothing || line == 0);
            let of_first = last.line == 0 && !place.is_cut();
            if of_line || of_first {
                self.out.pop();
                step.instructions += last.instructions;
            }
        }
        self.out.push(Draft { step, after });
    }
}

/// The steps, with anchors where later steps wait for a load.
pub(in crate::app) fn with_anchors(drafts: Vec<Draft>) -> Vec<TemplateStep> {
    let mut last_use = HashMap::new();
    for (i, d) in drafts.iter().enumerate() {
        d.after.into_iter().for_each(|after| _ = last_use.insert(after, i));
    }
    let mut a = Anchors { last_use, slots: [None; KEPT_ANCHORS], present: None, out: Vec::with_capacity(drafts.len()) };
    for (i, d) in drafts.iter().enumerate() {
        if let Some(after) = d.after {
            a.recall(after, i);
        }
        if d.step.act == Act::Atomic || a.last_use.contains_key(&i) {
            a.keep(i + 1, None);
            a.present = Some(i);
        }
        a.push(i, d.step);
    }
    a.out
}

/// Assignment of slots to the anchors of a template.
struct Anchors {
    /// The last step that waits for each step.
    last_use: HashMap<usize, usize>,
    slots: [Option<usize>; KEPT_ANCHORS],
    /// The anchor of the op stream.
    present: Option<usize>,
    out: Vec<TemplateStep>,
}

impl Anchors {
    fn act(&mut self, act: Act) {
        self.out.push(TemplateStep { instructions: 0, line: 0, lines: 0, place: Place::Own, act });
    }

    /// Whether step `from` or a later one waits for `anchor`.
    fn is_needed(&self, anchor: usize, from: usize) -> bool {
        self.last_use.get(&anchor).is_some_and(|last| *last >= from)
    }

    /// Keeps the present anchor if step `from` or a later one waits for it. Without a free slot it takes the slot of
    /// the oldest anchor but `except`; steps that wait for that one wait for the anchor of their time instead.
    fn keep(&mut self, from: usize, except: Option<usize>) {
        let Some(anchor) = self.present.filter(|a| self.is_needed(*a, from) && !self.slots.contains(&Some(*a))) else {
            return;
        };
        let free = self.slots.iter().position(|s| s.is_none_or(|a| !self.is_needed(a, from)));
        let others = || self.slots.iter().enumerate().filter(|(_, s)| **s != except);
        if let Some(slot) = free.or_else(|| others().min_by_key(|(_, s)| **s).map(|(slot, _)| slot)) {
            self.slots[slot] = Some(anchor);
            self.act(Act::Keep(slot.to_u8()));
        }
    }

    /// Makes `anchor` the present one for step `step`, if a slot keeps it.
    fn recall(&mut self, anchor: usize, step: usize) {
        let slot = self.slots.iter().position(|s| *s == Some(anchor));
        if let Some(slot) = slot.filter(|_| self.present != Some(anchor)) {
            self.keep(step, Some(anchor));
            self.act(Act::Recall(slot.to_u8()));
            self.present = Some(anchor);
        }
    }

    /// Appends step number `i`, as an anchor if it is the present one.
    fn push(&mut self, i: usize, mut step: TemplateStep) {
        if self.present == Some(i) && step.act != Act::Atomic {
            if step.lines > 1 {
                // The last line is the anchor.
                self.out.push(TemplateStep { lines: step.lines - 1, ..step });
                step = TemplateStep { instructions: 0, line: step.line + u32::from(step.lines) - 1, lines: 1, ..step };
            }
            step.act = if step.act == Act::DependentLoad { Act::Chase } else { Act::Anchor };
        }
        self.out.push(step);
    }
}
