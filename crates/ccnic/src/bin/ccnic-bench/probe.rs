//! Microbenchmarks below the packet interface: cache-line ping-pong and streaming.

use std::sync::Barrier;
use std::time::Instant;

use ccnic::mem::Mem;
use ccnic::{Error, Region};

/// Round trip of a counter between two CPUs, in ns: over one line that both write
/// (`together`) or over a line per direction.
pub fn ping_pong(cpus: (usize, usize), together: bool, rounds: u64) -> Result<f64, Error> {
    let region = Region::memfd(4096, false)?;
    let (ping, pong) = (0, if together { 1 } else { 16 });
    ccnic::pin_to_cpu(cpus.0)?;
    let moved = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Without pinning both threads may share a CPU, which only slows the probe.
            let _ = ccnic::pin_to_cpu(cpus.1);
            moved.wait();
            for i in 1..=rounds {
                wait_for(&region, ping, i);
                region.put_release(pong, i);
            }
        });
        moved.wait();
        let mut start = Instant::now();
        for i in 1..=rounds {
            if i == rounds / 10 {
                start = Instant::now();
            }
            region.put_release(ping, i);
            wait_for(&region, pong, i);
        }
        Ok(start.elapsed().as_nanos() as f64 / (rounds - rounds / 10 + 1) as f64)
    })
}

fn wait_for(region: &Region, word: usize, value: u64) {
    let mut spins = 0u32;
    while region.get_acquire(word) != value {
        std::hint::spin_loop();
        spins += 1;
        if spins % 4096 == 0 {
            std::thread::yield_now();
        }
    }
}

/// Gigabits per second of a writer filling `chunk` bytes and signalling, and a reader
/// summing them, over two chunks in turn; stores cached or non-temporal.
pub fn stream(cpus: (usize, usize), chunk: usize, non_temporal: bool, chunks: u64) -> Result<f64, Error> {
    let region = Region::memfd(4096 + 2 * chunk, false)?;
    let (ready, done) = (0, 16);
    ccnic::pin_to_cpu(cpus.0)?;
    let moved = Barrier::new(2);
    let data = vec![0x5a; 4096];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // As above.
            let _ = ccnic::pin_to_cpu(cpus.1);
            moved.wait();
            for i in 1..=chunks {
                wait_at_least(&region, ready, i);
                std::hint::black_box(region.checksum(4096 + (i as usize % 2) * chunk, chunk));
                region.put_release(done, i);
            }
        });
        moved.wait();
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
        Ok(chunks as f64 * chunk as f64 * 8.0 / start.elapsed().as_nanos() as f64)
    })
}

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
