//! Bounds on the packet rate: the line transfers that any loopback of this form needs, without the interface, and the
//! interface's own work, without transfers.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ccnic::mem::Mem;
use ccnic::{Config, Error, HostPort, Region};

/// Packets whose descriptors share a line.
const GROUP: u64 = 4;
/// Groups of a burst (32 packets), in flight (256 packets), and of a ring (1024 packets).
const BURST: u64 = 8;
const WINDOW: u64 = 64;
const RING: u64 = 256;
const LINE: usize = 64;

/// Two rings of descriptor lines, and for each group in flight two sets of four payload lines. A
/// side writes the set that it read last, as recycled buffers do.
struct Lines {
    region: Region,
    /// Packets of a group: four, or one for round trips.
    packets: usize,
}

impl Lines {
    fn new(huge: bool, packets: usize) -> Result<Lines, Error> {
        let lines = 2 * RING + 2 * WINDOW * GROUP;
        Ok(Lines { region: Region::memfd(lines as usize * LINE, huge)?.0, packets })
    }

    /// Index of the first word of a descriptor line, in the ring to the NIC (0) or to the host (1).
    fn descriptor(ring: u64, group: u64) -> usize {
        (ring * RING + group % RING) as usize * LINE / 8
    }

    /// Offset in bytes of the payload lines that group `group` has on its way to the NIC (0) or to the host (1).
    fn payload(direction: u64, group: u64) -> usize {
        let set = (group / WINDOW + direction) % 2;
        (2 * RING + (set * WINDOW + group % WINDOW) * GROUP) as usize * LINE
    }

    /// Stores a line of descriptors, with the number of the group in place of the signal.
    fn publish(&self, ring: u64, group: u64) {
        let at = Lines::descriptor(ring, group);
        self.region.put(at, group);
        (2..8).for_each(|word| self.region.put(at + word, group));
        self.region.put_release(at + 1, group + 1);
    }

    /// Number of groups from `next` on that have arrived, at most a burst; their payload is being fetched.
    fn arrived(&self, ring: u64, next: u64) -> u64 {
        let mut n = 0;
        while n < BURST && self.region.get_acquire(Lines::descriptor(ring, next + n) + 1) == next + n + 1 {
            let at = Lines::payload(ring, next + n) / 8;
            (0..self.packets).for_each(|line| self.region.prefetch_read(at + line * LINE / 8));
            n += 1;
        }
        n
    }

    fn nic(&self, stop: &AtomicBool) {
        let mut next = 0;
        while !stop.load(Ordering::Relaxed) {
            let n = self.arrived(0, next);
            for group in next..next + n {
                let (from, to) = (Lines::payload(0, group), Lines::payload(1, group));
                (0..self.packets).for_each(|i| self.region.copy_within(from + i * LINE, to + i * LINE, LINE));
                self.publish(1, group);
            }
            next += n;
        }
    }

    /// Writes the payload of a group and publishes it.
    fn send(&self, group: u64, packet: &mut [u8; LINE]) {
        for i in 0..self.packets {
            packet[..8].copy_from_slice(&(group * GROUP + i as u64).to_le_bytes());
            self.region.copy_in(Lines::payload(0, group) + i * LINE, packet);
        }
        self.publish(0, group);
    }

    /// Reads the payload of a group that came back.
    fn read(&self, group: u64) {
        for i in 0..self.packets {
            black_box(self.region.checksum(Lines::payload(1, group) + i * LINE, LINE));
        }
    }

    /// Round-trip times of `rounds` groups in ticks, one group in flight at a time, in ascending order.
    fn round_trips(&self, rounds: u64) -> Vec<u64> {
        let mut packet = [7u8; LINE];
        let mut ticks: Vec<u64> = (0..rounds)
            .map(|group| {
                let start = ccnic::timestamp();
                self.send(group, &mut packet);
                while self.arrived(1, group) == 0 {}
                self.read(group);
                ccnic::timestamp() - start
            })
            .collect();
        ticks.sort_unstable();
        ticks
    }

