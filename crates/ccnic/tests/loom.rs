//! Exhaustive interleavings (up to a preemption bound) of the ring and pool protocols: the
//! production code over loom's atomics. Payloads are loom cells, so a hand-over that does not
//! order the payload accesses fails the model.

#![allow(unsafe_code, reason = "loom hands out the contents of a cell as a pointer")]

use ccnic::mem::Mem;
use ccnic::pool::FreeRing;
use ccnic::post::{PostHost, PostNic};
use ccnic::reset;
use ccnic::ring::{Consumer, Producer, Shape};
use ccnic::Desc;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;

struct Model {
    words: Vec<AtomicU64>,
    payload: Vec<UnsafeCell<u64>>,
    /// True where words are stored by exchange. Loom lets a plain store fall between the two halves of another thread's
    /// compare-and-swap, which no machine does.
    exchange: bool,
}

impl Model {
    fn new(words: usize, buffers: usize) -> Arc<Model> {
        Model::with(words, buffers, false)
    }

    fn with(words: usize, buffers: usize, exchange: bool) -> Arc<Model> {
        Arc::new(Model {
            exchange,
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            payload: (0..buffers).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    fn write(&self, buffer: u64, value: u64) {
        // SAFETY: loom checks that no other access is concurrent; that is the test.
        self.payload[buffer as usize].with_mut(|p| unsafe { *p = value });
    }

    fn read(&self, buffer: u64) -> u64 {
        // SAFETY: as above.
        self.payload[buffer as usize].with(|p| unsafe { *p })
    }
}

impl Mem for Model {
    fn get(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }
    fn get_acquire(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Acquire)
    }
    fn put(&self, word: usize, value: u64) {
        self.words[word].store(value, Ordering::Relaxed)
    }
    fn put_release(&self, word: usize, value: u64) {
        if self.exchange {
            self.words[word].swap(value, Ordering::Release);
        } else {
            self.words[word].store(value, Ordering::Release)
        }
    }
    fn add(&self, word: usize, value: u64) -> u64 {
        self.words[word].fetch_add(value, Ordering::AcqRel)
    }
    fn swap_if(&self, word: usize, old: u64, new: u64) -> bool {
        self.words[word].compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
    fn fence(&self) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
    fn heavy_fence(&self) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
    fn light_fence(&self) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

fn shape(unit_words: usize, group: usize, register: bool) -> Shape {
    Shape { base: 0, units: 2, unit_words, group, register, tail: 16, head: 17 }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Sends buffers 1, 2, 3 (a ring holds two units), one per unit, and rewrites the first one
/// after its unit came back: completion must order the reader's access before that.
fn ring_hands_over(shape: Shape) {
    check(move || {
        let mem = Model::new(18, 4);
        let (reader, s) = (mem.clone(), shape.clone());
        let consumer = loom::thread::spawn(move || {
            let mut ring = Consumer::new(s, 1);
            let mut line = [Desc::default(); 4];
            let mut got = 0;
            while got < 3 {
                let n = ring.poll(&*reader, &mut line).expect("an honest producer");
                if n == 0 {
                    loom::thread::yield_now();
                    continue;
                }
                assert_eq!(n, 1);
                got += 1;
                assert_eq!(line[0].addr, got, "in order");
                assert_eq!(reader.read(line[0].addr), 10 + got);
                ring.release(&*reader);
            }
        });
        let mut ring = Producer::new(shape.clone());
        for buffer in 1..=3 {
            mem.write(buffer, 10 + buffer);
            while !ring.ensure(&*mem, 1).expect("an honest consumer") {
                loom::thread::yield_now();
            }
            ring.publish(&*mem, &[Desc::new(buffer, 8, 0)]);
            ring.commit(&*mem);
        }
        while ring.consumed(&*mem, 0).expect("an honest consumer") < 1 {
            loom::thread::yield_now();
        }
        mem.write(1, 99);
        consumer.join().expect("consumer");
    });
}

#[test]
fn grouped_inline_ring() {
    ring_hands_over(shape(8, 4, false));
}

#[test]
fn packed_inline_ring() {
    ring_hands_over(shape(2, 1, false));
}

#[test]
fn packed_register_ring() {
    ring_hands_over(shape(2, 1, true));
}

/// The producer probes ahead once a quarter of the ring is two units or more: it then writes a
/// line that it has not looked at. `lines` of a ring of eight, from a start near the ring's end,
/// so that a lap ends inside; two descriptors a line. The reader gives lines back two at a time.
fn probing_ahead(start: u64, lines: u64) {
    check(move || {
        let wide = Shape { base: 0, units: 8, unit_words: 8, group: 4, register: false, tail: 64, head: 65 };
        let mem = Model::new(66, 2 * (start + lines) as usize + 1);
        let mut ring = Producer::new(wide.clone());
        let mut reader_ring = Consumer::new(wide, 2);
        let mut line = [Desc::default(); 4];
        // Alone so far: the lines of the first lap, given back but for the last.
        for unit in 0..start {
            assert!(ring.ensure(&*mem, 1).expect("an honest consumer"));
            ring.publish(&*mem, &[Desc::new(2 * unit + 1, 8, 0)]);
            assert_eq!(reader_ring.poll(&*mem, &mut line).expect("an honest producer"), 1);
            reader_ring.release(&*mem);
        }
        let reader = mem.clone();
        let consumer = loom::thread::spawn(move || {
            let (mut unit, mut line) = (start, [Desc::default(); 4]);
            while unit < start + lines {
                match reader_ring.poll(&*reader, &mut line).expect("an honest producer") {
                    0 => loom::thread::yield_now(),
                    n => {
                        assert_eq!(n, 2, "a line appears whole");
                        for (i, d) in line[..2].iter().enumerate() {
                            assert_eq!(d.addr, 2 * unit + 1 + i as u64, "in order, and none is overwritten");
                            assert_eq!(reader.read(d.addr), 7 * d.addr);
                        }
                        unit += 1;
                        reader_ring.release(&*reader);
                    }
                }
            }
            reader_ring.flush(&*reader);
        });
        for unit in start..start + lines {
            let pair = [2 * unit + 1, 2 * unit + 2];
            pair.iter().for_each(|&b| mem.write(b, 7 * b));
            while !ring.ensure(&*mem, 1).expect("an honest consumer") {
                loom::thread::yield_now();
            }
            ring.publish(&*mem, &pair.map(|b| Desc::new(b, 8, 0)));
        }
        consumer.join().expect("consumer");
    });
}

#[test]
fn lines_of_several_descriptors_while_probing_ahead() {
    probing_ahead(0, 3);
}

#[test]
fn lines_of_several_descriptors_over_the_end_of_a_lap() {
    probing_ahead(6, 4);
}

/// A full ring: the producer is stopped by lines that are not given back, and goes on after.
#[test]
fn a_full_ring_of_lines_waits_for_the_reader() {
    probing_ahead(0, 9);
}

/// Lent buffers: completed in order, and only after the reader has read them.
#[test]
fn lent_buffers_are_swept_after_their_payload_was_read() {
    check(|| {
        let wide = Shape { base: 0, units: 4, unit_words: 8, group: 4, register: false, tail: 32, head: 33 };
        let mem = Model::new(34, 5);
        let (reader, s) = (mem.clone(), wide.clone());
        let consumer = loom::thread::spawn(move || {
            let (mut ring, mut line, mut got) = (Consumer::new(s, 1), [Desc::default(); 4], 0);
            while got < 4 {
                let n = ring.poll(&*reader, &mut line).expect("an honest producer");
                if n == 0 {
                    loom::thread::yield_now();
                }
                for d in &line[..n] {
                    got += 1;
                    assert_eq!(reader.read(d.addr), 50 + d.addr, "not before this read does it change");
                }
                ring.release(&*reader);
            }
        });
        let mut ring = Producer::new(wide);
        for pair in [[1, 2], [3, 4]] {
            pair.iter().for_each(|&b| mem.write(b, 50 + b));
            assert!(ring.ensure(&*mem, 1).expect("an honest consumer"));
            ring.publish(&*mem, &pair.map(|b| Desc::new(b, 8, ccnic::NO_RECYCLE)));
        }
        let mut swept = 0;
        while swept < 2 {
            let to = ring.consumed(&*mem, swept).expect("an honest consumer");
            for unit in swept..to {
                // The sender has them back and writes at once.
                mem.write(2 * unit + 1, 0);
                mem.write(2 * unit + 2, 0);
            }
            if to == swept {
                loom::thread::yield_now();
            }
            swept = to;
        }
        consumer.join().expect("consumer");
    });
}

/// Words of the control pages, a NIC's two queues included; one more for what a reset clears.
const CONTROL: usize = 64;

/// The NIC of `term` takes queue `queue`.
fn attach(mem: &Model, queue: usize, term: u32) {
    reset::offer(mem, queue, term);
    assert!(reset::attach(mem, queue, term));
}

/// A reset: the host rewrites the rings only when the queue has stopped, and the queue uses them
/// only when the host has finished. Another queue that is closed is not waited for.
#[test]
fn a_reset_never_meets_a_running_queue() {
    check(|| {
        let mem = Model::new(CONTROL, 1);
        reset::go(&*mem, 1);
        (0..2).for_each(|q| attach(&mem, q, 1));
        reset::acknowledge(&*mem, 0, 1, 1);
        let other = mem.clone();
        let queue = loom::thread::spawn(move || {
            let (mut epoch, mut running) = (1, true);
            for _ in 0..3 {
                let ask = reset::asked(&*other);
                if ask != epoch {
                    epoch = ask;
                    running = false;
                    reset::acknowledge(&*other, 0, 1, ask);
                }
                running |= reset::may_run(&*other, epoch);
                if running {
                    // A round over this queue's rings; loom sees it if the host is there.
                    other.write(0, epoch);
                }
                loom::thread::yield_now();
            }
            reset::acknowledge(&*other, 0, 1, reset::CLOSED);
        });
        reset::ask(&*mem, 2);
        while !(0..2).all(|q| reset::stopped(&*mem, q, 1, 2)) {
            loom::thread::yield_now();
        }
        mem.write(0, 0);
        reset::go(&*mem, 3);
        queue.join().expect("queue");
    });
}

/// A queue that opens while the host asks: either the host waits for it, or it sees the question.
#[test]
fn a_queue_that_opens_during_a_reset_is_not_overlooked() {
    check(|| {
        let mem = Model::new(CONTROL, 1);
        attach(&mem, 0, 1);
        reset::go(&*mem, 1);
        let other = mem.clone();
        let nic = loom::thread::spawn(move || {
            reset::open(&*other, 0, 1);
            let ask = reset::asked(&*other);
            if ask == 1 {
                // It runs in the old epoch for a round, and then sees the question.
                other.write(0, 1);
            }
            let ask = loop {
                let ask = reset::asked(&*other);
                if ask != 1 {
                    break ask;
                }
                loom::thread::yield_now();
            };
            reset::acknowledge(&*other, 0, 1, ask);
        });
        reset::ask(&*mem, 2);
        while !reset::stopped(&*mem, 0, 1, 2) {
            loom::thread::yield_now();
        }
        mem.write(0, 2);
        nic.join().expect("nic");
    });
}

/// A NIC that was replaced wakes up at any instant and says whatever it has to say: that it has stopped, that it opens, that it
/// leaves. None of it counts for its successor, and none of it hides what the successor says.
#[test]
fn a_replaced_nic_never_speaks_for_its_successor() {
    check(|| {
        let mem = Model::with(CONTROL, 0, true);
        attach(&mem, 0, 1);
        reset::go(&*mem, 1);
        let other = mem.clone();
        let old = loom::thread::spawn(move || {
            let ask = reset::asked(&*other);
            reset::acknowledge(&*other, 0, 1, ask);
            reset::open(&*other, 0, 1);
            reset::acknowledge(&*other, 0, 1, reset::CLOSED);
            assert!(!reset::attach(&*other, 0, 1));
        });
        attach(&mem, 0, 2);
        reset::open(&*mem, 0, 2);
        reset::ask(&*mem, 2);
        assert!(!reset::stopped(&*mem, 0, 2, 2), "the successor has said nothing");
        reset::acknowledge(&*mem, 0, 2, 2);
        assert!(reset::stopped(&*mem, 0, 2, 2), "and now it has");
        old.join().expect("the old NIC");
    });
}

/// A host that gives up on a NIC which attaches itself at that moment: both know which of them was first.
#[test]
fn an_offer_is_taken_or_withdrawn_and_never_both() {
    check(|| {
        let mem = Model::with(CONTROL, 0, true);
        reset::offer(&*mem, 0, 1);
        let other = mem.clone();
        let nic = loom::thread::spawn(move || reset::attach(&*other, 0, 1));
        let withdrawn = reset::withdraw(&*mem, 0, 1);
        assert!(withdrawn != nic.join().expect("the NIC"));
    });
}

/// Going to sleep and publishing at the same moment: the sleeper sees the unit or is woken.
#[test]
fn no_wake_up_is_lost() {
    check(|| {
        let mem = Model::new(40, 1);
        let (ring, sleeps) =
            (Shape { base: 0, units: 2, unit_words: 8, group: 4, register: false, tail: 16, head: 17 }, 32);
        let bell = Arc::new(AtomicU64::new(0));
        let (other, s, rung) = (mem.clone(), ring.clone(), bell.clone());
        let sleeper = loom::thread::spawn(move || {
            let ring = Consumer::new(s, 1);
            reset::fall_asleep(&*other, sleeps);
            if !ring.peek(&*other) {
                // Asleep: only the bell ends this.
                while rung.load(Ordering::Acquire) == 0 {
                    loom::thread::yield_now();
                }
            }
            assert!(ring.peek(&*other));
        });
        let mut producer = Producer::new(ring);
        assert!(producer.ensure(&*mem, 1).expect("free"));
        producer.publish(&*mem, &[Desc::new(1, 8, 0)]);
        if reset::must_wake(&*mem, sleeps) {
            bell.store(1, Ordering::Release);
        }
        sleeper.join().expect("sleeper");
    });
}

/// Takes up to `N` buffers, changes what they hold, and puts them back; returns how many.
fn turn<const N: usize>(pool: &FreeRing, mem: &Model) -> u64 {
    let mut held = [0; N];
    let n = pool.take(mem, &mut held);
    for &buffer in &held[..n] {
        mem.write(buffer, mem.read(buffer) + 1);
    }
    pool.put(mem, held[..n].iter().copied());
    n as u64
}

/// The laps of the pool's slots are 16 bits: after 2^16 laps they begin again.
#[test]
fn the_pool_goes_on_over_the_end_of_its_laps() {
    check(|| {
        let mem = Model::new(16 + 2, 3);
        let pool = FreeRing::new(0, 2);
        // Two positions before the lap returns to zero.
        let near = (1 << 17) - 4;
        mem.put(0, near);
        mem.put(8, near);
        pool.put(&*mem, [1, 2].into_iter());
        let other = mem.clone();
        let thread = loom::thread::spawn(move || turn::<1>(&pool, &other) + turn::<1>(&pool, &other));
        let took = turn::<1>(&pool, &mem) + thread.join().expect("other side");
        let mut rest = [0; 2];
        assert_eq!(pool.take(&*mem, &mut rest), 2, "all buffers are back");
        rest.sort_unstable();
        assert_eq!((rest, mem.read(1) + mem.read(2)), ([1, 2], took));
    });
}

/// A two-segment packet in single slots is never seen in part.
#[test]
fn chained_slots_appear_together() {
    check(|| {
        let mem = Model::new(18, 3);
        let reader = mem.clone();
        let consumer = loom::thread::spawn(move || {
            let mut ring = Consumer::new(shape(2, 1, false), 1);
            let mut line = [Desc::default(); 4];
            loop {
                match ring.poll(&*reader, &mut line).expect("an honest producer") {
                    0 => loom::thread::yield_now(),
                    n => {
                        assert_eq!(n, 2);
                        assert_eq!((reader.read(1), reader.read(2)), (11, 12));
                        return;
                    }
                }
            }
        });
        let mut ring = Producer::new(shape(2, 1, false));
        mem.write(1, 11);
        mem.write(2, 12);
        assert!(ring.ensure(&*mem, 2).expect("an honest consumer"));
        ring.publish(&*mem, &[Desc::new(1, 8, ccnic::MORE), Desc::new(2, 8, 0)]);
        consumer.join().expect("consumer");
    });
}

/// Host-only RX: the blank goes to the NIC and comes back filled.
fn posted_blank_returns_filled(register: bool) {
    check(move || {
        let mem = Model::new(34, 3);
        let shape = Shape { units: 8, tail: 32, head: 33, ..shape(2, 1, register) };
        let (other, s) = (mem.clone(), shape.clone());
        let nic = loom::thread::spawn(move || {
            let mut ring = PostNic::new(s);
            let mut done = 0;
            while done < 2 {
                match ring.take(&*other).expect("an honest host") {
                    None => loom::thread::yield_now(),
                    Some(addr) => {
                        other.write(addr, 20 + addr);
                        ring.fill(&*other, &[Desc::new(addr, 8, 0)]);
                        ring.commit(&*other);
                        done += 1;
                    }
                }
            }
        });
        let mut ring = PostHost::new(shape.clone(), usize::MAX);
        for buffer in 1..=2 {
            mem.write(buffer, 0);
            ring.post(&*mem, buffer);
            ring.commit(&*mem);
        }
        let mut got = 0;
        while got < 2 {
            let mut line = [Desc::default(); 4];
            match ring.poll(&*mem, &mut line).expect("an honest NIC") {
                0 => loom::thread::yield_now(),
                n => {
                    got += 1;
                    assert_eq!((n, line[0].addr, mem.read(line[0].addr)), (1, got, 20 + got));
                }
            }
        }
        nic.join().expect("nic");
    });
}

#[test]
fn post_ring_inline() {
    posted_blank_returns_filled(false);
}

#[test]
fn post_ring_register() {
    posted_blank_returns_filled(true);
}

/// Two sides take and put back over a pool that wraps; whoever holds a buffer is alone.
#[test]
fn pool_never_hands_a_buffer_to_two() {
    check(|| {
        let mem = Model::new(16 + 2, 3);
        let pool = FreeRing::new(0, 2);
        pool.put(&*mem, [1, 2].into_iter());
        let other = mem.clone();
        let thread = loom::thread::spawn(move || turn::<2>(&pool, &other));
        let took = turn::<2>(&pool, &mem) + thread.join().expect("other side");
        let mut rest = [0; 2];
        assert_eq!(pool.take(&*mem, &mut rest), 2, "all buffers are back");
        rest.sort_unstable();
        assert_eq!(rest, [1, 2]);
        assert_eq!(mem.read(1) + mem.read(2), took);
    });
}
