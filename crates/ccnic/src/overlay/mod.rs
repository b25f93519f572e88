//! Overlay mode: a NIC whose far side is a Linux network interface.
//!
//! Packets that the host sends leave through the interface, and frames that arrive on it are
//! delivered to the host. Frames are exchanged with the kernel over rings in shared memory, of
//! a packet socket (TPACKET_V3) or of an AF_XDP socket; RX needs no system call, TX one per
//! burst. The kernel may deliver frames with checksums left to the device; switch TX checksum
//! offload off on the peer (`ethtool -K IFACE tx off`) if the application verifies them.

mod packet;
mod xdp;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::nic::{NicPort, NicQueue};
use crate::raw::Region;

const BURST: usize = 64;
/// Idle rounds between looks at the stop flag and the host's socket.
const IDLE: u32 = 1024;

/// The way frames take between an interface and this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A packet socket: any interface, and the kernel still sees what arrives. CAP_NET_RAW.
    Packet,
    /// An AF_XDP socket on the interface's first queue: what arrives there does not reach the
    /// kernel's stack. Frames up to 3840 bytes; CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
    Xdp,
}

/// Exchange of whole frames with the kernel.
trait Frames {
    /// Queues a frame; returns how many frames were found lost: this one or an earlier one.
    fn put(&mut self, bytes: &[u8]) -> u64;
    /// Sends what is queued.
    fn send(&mut self);
    /// Passes on the frames that have arrived, as spans of a region that are valid during the
    /// call; false if there were none.
    fn receive(&mut self, take: &mut dyn FnMut(&Region, usize, usize)) -> bool;
}

/// An interface, with the counters of what could not be passed on.
pub struct Overlay {
    frames: Box<dyn Frames>,
    /// Frames from the interface dropped: too large, or no buffer, or ring full.
    pub rx_drops: u64,
    /// Packets from the host dropped: too large for a frame or refused by the kernel.
    pub tx_drops: u64,
}

impl Overlay {
    /// Opens interface `iface`.
    pub fn open(iface: &str, via: Via) -> Result<Overlay, Error> {
        let probe = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
        let index = rustix::net::netdevice::name_to_index(&probe, iface)
            .map_err(|e| Error::Config(format!("iface = {iface} cannot be used: {e}")))?;
        let frames: Box<dyn Frames> = match via {
            Via::Packet => Box::new(packet::PacketSocket::open(index)?),
            Via::Xdp => Box::new(xdp::XdpSocket::open(index)?),
        };
        Ok(Overlay { frames, rx_drops: 0, tx_drops: 0 })
    }

    /// Bridges `queues` and the interface until `stop` is set or the host is gone. Frames
    /// from the interface are spread over the queues by their addresses and ports.
    pub fn serve(&mut self, port: &NicPort, queues: &mut [NicQueue], stop: &AtomicBool) -> Result<(), Error> {
        let mut idle = 0;
        loop {
            let moved = self.round(queues)?;
            idle = if moved { 0 } else { idle + 1 };
            if idle % IDLE == IDLE - 1 {
                if stop.load(Ordering::Relaxed) || !port.host_alive() {
                    return Ok(());
                }
                std::thread::yield_now();
            }
        }
    }

    /// One pass in both directions; true if anything moved.
    fn round(&mut self, queues: &mut [NicQueue]) -> Result<bool, Error> {
        let mut moved = false;
        for q in queues.iter_mut() {
            match self.send(q) {
                Ok(n) => moved |= n > 0,
                // Only the host can clear a fault, which is counted and signalled already.
                Err(Error::Fault(_)) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(moved | self.receive(queues))
    }

    /// Host to interface.
    fn send(&mut self, q: &mut NicQueue) -> Result<usize, Error> {
        let mut bufs = Vec::with_capacity(BURST);
        let n = q.tx_poll(&mut bufs, BURST)?;
        if n == 0 {
            return Ok(0);
        }
        let mut bytes = Vec::new();
        for b in &bufs {
            q.read(b, &mut bytes);
            if !b.more() {
                self.tx_drops += self.frames.put(&bytes);
                bytes.clear();
            }
        }
        q.tx_done();
        q.free(&mut bufs);
        self.frames.send();
        Ok(n)
    }

    /// Interface to host.
    fn receive(&mut self, queues: &mut [NicQueue]) -> bool {
        let Overlay { frames, rx_drops, .. } = self;
        let moved = frames.receive(&mut |from, at, len| {
            if !deliver(queues, from, at, len) {
                *rx_drops += 1;
            }
        });
        if moved {
            for q in queues.iter_mut() {
                // Publishes what an earlier call had to keep back.
                let _ = q.rx_post(&mut Vec::new());
            }
        }
        moved
    }
}

/// Copies a frame into buffers of the queue that its flow belongs to.
fn deliver(queues: &mut [NicQueue], from: &Region, at: usize, len: usize) -> bool {
    // Source and destination of IPv4 and the ports behind it; summed, so that both
    // directions of a flow meet on one queue.
    let mut flow = [0u8; 12];
    if len >= 38 {
        from.copy_out(at + 26, &mut flow);
    }
    let half = |i: usize| u64::from(u32::from_be_bytes([flow[i], flow[i + 1], flow[i + 2], flow[i + 3]]));
    let ports = u64::from(u16::from_be_bytes([flow[8], flow[9]])) + u64::from(u16::from_be_bytes([flow[10], flow[11]]));
    let pick = (half(0) + half(4) + ports) % queues.len() as u64;
    let q = &mut queues[pick as usize];
    let Ok(Some(mut packet)) = q.alloc_packet(len) else {
        return false;
    };
    q.write_packet_from(&packet, from, at);
    q.rx_post(&mut packet).is_ok()
}
