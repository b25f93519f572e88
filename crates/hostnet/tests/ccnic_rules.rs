//! Tests of the simulator's CC-NIC rings and pool against those of the library (`crates/ccnic`): both receive equal
//! bursts, and their words are compared.

use ccnic::mem::Mem;
use ccnic::{post, ring, Config, HostPort, HostQueue, NicPort, NicQueue};
use hostnet::kernel::LineAddr;
use hostnet::stack::ccnic::pool::{fill_order, BufferCache, BufferCaching, FreeRing, PoolAccess, Pools};
use hostnet::stack::ccnic::rings::{
    Consumer, Desc, DescriptorUnit, PostHost, PostNic, Producer, RingShape, RingWords, UnitSignal, GROUP, NO_RECYCLE,
};
use std::cell::{Cell, RefCell};

const READY: u64 = 1 << 63;
const POSTED: u64 = 1 << 62;
/// Words of a line.
const LINE: usize = 8;

/// The library's memory, and the lines that the library has read or requested.
struct Shared {
    words: Vec<Cell<u64>>,
    read: RefCell<Vec<u64>>,
    own: RefCell<Vec<u64>>,
    ahead: RefCell<Vec<u64>>,
}

impl Shared {
    fn new(words: usize) -> Shared {
        Shared {
            words: vec![Cell::new(0); words],
            read: RefCell::default(),
            own: RefCell::default(),
            ahead: RefCell::default(),
        }
    }
    fn forget(&self) {
        [&self.read, &self.own, &self.ahead].iter().for_each(|l| l.borrow_mut().clear());
    }
}

impl Mem for Shared {
    fn get(&self, word: usize) -> u64 {
        self.words[word].get()
    }
    fn get_acquire(&self, word: usize) -> u64 {
        let line = (word / LINE) as u64;
        if self.read.borrow().last() != Some(&line) {
            self.read.borrow_mut().push(line);
        }
        self.words[word].get()
    }
    fn put(&self, word: usize, value: u64) {
        self.words[word].set(value);
    }
    fn put_release(&self, word: usize, value: u64) {
        self.words[word].set(value);
    }
    fn add(&self, word: usize, value: u64) -> u64 {
        self.words[word].replace(self.words[word].get() + value)
    }
    fn swap_if(&self, word: usize, old: u64, new: u64) -> bool {
        let same = self.words[word].get() == old;
        if same {
            self.words[word].set(new);
        }
        same
    }
    fn fence(&self) {}
    fn heavy_fence(&self) {}
    fn light_fence(&self) {}
    fn prefetch_write(&self, word: usize) {
        self.own.borrow_mut().push((word / LINE) as u64);
    }
    fn prefetch_read(&self, word: usize) {
        self.ahead.borrow_mut().push((word / LINE) as u64);
    }
}

/// Random choices of a test, drawn from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Both descriptions of a ring of `lines` lines at line 2, behind its two registers.
fn shapes(lines: u64, group: usize, per_line: u64, register: bool) -> (RingShape, ring::Shape) {
    let units = lines * per_line;
    let ours = RingShape {
        base: LineAddr(2),
        units,
        per_line,
        group,
        register,
        tail: LineAddr(0),
        head: LineAddr(1),
        probe: 8,
        own_ahead: 2,
        read_ahead: 6,
        speculates: false,
    };
    let unit_words = LINE / per_line as usize;
    let theirs =
        ring::Shape { base: 2 * LINE, units: units as usize, unit_words, group, register, tail: 0, head: LINE };
    (ours, theirs)
}

/// Grouped, packed and padded rings with either signal.
fn forms() -> impl Iterator<Item = (usize, u64, bool)> {
    [(4, 1), (1, 4), (1, 1)].into_iter().flat_map(|(g, l)| [false, true].map(|r| (g, l, r)))
}

/// The contents of both memories are the same. A clear unit has no length: its word is the signal.
fn same_words(ours: &RingWords, s: &RingShape, theirs: &Shared) {
    let word = |at: usize| theirs.words[at].get();
    if s.register {
        assert_eq!((ours.tail, ours.head), (word(0), word(LINE)), "registers");
    }
    for (i, DescriptorUnit { slots, signal }) in ours.units.iter().enumerate() {
        let at = 2 * LINE + i * LINE / s.per_line as usize;
        for (n, d) in slots[..s.group].iter().enumerate() {
            let meta = u64::from(d.bytes) | u64::from(d.flags) << 16;
            let expected = match (n, signal, s.register) {
                (_, _, true) | (1.., _, _) => meta,
                (0, UnitSignal::Clear, _) => 0,
                (0, UnitSignal::Posted, _) => POSTED,
                (0, UnitSignal::Ready, _) => meta | READY,
            };
            assert_eq!(u64::from(d.buffer), word(at + 2 * n), "address of slot {n} of unit {i}");
            assert_eq!(expected, word(at + 2 * n + 1), "signal, flags and length of slot {n} of unit {i}");
        }
    }
}

