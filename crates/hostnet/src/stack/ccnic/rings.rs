//! Descriptor rings of CC-NIC as words and rules, without timing: docs/ccnic/protocol.md, "Rings".
//!
//! `RingWords` is the content of shared memory, which all threads can see. Producers and consumers keep their own
//! indices. A store of either side is a `RingChange`, which takes effect when the store becomes visible. Each side
//! reports the lines that it reads and writes.
//!
//! ```text
//!   unit   free --publish (signal last)--> ready --poll--> consumed --clear, in ring order--> free
//! ```

use crate::kernel::{Int, LineAddr};

/// Maximum number of descriptors that share a line.
pub const GROUP: usize = 4;
/// Number of blank buffers that the host posts at a time.
pub const BLANKS: u64 = 32;
/// Number of vacant slots at or above which the host posts blank buffers.
pub const BLANKS_LEAST: u64 = 8;

/// Flag of a buffer that the sender keeps: the receiver reads the buffer and must not free it.
pub const NO_RECYCLE: u16 = 2;
/// Flag of a descriptor whose packet has another segment: in the next slot, or in the next unit where a unit has only
/// one slot.
pub const MORE: u16 = 4;
/// Flag of a descriptor whose packet continues in the buffer of the next descriptor, because no buffer holds all of it.
pub const CHAINED: u16 = 16;
/// Flag of a second segment: an object that the sender owns, not data in the buffer that the descriptor names.
pub const EXTERNAL: u16 = 8;

/// One descriptor: a buffer number counted from one, the bytes and the flags. A descriptor of zeros is a blank slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Desc {
    /// Number of the buffer, counted from one.
    pub buffer: u32,
    /// Bytes in the buffer.
    pub bytes: u16,
    /// Flags of the buffer.
    pub flags: u16,
}

/// Signal of a unit, which tells the other side the unit's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnitSignal {
    /// The unit is free.
    #[default]
    Clear,
    /// The unit holds a blank buffer that the host has posted.
    Posted,
    /// The unit holds packets.
    Ready,
}

/// Unit of descriptors covered by one signal: a line of up to four descriptors, or one descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DescriptorUnit {
    /// The descriptors.
    pub slots: [Desc; GROUP],
    /// Signal of the unit.
    pub signal: UnitSignal,
}

/// Location and format of a ring. Lines are 64-byte line numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingShape {
    /// First line of the ring.
    pub base: LineAddr,
    /// Number of units, a power of two.
    pub units: u64,
    /// Number of units per line.
    pub per_line: u64,
    /// Descriptors of a unit: one or four.
    pub group: usize,
    /// Whether signals use two registers instead of the descriptors' lines.
    pub register: bool,
    /// Line of the producer's register.
    pub tail: LineAddr,
    /// Line of the consumer's register.
    pub head: LineAddr,
    /// Distance in units to the unit that a producer checks to learn which units are free. Consumers clear units in
    /// order, so one clear unit shows that all units before it are clear. With 1 the producer checks each unit that it
    /// is about to write.
    pub probe: u64,
    /// Distance in units to the unit for which a producer requests ownership.
    pub own_ahead: u64,
    /// Maximum number of lines that a consumer fetches ahead while it finds successive lines ready.
    pub read_ahead: u64,
    /// Whether the read-ahead represents a core's speculation, which works with any layout and ends with a burst.
    /// Otherwise the read-ahead represents software, which fetches only grouped lines.
    pub speculates: bool,
}

impl RingShape {
    /// The line whose value shows whether unit `next` is ready; None when that is known, because all units below
    /// `ready_to` are ready.
    fn line_to_check(&self, next: u64, ready_to: u64) -> Option<LineAddr> {
        match self.register {
            true => (next == ready_to).then_some(self.tail),
            false => Some(self.line(next)),
        }
    }

    /// Line of unit `index`; indices continue to increase from round to round.
    pub fn line(&self, index: u64) -> LineAddr {
        self.base + index % self.units / self.per_line
    }
}

/// Content of shared memory for one ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingWords {
    /// Units of the ring.
    pub units: Vec<DescriptorUnit>,
    /// Index of the unit that was last written to each place; None where none was. A thread sees its own stores before they become
    /// visible, and so never mistakes what a place held a round ago for the unit that it has written or cleared since.
    holds: Vec<Option<u64>>,
    /// Value of the producer's register.
    pub tail: u64,
    /// Value of the consumer's register.
    pub head: u64,
}

