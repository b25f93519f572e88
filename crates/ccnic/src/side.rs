//! State that host and NIC have in common: the region, the ledger, and the allocator of one thread.

use std::sync::atomic::AtomicU32;
use std::sync::Arc;

use crate::bell::Bells;
use crate::buf::RawBuf;
use crate::config::Config;
use crate::desc::{Desc, MAX_SEGMENTS, MORE};
use crate::error::{Error, Fault};
use crate::layout::{self, Class, RegionLayout};
use crate::ledger::{Ledger, Owner};
use crate::mem::Mem;
use crate::raw::Region;

/// Everything the threads of one side share.
pub(crate) struct Shared {
    pub region: Region,
    pub config: Config,
    pub layout: RegionLayout,
    pub ledger: Ledger,
    pub bells: Bells,
    /// Most bytes of a frame that the host sends.
    pub frame: AtomicU32,
    /// Features that host and NIC agree on.
    pub agreed: AtomicU32,
}

impl Shared {
    pub fn new(region: Region, config: Config, layout: RegionLayout) -> Arc<Shared> {
        let ledger = Ledger::new(layout.total(), config.queues > 1);
        let bells = Bells::new(config.queues);
        let frame = AtomicU32::new(config.frame());
        Arc::new(Shared { region, config, layout, ledger, bells, frame, agreed: AtomicU32::new(0) })
    }

    /// Takes up to `scratch.len()` buffers of a class from the pool for `owner` and passes
    /// them to `keep`, in the pool's order. Returns how many, and how many entries were not
    /// free buffers of that class: those are dropped, and if the peer forged them, the
    /// buffers they should have been are found again at the next reset.
    fn pool_take(
        &self,
        epoch: u32,
        class: Class,
        owner: Owner,
        scratch: &mut [u64],
        mut keep: impl FnMut(usize, u32),
    ) -> (usize, usize) {
        let got = self.layout.pools[class as usize].take(&self.region, scratch);
        let mut kept = 0;
        for &addr in &scratch[..got] {
            let place = self.layout.locate(addr).filter(|p| p.class() == class);
            match place {
                Some(p) if self.ledger.shift(epoch, p.index(), Owner::Away, owner) => {
                    keep(kept, p.index());
                    kept += 1;
                }
                _ => {}
            }
        }
        (kept, got - kept)
    }
}

/// The large buffers of a port's shared pool, for threads without a queue and for allocators
/// of other frameworks. `Send` and `Sync`; no call blocks. Not to be used during
/// [`recover`](crate::HostPort::recover), which rebuilds the pool.
#[derive(Clone)]
pub struct HostPool(pub(crate) Arc<Shared>);

impl HostPool {
    const CHUNK: usize = 64;

    /// Takes up to `out.len()` large buffers; returns how many.
    pub fn take(&self, out: &mut [RawBuf]) -> usize {
        let mut scratch = [0; Self::CHUNK];
        let mut done = 0;
        while done < out.len() {
            let most = (out.len() - done).min(Self::CHUNK);
            let to = &mut out[done..];
            let (kept, bad) = self.0.pool_take(0, Class::Large, Owner::User, &mut scratch[..most], |i, index| {
                to[i] = RawBuf { addr: self.0.layout.addr(index), index, len: 0, flags: 0 };
            });
            done += kept;
            if kept + bad == 0 {
                break;
            }
        }
        done
    }

    /// Gives large buffers of the application back. Those with further references lose one
    /// and stay; those it does not own are left alone. Returns how many were its own.
    pub fn put(&self, bufs: &[RawBuf]) -> usize {
        let mut scratch = [0; Self::CHUNK];
        let mut own = 0;
        for chunk in bufs.chunks(Self::CHUNK) {
            let mut n = 0;
            for b in chunk {
                let large = self.0.layout.spans[Class::Large as usize].holds(b.index);
                match large.then(|| self.0.ledger.drop_ref(0, b.index, Owner::Away)).flatten() {
                    Some(true) => {
                        scratch[n] = self.0.layout.addr(b.index);
                        n += 1;
                    }
                    Some(false) => own += 1,
                    None => {}
                }
            }
            if n > 0 {
                self.0.layout.pools[Class::Large as usize].put(&self.0.region, scratch[..n].iter().copied());
            }
            own += n;
        }
        own
    }

    /// Number of large buffers in the pool; a moment's estimate while others use it.
    pub fn available(&self) -> usize {
        let pool = &self.0.layout.pools[Class::Large as usize];
        (pool.len(&self.0.region) as usize).min(self.0.layout.pooled())
    }