/// A thread sees its own stores before they become visible to others, as every processor does: a consumer that has cleared a whole
/// ring finds nothing in it, and a producer that has written a unit neither counts it as consumed nor writes over it.
#[test]
fn a_side_sees_its_own_stores_before_they_are_visible() {
    for (group, per_line, register) in forms().filter(|(.., register)| !register) {
        let (shape, _) = shapes(8, group, per_line, register);
        let mut words = RingWords::new(&shape);
        let (mut producer, mut consumer) = (Producer::new(shape), Consumer::new(shape, 1));
        let desc = Desc { buffer: 1, bytes: 64, flags: 0 };
        for round in 0..2 {
            for unit in 0..shape.units {
                assert!(producer.ensure(&words, 1, &mut |_| ()), "round {round}: unit {unit} is free");
                let index = producer.position();
                let store = producer.publish(&[desc]);
                assert_eq!(producer.consumed(&words, index, &mut |_| ()), index, "round {round}: not visible yet");
                words.apply(store.change);
                assert_eq!(
                    producer.consumed(&words, index, &mut |_| ()),
                    index,
                    "round {round}: visible, not consumed"
                );
            }
            assert!(!producer.ensure(&words, 1, &mut |_| ()), "a full ring");
            let (mut out, mut clears) = ([Desc::default(); GROUP], Vec::new());
            for _ in 0..shape.units {
                assert!(consumer.finds(&words));
                assert_eq!(consumer.poll(&words, 0, &mut out, &mut |_| ()), 1);
                consumer.flush(&mut |store| clears.push(store.change));
            }
            assert!(!consumer.finds(&words), "round {round}: the consumer's clears are under way");
            assert_eq!(consumer.poll(&words, 0, &mut out, &mut |_| ()), 0);
            assert!(!producer.ensure(&words, 1, &mut |_| ()), "round {round}: not clear for the producer");
            clears.into_iter().for_each(|change| words.apply(change));
            assert!(!consumer.finds(&words) && producer.consumed(&words, 0, &mut |_| ()) == producer.position());
        }
    }
}

fn same_desc(ours: &Desc, theirs: &ccnic::Desc) {
    let (addr, len, flags) = (u64::from(ours.buffer), ours.bytes, ours.flags);
    assert_eq!((addr, len, flags), (theirs.addr, theirs.len(), theirs.flags()));
}

#[test]
fn rings_hold_and_ask_for_what_those_of_the_library_do_burst_by_burst() {
    for (group, per_line, register) in forms() {
        let (s, t) = shapes(16, group, per_line, register);
        let mem = Shared::new(32 * LINE);
        let mut words = RingWords::new(&s);
        let (mut p, mut q) = (Producer::new(s), ring::Producer::new(t.clone()));
        let (mut c, mut d) = (Consumer::new(s, 3), ring::Consumer::new(t, 3));
        let (mut dice, mut next, mut swept, mut polled) = (Dice(7), 1, 0, 0);
        for _ in 0..20_000 {
            mem.forget();
            match dice.below(8) {
                0..=2 => {
                    let mut read = Vec::new();
                    let room = p.ensure(&words, 1, &mut |l| read.push(l.0));
                    assert_eq!(room, q.ensure(&mem, 1).expect("honest"));
                    assert_eq!(read, *mem.read.borrow(), "lines that the producer looks at");
                    if room {
                        let n = 1 + dice.below(group as u64) as u32;
                        let flags = if dice.below(4) == 0 { NO_RECYCLE } else { 0 };
                        let descs: Vec<Desc> = (0..n).map(|i| Desc { buffer: next + i, bytes: 64, flags }).collect();
                        next += n;
                        let same: Vec<_> =
                            descs.iter().map(|d| ccnic::Desc::new(d.buffer.into(), d.bytes, d.flags)).collect();
                        let store = p.publish(&descs);
                        q.publish(&mem, &same);
                        words.apply(store.change);
                        let own: Vec<u64> = store.own_ahead.iter().map(|l| l.0).collect();
                        assert_eq!(own, *mem.own.borrow(), "lines that the producer asks for");
                    }
                }
                3 => {
                    if let Some(store) = p.commit() {
                        words.apply(store.change);
                    }
                    q.commit(&mem);
                }
                4 | 5 => {
                    let (mut ours, mut theirs) = ([Desc::default(); GROUP], [ccnic::Desc::default(); 4]);
                    let mut ahead = Vec::new();
                    let n = c.poll(&words, 0, &mut ours, &mut |l| ahead.push(l.0));
                    assert_eq!(n, d.poll(&mem, &mut theirs).expect("honest"));
                    assert_eq!(ahead, *mem.ahead.borrow(), "lines that the consumer fetches ahead");
                    ours[..n].iter().zip(&theirs).for_each(|(a, b)| same_desc(a, b));
                    polled += n;
                }
                6 => {
                    let mut stores = Vec::new();
                    c.release(&mut |s| stores.push(s));
                    stores.into_iter().for_each(|s| words.apply(s.change));
                    d.release(&mem);
                }
                _ => {
                    let mut read = Vec::new();
                    let to = p.consumed(&words, swept, &mut |l| read.push(l.0));
                    assert_eq!(to, q.consumed(&mem, swept).expect("honest"));
                    assert_eq!(read, *mem.read.borrow(), "lines that a sweep looks at");
                    swept = to;
                }
            }
            same_words(&words, &s, &mem);
        }
        assert!(polled > 1000, "{polled} descriptors went through");
    }
}

