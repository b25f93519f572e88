//! Bursts of packets through a loopback in one thread, for counting instructions: each call of the library is a function here.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='instructions::tx' target/release/examples/instructions 2000 32
//! ```
//!
//! A third argument, `unoptimised`, takes the interface of a PCIe NIC. The count less that of another number of rounds, over the packets between, is free of set-up. docs/ccnic/measurements.md has
//! the table.

use ccnic::{Buf, Config, HostPort, HostQueue, NicQueue};

const BYTES: usize = 64;

#[inline(never)]
fn alloc(q: &mut HostQueue, bufs: &mut Vec<Buf>, n: usize) {
    assert_eq!(q.alloc(bufs, n, BYTES), n);
}

#[inline(never)]
fn write(q: &mut HostQueue, bufs: &mut [Buf], payload: &[u8; BYTES]) {
    for b in bufs {
        q.write(b, payload);
    }
}

#[inline(never)]
fn tx(q: &mut HostQueue, bufs: &mut Vec<Buf>) {
    q.tx(bufs).expect("room");
}

#[inline(never)]
fn nic(q: &mut NicQueue, n: usize) -> usize {
    q.loopback(n).expect("no fault")
}

#[inline(never)]
fn nic_empty(q: &mut NicQueue) -> usize {
    q.loopback(32).expect("no fault")
}

#[inline(never)]
fn rx(q: &mut HostQueue, bufs: &mut Vec<Buf>, n: usize) {
    q.rx(bufs, n).expect("no fault");
}

#[inline(never)]
fn rx_empty(q: &mut HostQueue, bufs: &mut Vec<Buf>) {
    assert_eq!(q.rx(bufs, 32).expect("no fault"), 0);
}

#[inline(never)]
fn read(q: &HostQueue, bufs: &[Buf]) -> u64 {
    bufs.iter().map(|b| q.checksum(b)).fold(0, u64::wrapping_add)
}

#[inline(never)]
fn free(q: &mut HostQueue, bufs: &mut Vec<Buf>) {
    q.free(bufs);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let rounds: u64 = args.next().ok_or("rounds and packets of a burst")?.parse()?;
    let n: usize = args.next().ok_or("packets of a burst")?.parse()?;
    let config = match args.next().as_deref() {
        None => Config::default(),
        Some("unoptimised") => Config::unoptimised(),
        Some(other) => return Err(format!("{other} is no interface: give unoptimised, or nothing").into()),
    };
    let mut port = HostPort::create_private(config)?;
    let mut q = port.queue(0)?;
    let mut nic_port = port.local_nic()?;
    let mut nq = nic_port.queue(0)?;
    let (mut bufs, mut back) = (Vec::with_capacity(256), Vec::with_capacity(256));
    let mut payload = [7u8; BYTES];
    let mut sum = 0;
    rx_empty(&mut q, &mut back); // posts blank buffers where the host does
    for round in 0..rounds {
        payload[..8].copy_from_slice(&round.to_le_bytes());
        alloc(&mut q, &mut bufs, n);
        write(&mut q, &mut bufs, &payload);
        tx(&mut q, &mut bufs);
        // A NIC takes no more descriptors than leave room for one more packet of several segments.
        let mut taken = 0;
        while taken < n {
            taken += nic(&mut nq, n);
        }
        assert_eq!(taken, n);
        assert_eq!(nic_empty(&mut nq), 0);
        rx(&mut q, &mut back, n);
        assert_eq!(back.len(), n);
        sum ^= read(&q, &back);
        free(&mut q, &mut back);
        rx_empty(&mut q, &mut back);
    }
    println!("{rounds} bursts of {n} packets, checksum {sum:x}");
    Ok(())
}