    /// The `n`-th large buffer, whoever owns it: an empty handle, the address of its payload,
    /// and the bytes from there to its end.
    pub fn buffer(&self, n: u32) -> Option<(RawBuf, *mut u8, usize)> {
        let layout = &self.0.layout;
        let span = &layout.spans[Class::Large as usize];
        if n >= span.count() {
            return None;
        }
        let index = span.first() + n;
        let addr = layout.addr(index);
        let room = layout.locate(addr)?.room();
        Some((RawBuf { addr, index, len: 0, flags: 0 }, self.0.region.ptr(addr as usize, room), room))
    }
}

/// Record of the queues of a NIC that have been opened; each is opened once.
pub(crate) struct Opened(Vec<bool>);

impl Opened {
    pub fn new(queues: u32) -> Opened {
        Opened(vec![false; queues as usize])
    }

    /// Marks queue `id` as open and returns it as an index.
    pub fn take(&mut self, id: u32) -> Result<usize, Error> {
        let last = self.0.len() - 1;
        match self.0.get_mut(id as usize) {
            None => Err(Error::Config(format!("queue {id} does not exist; the last one is {last}"))),
            Some(true) => Err(Error::Usage("the queue is already open")),
            Some(open) => {
                *open = true;
                Ok(id as usize)
            }
        }
    }
}

/// Counters of one queue; plain numbers, read with [`stats`](crate::HostQueue::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Descriptors sent.
    pub tx: u64,
    /// Payload bytes sent.
    pub tx_bytes: u64,
    /// Descriptors received.
    pub rx: u64,
    /// Payload bytes received.
    pub rx_bytes: u64,
    /// Ring units (lines) published.
    pub units: u64,
    /// Buffers taken from the shared pool.
    pub pool_takes: u64,
    /// Buffers put back to the shared pool.
    pub pool_puts: u64,
    /// Blank RX buffers posted by the host.
    pub posts: u64,
    /// TX buffers the host freed after completion.
    pub sweeps: u64,
    /// Buffers handed over by the caller that it did not own.
    pub misuse: u64,
    /// Faults met.
    pub faults: u64,
    /// Calls that found fewer free buffers than they needed.
    pub starved: u64,
    /// Packets dropped: longer than the MTU or than four buffers.
    pub oversize: u64,
    /// Resets of the port that the queue has followed.
    pub resets: u64,
    /// Times the queue slept (event mode).
    pub sleeps: u64,
    /// Times the queue woke the other side.
    pub wakes: u64,
    /// Packets that the NIC dropped; on the host's side what the NIC says.
    pub drops: u64,
}

impl Stats {
    /// The counters in the order of the C structure.
    pub(crate) fn words(&self) -> [u64; 17] {
        let s = self;
        [
            s.tx,
            s.tx_bytes,
            s.rx,
            s.rx_bytes,
            s.units,
            s.pool_takes,
            s.pool_puts,
            s.posts,
            s.sweeps,
            s.misuse,
            s.faults,
            s.starved,
            s.oversize,
            s.resets,
            s.sleeps,
            s.wakes,
            s.drops,
        ]
    }
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, o: Stats) {
        self.tx += o.tx;
        self.tx_bytes += o.tx_bytes;
        self.rx += o.rx;
        self.rx_bytes += o.rx_bytes;
        self.units += o.units;
        self.pool_takes += o.pool_takes;
        self.pool_puts += o.pool_puts;
        self.posts += o.posts;
        self.sweeps += o.sweeps;
        self.misuse += o.misuse;
        self.faults += o.faults;
        self.starved += o.starved;
        self.oversize += o.oversize;
        self.resets += o.resets;
        self.sleeps += o.sleeps;
        self.wakes += o.wakes;
        self.drops += o.drops;
    }
}

/// Number of buffers at the start of `bufs` that go into the next line (grouped rings: as
/// many whole packets as fit four slots) or are the next packet (single-slot rings).
#[inline]
pub(crate) fn next_chunk(bufs: &[RawBuf], group: usize) -> Result<usize, Error> {
    let mut n = 0;
    loop {
        let mut end = n;
        loop {
            match bufs.get(end) {
                None if end == n => return Ok(n),
                None => return Err(Error::Usage("the last buffer of a burst is marked as having a successor")),
                Some(b) => {
                    end += 1;
                    if b.flags & MORE == 0 {
                        break;
                    }
                }
            }
            if end - n == MAX_SEGMENTS {
                return Err(Error::Usage("a packet has more than four segments"));
            }
        }
        if end > MAX_SEGMENTS {
            return Ok(n);
        }
        n = end;
        if group == 1 || n == MAX_SEGMENTS {
            return Ok(n);
        }
    }
}