#[test]
fn blank_buffers_are_posted_and_filled_as_in_the_library() {
    for (group, per_line, register) in forms().filter(|f| f.0 == 1) {
        let (s, t) = shapes(8, group, per_line, register);
        let mem = Shared::new(16 * LINE);
        let mut words = RingWords::new(&s);
        let (mut h, mut g) = (PostHost::new(s), post::PostHost::new(t.clone(), t.units));
        let (mut n, mut m) = (PostNic::new(s), post::PostNic::new(t));
        let (mut dice, mut next, mut open, mut came) = (Dice(11), 1u32, Vec::new(), 0);
        for _ in 0..20_000 {
            match dice.below(6) {
                0 => {
                    assert_eq!(h.vacant(), g.vacant() as u64);
                    if h.vacant() > 0 {
                        words.apply(h.post(next).change);
                        g.post(&mem, next.into());
                        next += 1;
                    }
                }
                1 => {
                    for store in [h.commit(), n.commit()].into_iter().flatten() {
                        words.apply(store.change);
                    }
                    g.commit(&mem);
                    m.commit(&mem);
                }
                2 => {
                    let blank = n.take(&words, &mut |_| {});
                    assert_eq!(blank.map(u64::from), m.take(&mem).expect("honest"));
                    open.extend(blank);
                }
                3 if !open.is_empty() => {
                    let desc = Desc { buffer: open.remove(0), bytes: 100, flags: 0 };
                    words.apply(n.fill(desc).change);
                    m.fill(&mem, &[ccnic::Desc::new(desc.buffer.into(), desc.bytes, desc.flags)]);
                }
                _ => {
                    let mut out = [ccnic::Desc::default(); 4];
                    let got = g.poll(&mem, &mut out).expect("honest");
                    match h.poll(&words) {
                        Some(d) => {
                            same_desc(&d, &out[0]);
                            came += got;
                        }
                        None => assert_eq!(got, 0),
                    }
                }
            }
            same_words(&words, &s, &mem);
        }
        assert!(came > 500, "{came} packets came");
    }
}

/// The simulator's rules, combined as in the simulator's threads, without time.
struct Ours {
    pools: Pools,
    host: BufferCache,
    nic: BufferCache,
    tx: (Producer, Consumer, RingWords),
    rx: (Producer, Consumer, RingWords),
    pending: Vec<Desc>,
    filled: Vec<Desc>,
    /// Descriptors of a line for which the last burst had no room.
    held: Vec<u32>,
}

