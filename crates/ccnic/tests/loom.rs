//! Exhaustive interleavings (up to a preemption bound) of the ring and pool protocols: the
//! production code over loom's atomics. Payloads are loom cells, so a hand-over that does not
//! order the payload accesses fails the model.

use ccnic::mem::Mem;
use ccnic::pool::FreeRing;
use ccnic::post::{PostHost, PostNic};
use ccnic::ring::{Consumer, Producer, Shape};
use ccnic::Desc;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;

struct Model {
    words: Vec<AtomicU64>,
    payload: Vec<UnsafeCell<u64>>,
}

impl Model {
    fn new(words: usize, buffers: usize) -> Arc<Model> {
        Arc::new(Model {
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
        self.words[word].store(value, Ordering::Release)
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
        let mut ring = PostHost::new(shape.clone());
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
        let turn = move |mem: &Model| {
            let mut held = [0; 2];
            let n = pool.take(mem, &mut held);
            for &buffer in &held[..n] {
                mem.write(buffer, mem.read(buffer) + 1);
            }
            pool.put(mem, held[..n].iter().copied());
            n as u64
        };
        let other = mem.clone();
        let thread = loom::thread::spawn(move || turn(&other));
        let took = turn(&mem) + thread.join().expect("other side");
        let mut rest = [0; 2];
        assert_eq!(pool.take(&*mem, &mut rest), 2, "all buffers are back");
        rest.sort_unstable();
        assert_eq!(rest, [1, 2]);
        assert_eq!(mem.read(1) + mem.read(2), took);
    });
}