/// Change of shared memory by a store in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingChange {
    /// Unit `index` receives these descriptors and this signal.
    Unit {
        /// Number of the unit.
        index: u64,
        /// New content of the unit.
        unit: DescriptorUnit,
    },
    /// The signals of the units from `from` to below `to` are cleared.
    Clear {
        /// Number of the first unit that is cleared.
        from: u64,
        /// Number after the last unit that is cleared.
        to: u64,
    },
    /// The producer's register receives this value.
    Tail(u64),
    /// The consumer's register receives this value.
    Head(u64),
}

impl RingWords {
    /// Words of an empty ring.
    pub fn new(shape: &RingShape) -> RingWords {
        let places = shape.units.to_usize();
        RingWords { units: vec![DescriptorUnit::default(); places], holds: vec![None; places], tail: 0, head: 0 }
    }

    fn place(&self, index: u64) -> usize {
        (index % self.units.len().to_u64()).to_usize()
    }

    fn at(&self, index: u64) -> &DescriptorUnit {
        &self.units[self.place(index)]
    }

    /// Whether unit `index` has `signal`.
    fn has(&self, index: u64, signal: UnitSignal) -> bool {
        self.holds[self.place(index)] == Some(index) && self.at(index).signal == signal
    }

    /// Whether unit `index` can be written, since the unit that was in its place a round ago is clear.
    fn is_free(&self, index: u64) -> bool {
        index.checked_sub(self.units.len().to_u64()).is_none_or(|before| self.has(before, UnitSignal::Clear))
    }

    /// Whether the place of unit `index`, which has been published, is clear again.
    fn is_consumed(&self, index: u64) -> bool {
        self.holds[self.place(index)] >= Some(index) && self.at(index).signal == UnitSignal::Clear
    }

    /// Applies a store that has become visible.
    pub fn apply(&mut self, c: RingChange) {
        match c {
            RingChange::Unit { index, unit } => {
                let place = self.place(index);
                (self.units[place], self.holds[place]) = (unit, Some(index));
            }
            RingChange::Clear { from, to } => {
                for index in from..to {
                    let place = self.place(index);
                    self.units[place].signal = UnitSignal::Clear;
                }
            }
            RingChange::Tail(t) => self.tail = t,
            RingChange::Head(h) => self.head = h,
        }
    }
}

/// Line that a store goes to, and the change that the store makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Publication {
    /// Line that the store goes to.
    pub line: LineAddr,
    /// Change that the store makes.
    pub change: RingChange,
    /// Line for which the producer requests ownership ahead of use.
    pub own_ahead: Option<LineAddr>,
}

/// State of the writing side of a ring.
#[derive(Clone, Debug)]
pub struct Producer {
    /// Shape of the ring.
    pub shape: RingShape,
    next: u64,
    /// Units below this index may be written without a check.
    free_to: u64,
    /// Value of the last store to the tail register, with register signals.
    stored_tail: u64,
}

impl Producer {
    /// The producer of a ring whose words are all clear.
    pub fn new(shape: RingShape) -> Producer {
        Producer { shape, next: 0, free_to: if shape.register { shape.units } else { 0 }, stored_tail: 0 }
    }

    /// Index of the next unit to be written.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Whether `units` more units can be written; calls `read` with each line that the check reads.
    pub fn ensure(&mut self, words: &RingWords, units: u64, read: &mut impl FnMut(LineAddr)) -> bool {
        let want = self.next + units;
        if want <= self.free_to {
            return true;
        }
        let s = &self.shape;
        if s.register {
            read(s.head);
            self.free_to = words.head + s.units;
            return want <= self.free_to;
        }
        let far = (self.next + s.probe.min(s.units / 4)).max(want);
        for to in [far, want] {
            read(s.line(to - 1));
            if words.is_free(to - 1) {
                self.free_to = to;
                return true;
            }
            if far == want {
                break;
            }
        }
        false
    }

    /// Writes a unit of 1 to `group` descriptors; the ring must have room.
    pub fn publish(&mut self, descs: &[Desc]) -> Publication {
        let s = &self.shape;
        debug_assert!(!descs.is_empty() && descs.len() <= s.group);
        let mut unit = DescriptorUnit {
            signal: if s.register { UnitSignal::Clear } else { UnitSignal::Ready },
            ..DescriptorUnit::default()
        };
        unit.slots[..descs.len()].copy_from_slice(descs);
        let index = self.next;
        self.next += 1;
        let ahead = !s.register && s.own_ahead > 0 && self.next + s.own_ahead < self.free_to;
        let line = s.line(index);
        let own_ahead = ahead.then(|| s.line(self.next + s.own_ahead));
        Publication { line, change: RingChange::Unit { index, unit }, own_ahead }
    }