impl Ours {
    fn new(c: &Config) -> Ours {
        let split = if c.small { c.buffers * c.small_percent / 100 } else { 0 };
        let small = split * (c.large_bytes / c.small_bytes);
        let large = fill_order(c.buffers - split, c.large_bytes, c.nonseq).map(|b| small + b);
        let rings = [
            FreeRing::new(LineAddr(0), fill_order(small, c.small_bytes, c.nonseq)),
            FreeRing::new(LineAddr(9000), large),
        ];
        let pools = Pools::new(rings, small, c.small_bytes);
        let keeps =
            if c.recycle { BufferCaching::Stack { most: c.stack, bulk: c.bulk } } else { BufferCaching::Nothing };
        let side = |p: &Pools| BufferCache::new(p, c.queues, keeps);
        let (s, _) = shapes(u64::from(c.slots) / 4, 4, 1, false);
        let ring = |lazy| (Producer::new(s), Consumer::new(s, lazy), RingWords::new(&s));
        let (host, nic) = (side(&pools), side(&pools));
        let (tx, rx) = (ring(c.tx_lazy.into()), ring(c.rx_lazy.into()));
        Ours { host, nic, pools, tx, rx, pending: Vec::new(), filled: Vec::new(), held: Vec::new() }
    }

    fn send(&mut self, buffers: &[u32], bytes: u16) -> usize {
        let mut sent = 0;
        while sent < buffers.len() && self.tx.0.ensure(&self.tx.2, 1, &mut |_| {}) {
            let n = GROUP.min(buffers.len() - sent);
            let of = |b: &u32| Desc { buffer: b + 1, bytes, flags: 0 };
            let descs: Vec<Desc> = buffers[sent..sent + n].iter().map(of).collect();
            let store = self.tx.0.publish(&descs);
            self.tx.2.apply(store.change);
            sent += n;
        }
        sent
    }

    fn loopback(&mut self, most: usize) {
        let mut line = [Desc::default(); GROUP];
        if !self.filled.is_empty() {
            self.publish();
            if !self.filled.is_empty() {
                return;
            }
        }
        let before = self.pending.len();
        while before == 0 && self.pending.len() + GROUP <= most {
            let n = self.tx.1.poll(&self.tx.2, 0, &mut line, &mut |_| {});
            if n == 0 {
                break;
            }
            self.pending.extend(&line[..n]);
        }
        while let Some(from) = self.pending.first().copied() {
            let Some(to) = self.nic.alloc(&mut self.pools, from.bytes.into(), 1, &mut |_| {}).pop() else { break };
            self.filled.push(Desc { buffer: to + 1, ..from });
            self.nic.free(&mut self.pools, from.buffer - 1, &mut |_| {});
            self.pending.remove(0);
        }
        self.nic.free_done(&mut self.pools, &mut |_| {});
        self.publish();
        if self.pending.is_empty() {
            let words = &mut self.tx.2;
            self.tx.1.release(&mut |s| words.apply(s.change));
        }
    }

    fn publish(&mut self) {
        while !self.filled.is_empty() && self.rx.0.ensure(&self.rx.2, 1, &mut |_| {}) {
            let n = GROUP.min(self.filled.len());
            let store = self.rx.0.publish(&self.filled[..n]);
            self.rx.2.apply(store.change);
            self.filled.drain(..n);
        }
    }

    fn receive(&mut self, most: usize) -> Vec<u32> {
        let (mut out, mut line) = (std::mem::take(&mut self.held), [Desc::default(); GROUP]);
        while out.len() < most {
            let n = self.rx.1.poll(&self.rx.2, 0, &mut line, &mut |_| {});
            if n == 0 {
                break;
            }
            out.extend(line[..n].iter().map(|d| d.buffer - 1));
        }
        self.held = out.split_off(out.len().min(most));
        let words = &mut self.rx.2;
        self.rx.1.release(&mut |s| words.apply(s.change));
        out
    }
}

fn theirs(c: &Config) -> (HostPort, NicPort, HostQueue, NicQueue) {
    let mut port = HostPort::create_private(c.clone()).expect("valid");
    let host = port.queue(0).expect("first");
    let mut device = port.local_nic().expect("first");
    let nic = device.queue(0).expect("first");
    (port, device, host, nic)
}