/// One thread's endpoint: its recycle stacks in front of the pool.
pub(crate) struct Side {
    pub shared: Arc<Shared>,
    pub epoch: u32,
    pub stats: Stats,
    /// Free buffers of the small and large class, the hottest on top.
    stacks: [Vec<u32>; 2],
    /// Most buffers of a stack. All stacks of both sides together hold at most half of the
    /// pool, so that none is starved by buffers that lie idle in another.
    most: [usize; 2],
    /// True when this side has asked the others for their stacks.
    hungry: bool,
    scratch: Box<[u64]>,
}

impl Side {
    pub fn new(shared: Arc<Shared>, epoch: u32) -> Side {
        let config = &shared.config;
        let most = [0, 1].map(|class: usize| {
            let share = shared.layout.spans[class].count() / (4 * config.queues);
            config.stack.min(share) as usize
        });
        let stacks = most.map(|n| Vec::with_capacity(n + 256));
        let scratch = vec![0; 256].into_boxed_slice();
        Side { shared, epoch, stats: Stats::default(), stacks, most, hungry: false, scratch }
    }

    /// Forgets the stacks; only after the host took their buffers back.
    pub fn forget(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.hungry = false;
        self.stacks.iter_mut().for_each(Vec::clear);
    }

    /// Forgets the stacks of the host's own side, whose ledger outlives the reset; see `forget`.
    pub fn abandon_stacks(&mut self) {
        let Side { shared, stacks, epoch, .. } = self;
        for index in stacks.iter_mut().flat_map(|s| s.drain(..)) {
            shared.ledger.shift(*epoch, index, Owner::Stack, Owner::Away);
        }
        self.hungry = false;
    }

    pub fn stacked(&self) -> usize {
        self.stacks.iter().map(Vec::len).sum()
    }

    /// The class that serves a packet of `hint` bytes (0: unknown).
    #[inline]
    pub fn class_for(&self, hint: usize) -> Class {
        let config = &self.shared.config;
        if config.small && hint != 0 && hint <= config.small_bytes as usize {
            Class::Small
        } else {
            Class::Large
        }
    }

    /// Allocates up to `out.len()` buffers of one class; small falls back to large.
    #[inline]
    pub fn alloc(&mut self, hint: usize, out: &mut [RawBuf]) -> usize {
        let class = self.class_for(hint);
        let mut n = self.alloc_class(class, out);
        if class == Class::Small && n < out.len() {
            n += self.alloc_class(Class::Large, &mut out[n..]);
        }
        if n < out.len() || self.hungry {
            self.hunger(n < out.len());
        }
        n
    }

    /// Counts a shortage and asks the other sides for their stacks, or says that it is over.
    #[cold]
    fn hunger(&mut self, short: bool) {
        self.stats.starved += u64::from(short);
        self.hungry = short;
        // Another side may have found that it is over.
        if short != (self.shared.region.get(layout::W_HUNGER) != 0) {
            self.shared.region.put(layout::W_HUNGER, u64::from(short));
        }
    }

    #[inline]
    fn alloc_class(&mut self, class: Class, out: &mut [RawBuf]) -> usize {
        let mut n = 0;
        while n < out.len() {
            let Side { shared, stacks, stats, epoch, .. } = self;
            let stack = &mut stacks[class as usize];
            let rest = stack.len().saturating_sub(out.len() - n);
            if rest == stack.len() {
                if self.refill(class, out.len() - n) == 0 {
                    break;
                }
                continue;
            }
            for &index in stack[rest..].iter().rev() {
                if shared.ledger.shift(*epoch, index, Owner::Stack, Owner::User) {
                    out[n] = RawBuf { addr: shared.layout.addr_of(class, index), index, len: 0, flags: 0 };
                    n += 1;
                } else {
                    // Freed twice at the same moment by two threads of the application.
                    stats.misuse += 1;
                }
            }
            stack.truncate(rest);
        }
        n
    }