    fn host(&self, time: Duration) -> f64 {
        let (mut sent, mut got, mut packet) = (0, 0, [7u8; LINE]);
        let (mut start, mut first, mut warm) = (Instant::now(), 0, false);
        loop {
            for _ in 0..BURST.min(WINDOW - (sent - got)) {
                self.send(sent, &mut packet);
                sent += 1;
            }
            for _ in 0..self.arrived(1, got) {
                self.read(got);
                got += 1;
            }
            if sent % 1024 == 0 {
                let past = start.elapsed();
                if !warm && past > time / 4 {
                    (start, first, warm) = (Instant::now(), got, true);
                } else if past > time && warm {
                    return ((got - first) * GROUP) as f64 * 1000.0 / past.as_nanos() as f64;
                }
            }
        }
    }
}

/// Rate of 64-byte packets there and back between two CPUs as bare lines, in millions per second.
pub fn transfers(cpus: (usize, usize), huge: bool, time: Duration) -> Result<f64, Error> {
    let lines = Lines::new(huge, GROUP as usize)?;
    beside_nic(cpus, &lines, || lines.host(time))
}

/// Least and median round-trip time of one packet as bare lines, in ns.
pub fn round_trip(cpus: (usize, usize), huge: bool) -> Result<(f64, f64), Error> {
    let lines = Lines::new(huge, 1)?;
    let ticks = beside_nic(cpus, &lines, || lines.round_trips(100_000))?;
    let ns = |ticks: u64| ticks as f64 / super::run::ticks_per_ns();
    Ok((ns(ticks[0]), ns(ticks[ticks.len() / 2])))
}

fn beside_nic<T>(cpus: (usize, usize), lines: &Lines, host: impl FnOnce() -> T) -> Result<T, Error> {
    let (stop, moved) = (AtomicBool::new(false), Barrier::new(2));
    ccnic::pin_to_cpu(cpus.0)?;
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| {
            ccnic::pin_to_cpu(cpus.1).expect("the CPU was there at the start");
            moved.wait();
            lines.nic(&stop);
        });
        moved.wait();
        let outcome = host();
        stop.store(true, Ordering::Relaxed);
        outcome
    }))
}

/// CPU time per packet of the host's work and of the NIC's, in ns, both on one CPU, where no line is transferred.
pub fn work(cpu: usize, huge: bool, time: Duration) -> Result<(f64, f64), Error> {
    ccnic::pin_to_cpu(cpu)?;
    let mut port = HostPort::create(Config { huge, ..Config::default() })?;
    let mut queue = port.queue(0)?;
    let mut nic = port.local_nic()?;
    let mut far = nic.queue(0)?;
    let (mut bufs, payload) = (Vec::with_capacity(64), [7u8; LINE]);
    let (mut host, mut other, mut packets) = (0, 0, 0u64);
    let begin = Instant::now();
    while begin.elapsed() < time {
        // Many bursts between two looks at the clock, which costs as much as one.
        for _ in 0..2 {
            let t0 = ccnic::timestamp();
            for _ in 0..4 {
                queue.alloc(&mut bufs, 32, LINE);
                bufs.iter_mut().for_each(|b| queue.write(b, &payload));
                packets += queue.tx(&mut bufs)? as u64;
                queue.free(&mut bufs);
            }
            let t1 = ccnic::timestamp();
            while far.loopback(32)? > 0 {}
            let t2 = ccnic::timestamp();
            while queue.rx(&mut bufs, 32)? > 0 {
                bufs.iter().for_each(|b| {
                    black_box(queue.checksum(b));
                });
                queue.free(&mut bufs);
            }
            host += t1 - t0 + (ccnic::timestamp() - t2);
            other += t2 - t1;
        }
    }
    let ns = |ticks: u64| ticks as f64 / super::run::ticks_per_ns() / packets as f64;
    Ok((ns(host), ns(other)))
}