#[test]
fn every_buffer_goes_where_the_library_puts_it() {
    let all = Config::default();
    let configs = [
        all.clone(),
        Config { recycle: false, ..all.clone() },
        Config { small: false, ..all.clone() },
        Config { recycle: false, nonseq: false, ..all.clone() },
        Config { stack: 40, slots: 64, ..all },
    ];
    for config in configs {
        let (_port, _device, mut host, mut nic) = theirs(&config);
        let mut ours = Ours::new(&config);
        let (mut dice, mut came) = (Dice(3), 0);
        for _ in 0..3000 {
            let (n, bytes) = (1 + dice.below(40) as usize, [64, 128, 129, 1500][dice.below(4) as usize]);
            let mut bufs = Vec::new();
            host.alloc(&mut bufs, n, bytes);
            let mine = ours.host.alloc(&mut ours.pools, bytes as u32, n, &mut |_| {});
            assert_eq!(mine, bufs.iter().map(ccnic::Buf::index).collect::<Vec<_>>(), "buffers of a burst of {n}");
            for b in &mut bufs {
                host.write(b, &vec![1; bytes]);
            }
            let sent = host.tx(&mut bufs).expect("honest");
            assert_eq!(sent, ours.send(&mine, bytes as u16), "packets sent");
            host.free(&mut bufs);
            for b in &mine[sent..] {
                ours.host.free(&mut ours.pools, *b, &mut |_| {});
            }
            ours.host.free_done(&mut ours.pools, &mut |_| {});
            for _ in 0..dice.below(3) {
                nic.loopback(32).expect("honest");
                ours.loopback(32);
            }
            let mut got = Vec::new();
            host.rx(&mut got, 32).expect("honest");
            let mine = ours.receive(32);
            let theirs: Vec<u32> = got.iter().map(ccnic::Buf::index).collect();
            assert_eq!(mine, theirs, "received buffers");
            came += mine.len();
            host.free(&mut got);
            mine.iter().for_each(|b| ours.host.free(&mut ours.pools, *b, &mut |_| {}));
            ours.host.free_done(&mut ours.pools, &mut |_| {});
        }
        assert!(came > 10_000, "{came} packets came back");
        let (h, n) = (host.stats(), nic.stats());
        let counts = |s: &BufferCache| (s.counts.takes, s.counts.puts);
        assert_eq!(counts(&ours.host), (h.pool_takes, h.pool_puts), "the host's exchange with the pool");
        assert_eq!(counts(&ours.nic), (n.pool_takes, n.pool_puts), "the NIC's exchange with the pool");
    }
}

/// The cache of `rte_mempool` (DPDK 22.11). A refill leaves the cache filled to its size, so that one call in
/// `size / n + 1` takes buffers from the pool; when there are only puts, one put in `1.5 size / n` first empties the
/// cache.
#[test]
fn a_cache_meets_the_pool_once_for_so_many_bursts_as_fit_it() {
    for (size, n) in [(250, 32), (250, 1), (512, 32), (64, 48), (32, 32)] {
        let mut pools =
            Pools::new([FreeRing::new(LineAddr(0), 0..0), FreeRing::new(LineAddr(9000), 0..20_000)], 0, 128);
        let mut side = BufferCache::new(&pools, 1, BufferCaching::Cache { size });
        let mut meets = |side: &mut BufferCache, bufs: &mut Vec<u32>, put: bool| {
            let mut atomics = 0;
            let mut touch = |t: PoolAccess| atomics += u32::from(matches!(t, PoolAccess::Atomic(_)));
            if put {
                bufs.split_off(bufs.len() - n).into_iter().for_each(|b| side.free(&mut pools, b, &mut touch));
                side.free_done(&mut pools, &mut touch);
            } else {
                bufs.extend(side.alloc(&mut pools, 0, n, &mut touch));
            }
            atomics
        };
        let mut bufs = Vec::new();
        let calls = 10 * (size as usize / n + 1);
        let takes: Vec<u32> = (0..calls).map(|_| meets(&mut side, &mut bufs, false)).collect();
        let expected: Vec<u32> = (0..calls).map(|i| u32::from(i % (size as usize / n + 1) == 0)).collect();
        assert_eq!((takes, bufs.len()), (expected, n * calls), "takes of {n} by a cache of {size}");
        // An empty cache takes as many buffers as fit one and a half times its size.
        let mut side = BufferCache::new(
            &Pools::new([FreeRing::new(LineAddr(0), 0..0), FreeRing::new(LineAddr(0), 0..1)], 0, 128),
            1,
            BufferCaching::Cache { size },
        );
        let fits = size as usize * 3 / 2 / n;
        for i in 0..calls {
            let expected = u32::from(fits == 0 || (i > 0 && i % fits == 0));
            assert_eq!(meets(&mut side, &mut bufs, true), expected, "put {i} of {n} to a cache of {size}");
        }
        // Buffers that are taken and returned in turn never reach the pool.
        let met: u32 = (0..100).map(|i| meets(&mut side, &mut bufs, i % 2 == 1)).sum();
        assert!(met <= 1, "{met} of a hundred calls");
    }
}