    /// Moves buffers from the pool to the (empty) stack.
    #[cold]
    fn refill(&mut self, class: Class, want: usize) -> usize {
        let shared = &self.shared;
        let bulk = (shared.config.bulk as usize).min(self.most[class as usize]);
        let bulk = if shared.config.recycle && bulk > 0 { bulk } else { want };
        let most = bulk.min(self.scratch.len());
        let stack = &mut self.stacks[class as usize];
        let (kept, bad) =
            shared.pool_take(self.epoch, class, Owner::Stack, &mut self.scratch[..most], |_, index| stack.push(index));
        // The stack pops them in the pool's order; it was empty.
        stack.reverse();
        self.stats.faults += bad as u64;
        self.stats.pool_takes += kept as u64;
        kept
    }

    /// Frees one buffer of the application: drops a reference, and recycles it at the last.
    #[inline]
    pub fn free(&mut self, index: u32) -> bool {
        let shared = &self.shared;
        if index as usize >= shared.layout.pooled() {
            // Objects belong to the application; only their references are counted.
            return shared.ledger.drop_ref(self.epoch, index, Owner::Away).is_some();
        }
        match shared.ledger.drop_ref(self.epoch, index, Owner::Stack) {
            Some(true) => {}
            Some(false) => return true,
            None => {
                self.stats.misuse += 1;
                return false;
            }
        }
        let class = if index < shared.layout.spans[1].first() { 0 } else { 1 };
        self.stacks[class].push(index);
        if self.stacks[class].len() > self.most[class] && shared.config.recycle {
            self.spill(class, self.stacks[class].len() - self.most[class] / 2);
        }
        true
    }

    /// Ends a burst of frees: without recycling, or while somebody starves, everything goes to
    /// the pool at once.
    #[inline]
    pub fn free_done(&mut self) {
        if !self.shared.config.recycle {
            self.spill_all();
        } else if self.shared.region.get(layout::W_HUNGER) != 0 {
            self.feed();
        }
    }

    /// Gives everything to the side that starves, and says that it is over when the pool has half of its large buffers:
    /// as many as there are beside full stacks.
    #[cold]
    fn feed(&mut self) {
        self.spill_all();
        let Shared { region, layout: lay, .. } = &*self.shared;
        let large = Class::Large as usize;
        if lay.pools[large].len(region) >= u64::from(lay.spans[large].count()).div_ceil(2) {
            region.put(layout::W_HUNGER, 0);
        }
    }

    /// Empties the stacks into the pool at the end of a queue, which asks nobody for theirs any more.
    pub fn retire(&mut self) {
        self.spill_all();
        if std::mem::take(&mut self.hungry) {
            self.shared.region.put(layout::W_HUNGER, 0);
        }
    }

    /// Moves the coldest `n` buffers of a stack to the pool.
    fn spill(&mut self, class: usize, n: usize) {
        let shared = &self.shared;
        let mut addrs = Vec::with_capacity(n);
        for index in self.stacks[class].drain(..n) {
            if shared.ledger.shift(self.epoch, index, Owner::Stack, Owner::Away) {
                addrs.push(shared.layout.addr(index));
            }
        }
        self.stats.pool_puts += addrs.len() as u64;
        if !addrs.is_empty() {
            shared.layout.pools[class].put(&shared.region, addrs.into_iter());
        }
    }

    /// Empties the stacks into the pool.
    pub fn spill_all(&mut self) {
        for class in [0, 1] {
            let n = self.stacks[class].len();
            if n > 0 {
                self.spill(class, n);
            }
        }
    }

    /// Gives the buffer of an accepted descriptor up again, without the pool: the reset that
    /// follows the fault finds it.
    pub fn renounce(&mut self, index: u32) {
        self.shared.ledger.shift(self.epoch, index, Owner::User, Owner::Away);
    }

    /// Validates an incoming descriptor and takes its buffer, unless it is only lent. Returns
    /// the buffer's index.
    #[inline(always)]
    pub fn accept(&self, d: Desc, lent: bool) -> Result<u32, Fault> {
        let Some(place) = self.shared.layout.check(d) else {
            return Err(self.shared.layout.why(d));
        };
        if !lent {
            if place.class() == Class::Object {
                return Err(Fault::Address);
            }
            if !self.shared.ledger.shift(self.epoch, place.index(), Owner::Away, Owner::User) {
                return Err(Fault::Owner);
            }
        }
        Ok(place.index())
    }

    /// Checks a buffer the caller wants to send: it owns it, and the span is inside it.
    #[inline]
    pub fn may_send(&mut self, b: &RawBuf) -> bool {
        let shared = &self.shared;
        let ok = shared.layout.check(b.desc(false)).is_some_and(|p| p.index() == b.index)
            && shared.ledger.sends(self.epoch, b.index) > 0;
        self.stats.misuse += u64::from(!ok);
        ok
    }
}
