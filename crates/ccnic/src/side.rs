//! What host and NIC have in common: the region, the ledger, and the allocator of one thread.

use std::sync::Arc;

use crate::buf::RawBuf;
use crate::config::Config;
use crate::desc::{Desc, MAX_SEGMENTS, MORE};
use crate::error::{Error, Fault};
use crate::layout::{Class, RegionLayout};
use crate::ledger::{Ledger, Owner};
use crate::raw::Region;

/// Everything the threads of one side share.
pub(crate) struct Shared {
    pub region: Region,
    pub config: Config,
    pub layout: RegionLayout,
    pub ledger: Ledger,
}

impl Shared {
    pub fn new(region: Region, config: Config, layout: RegionLayout) -> Arc<Shared> {
        let ledger = Ledger::new(layout.total());
        Arc::new(Shared { region, config, layout, ledger })
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
                if large && self.0.ledger.shift(0, b.index, Owner::User, Owner::Away) {
                    scratch[n] = self.0.layout.addr(b.index);
                    n += 1;
                } else {
                    own += usize::from(large && self.0.ledger.drop_ref(b.index));
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

/// Which queues of a port have been opened; each is opened once.
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

    pub fn count(&self) -> usize {
        self.0.iter().filter(|open| **open).count()
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
    scratch: Box<[u64]>,
}

impl Side {
    pub fn new(shared: Arc<Shared>, epoch: u32) -> Side {
        let room = shared.config.stack as usize + 256;
        let scratch = vec![0; 256].into_boxed_slice();
        Side {
            shared,
            epoch,
            stats: Stats::default(),
            stacks: [Vec::with_capacity(room), Vec::with_capacity(room)],
            scratch,
        }
    }

    /// Forgets the stacks; only after the host took their buffers back.
    pub fn forget(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.stacks.iter_mut().for_each(Vec::clear);
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
    pub fn alloc(&mut self, hint: usize, out: &mut [RawBuf]) -> usize {
        let class = self.class_for(hint);
        let mut n = self.alloc_class(class, out);
        if class == Class::Small && n < out.len() {
            n += self.alloc_class(Class::Large, &mut out[n..]);
        }
        n
    }

    #[inline]
    fn alloc_class(&mut self, class: Class, out: &mut [RawBuf]) -> usize {
        let mut n = 0;
        while n < out.len() {
            let Some(index) = self.stacks[class as usize].pop() else {
                if self.refill(class, out.len() - n) == 0 {
                    break;
                }
                continue;
            };
            let ok = self.shared.ledger.shift(self.epoch, index, Owner::Stack, Owner::User);
            debug_assert!(ok, "a stacked buffer is recorded as stacked");
            out[n] = RawBuf { addr: self.shared.layout.addr(index), index, len: 0, flags: 0 };
            n += 1;
        }
        n
    }

    /// Moves buffers from the pool to the (empty) stack.
    #[cold]
    fn refill(&mut self, class: Class, want: usize) -> usize {
        let shared = &self.shared;
        let bulk = if shared.config.recycle { shared.config.bulk as usize } else { want };
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
            return shared.ledger.drop_ref(index) || shared.ledger.shift(self.epoch, index, Owner::User, Owner::Away);
        }
        if !shared.ledger.shift(self.epoch, index, Owner::User, Owner::Stack) {
            let dropped = shared.ledger.drop_ref(index);
            self.stats.misuse += u64::from(!dropped);
            return dropped;
        }
        let class = if index < shared.layout.spans[1].first() { 0 } else { 1 };
        self.stacks[class].push(index);
        if shared.config.recycle && self.stacks[class].len() > shared.config.stack as usize {
            self.spill(class, self.stacks[class].len() / 2);
        }
        true
    }

    /// Ends a burst of frees: without recycling everything goes to the pool at once.
    #[inline]
    pub fn free_done(&mut self) {
        if !self.shared.config.recycle {
            for class in [0, 1] {
                let n = self.stacks[class].len();
                if n > 0 {
                    self.spill(class, n);
                }
            }
        }
    }

    /// Moves the coldest `n` buffers of a stack to the pool.
    fn spill(&mut self, class: usize, n: usize) {
        let shared = &self.shared;
        for &index in &self.stacks[class][..n] {
            shared.ledger.shift(self.epoch, index, Owner::Stack, Owner::Away);
        }
        let addrs = self.stacks[class][..n].iter().map(|&i| shared.layout.addr(i));
        shared.layout.pools[class].put(&shared.region, addrs);
        self.stacks[class].drain(..n);
        self.stats.pool_puts += n as u64;
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

    /// Validates an incoming descriptor and takes its buffer, unless it is only lent. Returns
    /// the buffer's index.
    #[inline(always)]
    pub fn accept(&mut self, d: Desc, lent: bool) -> Result<u32, Fault> {
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
        self.stats.rx += 1;
        self.stats.rx_bytes += u64::from(d.len());
        Ok(place.index())
    }

    /// Checks a buffer the caller wants to send: it owns it, and the span is inside it.
    #[inline]
    pub fn may_send(&mut self, b: &RawBuf) -> bool {
        let shared = &self.shared;
        let ok = shared.layout.check(b.desc(false)).is_some_and(|p| p.index() == b.index)
            && shared.ledger.is_user(self.epoch, b.index);
        self.stats.misuse += u64::from(!ok);
        ok
    }
}