    /// Ends a burst: returns the store to the tail register, if the ring has one and the tail moved.
    pub fn commit(&mut self) -> Option<Publication> {
        (self.shape.register && self.stored_tail != self.next).then(|| {
            self.stored_tail = self.next;
            Publication { line: self.shape.tail, change: RingChange::Tail(self.next), own_ahead: None }
        })
    }

    /// Index up to which units have been consumed, where the caller does not ask about those below `from`.
    pub fn consumed(&self, words: &RingWords, mut from: u64, read: &mut impl FnMut(LineAddr)) -> u64 {
        let s = &self.shape;
        if s.register {
            read(s.head);
            return words.head.max(from);
        }
        let mut line = None;
        while from < self.next {
            if line != Some(s.line(from)) {
                line = Some(s.line(from));
                read(s.line(from));
            }
            if !words.is_consumed(from) {
                break;
            }
            from += 1;
        }
        from
    }
}

/// State of the reading side of a ring.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// Shape of the ring.
    pub shape: RingShape,
    next: u64,
    /// Units below this index have been released to the producer.
    released: u64,
    /// Units below this index are ready, with register signals.
    ready_to: u64,
    lazy: u64,
    /// Units below this index have been fetched ahead.
    fetched: u64,
    /// Number of units found ready in a row.
    streak: u64,
}

impl Consumer {
    /// The consumer of a ring whose words are all clear. The consumer releases units when `lazy` of them are pending or
    /// the ring is three quarters consumed.
    pub fn new(shape: RingShape, lazy: u64) -> Consumer {
        let lazy = lazy.min(shape.units * 3 / 4).max(1);
        Consumer { shape, next: 0, released: 0, ready_to: 0, lazy, fetched: 0, streak: 0 }
    }

    /// The line whose value shows whether a unit is ready; None when a unit is known to be ready.
    pub fn line_to_poll(&self) -> Option<LineAddr> {
        self.shape.line_to_check(self.next, self.ready_to)
    }

    /// Line of the next unit.
    pub fn line(&self) -> LineAddr {
        self.shape.line(self.next)
    }

    /// Whether a poll of the line would find a unit ready in the present content of memory.
    pub fn finds(&self, words: &RingWords) -> bool {
        if self.shape.register {
            return words.tail > self.next;
        }
        words.has(self.next, UnitSignal::Ready)
    }

    /// Takes the next unit, where the burst has room for `more` further units; returns the number of descriptors in the
    /// unit, 0 when no unit is ready. Calls `fetch` with the lines to fetch ahead.
    pub fn poll(
        &mut self,
        words: &RingWords,
        more: u64,
        out: &mut [Desc; GROUP],
        fetch: &mut impl FnMut(LineAddr),
    ) -> usize {
        let s = self.shape;
        let unit = *words.at(self.next);
        if s.register {
            if self.next == self.ready_to {
                self.ready_to = words.tail;
                if self.next == self.ready_to {
                    return 0;
                }
            }
        } else if !words.has(self.next, UnitSignal::Ready) {
            self.streak = 0;
            return 0;
        }
        self.next += 1;
        *out = unit.slots;
        if s.group > 1 || s.speculates {
            self.streak = (self.streak + 1).min(s.read_ahead);
            let known = if s.register { self.ready_to - self.next } else { u64::MAX };
            let ahead = if s.speculates { self.streak.min(more).min(known) } else { self.streak };
            self.fetched = self.fetched.max(self.next);
            while self.fetched < self.next + ahead {
                fetch(s.line(self.fetched));
                self.fetched += 1;
            }
        }
        unit.slots.iter().take_while(|d| **d != Desc::default()).count()
    }

    /// Releases polled units lazily; calls `store` with the stores that release them, one per line or one to the head
    /// register.
    pub fn release(&mut self, store: &mut impl FnMut(Publication)) {
        if self.next - self.released >= self.lazy {
            self.flush(store);
        }
    }

    /// Releases all polled units now; calls `store` with the stores that release them.
    pub fn flush(&mut self, store: &mut impl FnMut(Publication)) {
        let s = &self.shape;
        if self.released == self.next {
            return;
        }
        if s.register {
            store(Publication { line: s.head, change: RingChange::Head(self.next), own_ahead: None });
        } else {
            let mut from = self.released;
            while from < self.next {
                let to = ((from / s.per_line + 1) * s.per_line).min(self.next);
                store(Publication { line: s.line(from), change: RingChange::Clear { from, to }, own_ahead: None });
                from = to;
            }
        }
        self.released = self.next;
    }
}

/// The host's side of a receive ring into which the host posts blank buffers, slot by slot.
#[derive(Clone, Debug)]
pub struct PostHost {
    /// Shape of the ring.
    pub shape: RingShape,
    posted: u64,
    next: u64,
    told: u64,
    ready_to: u64,
}

