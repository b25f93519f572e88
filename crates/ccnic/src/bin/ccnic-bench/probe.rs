//! Microbenchmarks below the packet interface: cache-line ping-pong and streaming.

use std::sync::Barrier;
use std::time::Instant;

use ccnic::mem::Mem;
use ccnic::{Error, Region};

/// Round trip of a counter between two CPUs, in ns: over one line that both write
/// (`together`) or over a line per direction.
pub fn ping_pong(cpus: (usize, usize), together: bool, rounds: u64) -> Result<f64, Error> {
    let region = Region::memfd(4096, false)?.0;
    let (ping, pong) = (0, if together { 1 } else { 16 });
    let echo = || {
        for i in 1..=rounds {
            wait_at_least(&region, ping, i);
            region.put_release(pong, i);
        }
    };
    on_both(cpus, echo, || {
        let mut start = Instant::now();
        for i in 1..=rounds {
            if i == rounds / 10 {
                start = Instant::now();
            }
            region.put_release(ping, i);
            wait_at_least(&region, pong, i);
        }
        start.elapsed().as_nanos() as f64 / (rounds - rounds / 10 + 1) as f64
    })
}

/// Runs `here` on the first CPU and `there` on the second, beginning together, and returns what `here` returned.
fn on_both<T>(cpus: (usize, usize), there: impl FnOnce() + Send, here: impl FnOnce() -> T) -> Result<T, Error> {
    ccnic::pin_to_cpu(cpus.0)?;
    let moved = Barrier::new(2);
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| {
            ccnic::pin_to_cpu(cpus.1).expect("the CPU was there at the start");
            moved.wait();
            there();
        });
        moved.wait();
        here()
    }))
}

/// Spins until a counter that only grows has reached `value`.
fn wait_at_least(region: &Region, word: usize, value: u64) {
    let mut spins = 0u32;
    while region.get_acquire(word) < value {
        std::hint::spin_loop();
        spins += 1;
        if spins % 4096 == 0 {
            std::thread::yield_now();
        }
    }
}

/// Bytes from one transferred line to the next: a page and a line, so that no prefetcher fetches
/// a neighbour, and the lines lie in sets of their own.
const APART: usize = 4096 + 64;

/// Latency of one load of a line that the other CPU has just modified, in ns: the other CPU
/// writes a chain through `lines` lines in random order, this one follows it, `rounds` times;
/// the median round counts.
pub fn transfer(cpus: (usize, usize), lines: usize, rounds: u64) -> Result<f64, Error> {
    let region = Region::memfd(4096 + lines * APART, false)?.0;
    let (ready, done, first) = (0, 16, 4096 / 8);
    let order = shuffled(lines);
    let write = || {
        for i in 1..=rounds {
            for (from, to) in order.iter().zip(order.iter().skip(1).chain(&order[..1])) {
                region.put(first + from * APART / 8, (first + to * APART / 8) as u64);
            }
            region.put_release(ready, i);
            wait_at_least(&region, done, i);
        }
    };
    on_both(cpus, write, || {
        let mut times = Vec::new();
        for i in 1..=rounds {
            wait_at_least(&region, ready, i);
            let start = Instant::now();
            let mut at = first + order[0] * APART / 8;
            for _ in 0..lines {
                at = region.get(at) as usize;
            }
            std::hint::black_box(at);
            times.push(start.elapsed().as_nanos() as f64 / lines as f64);
            region.put_release(done, i);
        }
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// The numbers below `count` in an order no prefetcher follows (Fisher-Yates, fixed seed).
fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..count).rev() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        order.swap(i, (x % (i as u64 + 1)) as usize);
    }
    order
}

/// Gigabits per second of a writer filling `chunk` bytes and signalling, and a reader
/// summing them, over two chunks in turn; stores cached or non-temporal.
pub fn stream(cpus: (usize, usize), chunk: usize, non_temporal: bool, chunks: u64) -> Result<f64, Error> {
    let region = Region::memfd(4096 + 2 * chunk, false)?.0;
    let (ready, done) = (0, 16);
    let data = vec![0x5a; 4096];
    let sum = || {
        for i in 1..=chunks {
            wait_at_least(&region, ready, i);
            std::hint::black_box(region.checksum(4096 + (i as usize % 2) * chunk, chunk));
            region.put_release(done, i);
        }
    };
    on_both(cpus, sum, || {
        let start = Instant::now();
        for i in 1..=chunks {
            wait_at_least(&region, done, i.saturating_sub(2));
            let base = 4096 + (i as usize % 2) * chunk;
            for at in (0..chunk).step_by(data.len()) {
                let part = &data[..data.len().min(chunk - at)];
                if non_temporal {
                    region.copy_in_nt(base + at, part);
                } else {
                    region.copy_in(base + at, part);
                }
            }
            region.put_release(ready, i);
        }
        wait_at_least(&region, done, chunks);
        chunks as f64 * chunk as f64 * 8.0 / start.elapsed().as_nanos() as f64
    })
}
