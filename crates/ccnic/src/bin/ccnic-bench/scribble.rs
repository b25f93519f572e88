//! A hostile peer: random stores over the whole region, as a host or as a NIC.

use std::path::Path;
use std::time::{Duration, Instant};

use ccnic::mem::Mem;
use ccnic::{Config, Error, HostPort, HostQueue, NicQueue, NicServer, Region};

/// Stores between two turns with packets.
const STORES: u32 = 64;

/// A stream of random words, of words like descriptors, and of words that lie there already.
pub struct Words(pub u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Stores one word somewhere, most often among rings and pools.
    pub fn store(&mut self, region: &Region) {
        let x = self.next();
        let words = (region.len() / 8) as u64;
        let at = (x >> 20) % if x & 0x100 == 0 { words } else { words.min(4500) };
        let value = match x >> 9 & 7 {
            0 => 0,
            1 => x,
            2 => 1 << 63 | x & 0xff,
            3 => 1 << 63 | 1 << 16 | x & 0x7f,
            4 => (x >> 3) % (words * 8),
            5 => region.get(((x >> 30) % words.min(4500)) as usize),
            6 => 1 << 62,
            _ => region.get(at as usize) ^ 1 << (x & 63),
        };
        region.put(at as usize, value);
    }
}

fn until(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(if seconds == 0 { u64::from(u32::MAX) } else { seconds })
}

/// A host that writes all over its own region, whichever NIC listens on `socket`.
pub fn host(socket: &Path, seconds: u64) -> Result<(), Error> {
    let config = Config { queues: 2, slots: 64, buffers: 256, ..Config::default() };
    let mut port = HostPort::create(config)?;
    let mut queues = vec![port.queue(0)?, port.queue(1)?];
    let region = port.region().clone();
    let mut words = Words(0x2545_f491_4f6c_dd1d);
    let (end, mut stores, mut resets) = (until(seconds), 0u64, 0u64);
    while Instant::now() < end {
        if !port.peer_alive() {
            port.recover(&mut queues.iter_mut().collect::<Vec<_>>())?;
            port.connect(socket)?;
        }
        for _ in 0..2000 {
            (0..STORES).for_each(|_| words.store(&region));
            stores += u64::from(STORES);
            for q in &mut queues {
                // Faults are what this is about.
                let _ = turn(q);
            }
        }
        // The epochs may be gone, and with them the NIC; the next round finds another.
        let _ = port.recover(&mut queues.iter_mut().collect::<Vec<_>>());
        resets += 1;
    }
    eprintln!("{stores} stores, {resets} resets");
    Ok(())
}

fn turn(queue: &mut HostQueue) -> Result<(), Error> {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 4, 64);
    bufs.iter_mut().for_each(|b| queue.write(b, &[1; 64]));
    let sent = queue.tx(&mut bufs);
    queue.free(&mut bufs);
    let got = queue.rx(&mut bufs, 16);
    queue.free(&mut bufs);
    sent.and(got).map(|_| ())
}

/// A loopback NIC that writes all over its hosts' regions.
pub fn nic(socket: &Path, seconds: u64) -> Result<(), Error> {
    let server = NicServer::bind(socket)?;
    let mut words = Words(0x9e37_79b9_7f4a_7c15);
    let (end, mut stores, mut hosts) = (until(seconds), 0u64, 0u64);
    while Instant::now() < end {
        let mut port = server.accept()?;
        hosts += 1;
        let mut queues: Vec<NicQueue> = (0..port.config().served()).map(|q| port.queue(q)).collect::<Result<_, _>>()?;
        let region = port.region().clone();
        while port.host_alive() && Instant::now() < end {
            for round in 0..4096 {
                for q in &mut queues {
                    let _ = q.loopback(32);
                }
                if round == 0 {
                    words.store(&region);
                    stores += 1;
                }
            }
        }
    }
    eprintln!("{stores} stores, {hosts} hosts");
    Ok(())
}