impl PostHost {
    /// The host's side of an empty ring.
    pub fn new(shape: RingShape) -> PostHost {
        PostHost { shape, posted: 0, next: 0, told: 0, ready_to: 0 }
    }

    /// Number of slots that may be posted. One line's worth of slots stays empty, so that the host never writes the
    /// line that the NIC is reading.
    pub fn vacant(&self) -> u64 {
        self.shape.units - 4 - (self.posted - self.next)
    }

    /// Posts a blank buffer; a slot must be vacant.
    pub fn post(&mut self, buffer: u32) -> Publication {
        let signal = if self.shape.register { UnitSignal::Clear } else { UnitSignal::Posted };
        let mut unit = DescriptorUnit { signal, ..DescriptorUnit::default() };
        unit.slots[0].buffer = buffer;
        let index = self.posted;
        self.posted += 1;
        Publication { line: self.shape.line(index), change: RingChange::Unit { index, unit }, own_ahead: None }
    }

    /// Ends a run of posts: returns the store to the head register, if the ring has one and the head moved.
    pub fn commit(&mut self) -> Option<Publication> {
        (self.shape.register && self.told != self.posted).then(|| {
            self.told = self.posted;
            Publication { line: self.shape.head, change: RingChange::Head(self.posted), own_ahead: None }
        })
    }

    /// The line whose value shows whether a packet is ready; None when a packet is known to be ready.
    pub fn line_to_poll(&self) -> Option<LineAddr> {
        self.shape.line_to_check(self.next, self.ready_to)
    }

    /// Line of the next descriptor that the host reads.
    pub fn line(&self) -> LineAddr {
        self.shape.line(self.next)
    }

    /// Whether a poll of the line would find a packet ready in the present content of memory.
    pub fn finds(&self, words: &RingWords) -> bool {
        self.next < self.posted
            && if self.shape.register { words.tail > self.next } else { words.has(self.next, UnitSignal::Ready) }
    }

    /// Takes the next packet, if one is ready.
    pub fn poll(&mut self, words: &RingWords) -> Option<Desc> {
        if self.next == self.posted {
            return None;
        }
        let unit = words.at(self.next);
        if self.shape.register {
            if self.next == self.ready_to {
                self.ready_to = words.tail;
                if self.next == self.ready_to {
                    return None;
                }
            }
        } else if !words.has(self.next, UnitSignal::Ready) {
            return None;
        }
        self.next += 1;
        Some(unit.slots[0])
    }
}

/// The NIC's side of a receive ring into which the host posts blank buffers.
#[derive(Clone, Debug)]
pub struct PostNic {
    /// Shape of the ring.
    pub shape: RingShape,
    taken: u64,
    next: u64,
    told: u64,
    posted_to: u64,
}

impl PostNic {
    /// The NIC's side of an empty ring.
    pub fn new(shape: RingShape) -> PostNic {
        PostNic { shape, taken: 0, next: 0, told: 0, posted_to: 0 }
    }

    /// Takes the next blank buffer, if the host has posted one; calls `read` with each line that the check reads.
    pub fn take(&mut self, words: &RingWords, read: &mut impl FnMut(LineAddr)) -> Option<u32> {
        let s = &self.shape;
        if self.taken - self.next >= s.units {
            return None;
        }
        let unit = words.at(self.taken);
        if s.register {
            if self.taken == self.posted_to {
                read(s.head);
                self.posted_to = words.head;
                if self.taken == self.posted_to {
                    return None;
                }
            }
            read(s.line(self.taken));
        } else {
            read(s.line(self.taken));
            if !words.has(self.taken, UnitSignal::Posted) {
                return None;
            }
        }
        self.taken += 1;
        Some(unit.slots[0].buffer)
    }

    /// Returns a packet in a blank buffer that was taken.
    pub fn fill(&mut self, desc: Desc) -> Publication {
        debug_assert!(self.next < self.taken);
        let signal = if self.shape.register { UnitSignal::Clear } else { UnitSignal::Ready };
        let mut unit = DescriptorUnit { signal, ..DescriptorUnit::default() };
        unit.slots[0] = desc;
        let index = self.next;
        self.next += 1;
        Publication { line: self.shape.line(index), change: RingChange::Unit { index, unit }, own_ahead: None }
    }

    /// Ends a burst: returns the store to the tail register, if the ring has one and the tail moved.
    pub fn commit(&mut self) -> Option<Publication> {
        (self.shape.register && self.told != self.next).then(|| {
            self.told = self.next;
            Publication { line: self.shape.tail, change: RingChange::Tail(self.next), own_ahead: None }
        })
    }
}
