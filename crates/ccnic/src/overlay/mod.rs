//! Overlay mode: a NIC whose far side is a Linux network interface.
//!
//! Packets that the host sends leave through the interface, and frames that arrive on it are
//! delivered to the host. Frames are exchanged with the kernel over rings in shared memory, of
//! a packet socket (TPACKET_V3) or of an AF_XDP socket; RX needs no system call, TX one per
//! burst. A checksum that the kernel left to the device is passed on as an [`Offload`] to a host
//! that agreed to that, and completed here for one that did not.

mod packet;
mod xdp;

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::buf::Buf;
use crate::error::Error;
use crate::handshake::Features;
use crate::nic::{Idle, Next, NicPort, NicQueue};
use crate::offload::Offload;
use crate::raw::Region;

const BURST: usize = 64;
/// Bytes of an Ethernet header. The kernel refuses shorter frames.
const ETHERNET: usize = 14;

/// The way frames take between an interface and this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A packet socket: any interface, and the kernel still sees what arrives. CAP_NET_RAW.
    Packet,
    /// An AF_XDP socket on the interface's first queue: what arrives there does not reach the
    /// kernel's stack. Frames up to 3840 bytes; CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
    Xdp,
}

/// Takes a frame: a span of a region, and what the kernel left undone.
type Take<'a> = dyn FnMut(&Region, usize, usize, Option<Offload>) + 'a;

/// Exchange of whole frames with the kernel.
trait Frames {
    /// Features that the kernel has for a frame.
    fn features(&self) -> Features;
    /// Queues a frame of an Ethernet header at least; returns how many frames were lost, none or this one.
    fn put(&mut self, offload: &Offload, bytes: &[u8]) -> u64;
    /// Sends the queued frames.
    fn send(&mut self);
    /// Passes on the frames that have arrived, as spans of a region that are valid during the
    /// call, with what the kernel left undone; false if there were none.
    fn receive(&mut self, take: &mut Take<'_>) -> bool;
    /// Descriptor that is readable when frames have arrived.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// An interface, with the counters of what could not be passed on.
pub struct Overlay {
    frames: Box<dyn Frames>,
    /// Frames from the interface dropped: too large, or no buffer, or ring full.
    pub rx_drops: u64,
    /// Packets from the host dropped: too short or too long, or the kernel's ring is full.
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

    /// Features that a NIC over this kind of socket can agree to.
    pub fn features(via: Via) -> Features {
        match via {
            Via::Packet => Features::ALL,
            Via::Xdp => Features(Features::ALL.0 & !(Features::SEGMENT.0 | Features::MERGED.0)),
        }
    }

    /// Bridges `queues` and the interface until `stop` is set or the host is gone. Frames
    /// from the interface are spread over the queues as the host's [`Rss`](crate::Rss) says.
    pub fn serve(&mut self, port: &NicPort, queues: &mut [NicQueue], stop: &AtomicBool) -> Result<(), Error> {
        self.serve_with(port, queues, stop, |_, _| {})
    }

    /// Bridges the queues and the interface like [`serve`](Self::serve); `watch` sees the counters now and then.
    pub fn serve_with(
        &mut self,
        port: &NicPort,
        queues: &mut [NicQueue],
        stop: &AtomicBool,
        mut watch: impl FnMut(&Overlay, &[NicQueue]),
    ) -> Result<(), Error> {
        let mut idle = Idle::new(port.config().poll_us);
        loop {
            let moved = self.round(port, queues)?;
            match idle.after(moved) {
                Next::Go => {}
                Next::Look | Next::Sleep if stop.load(Ordering::Relaxed) || !port.host_alive() => return Ok(()),
                Next::Look => watch(self, queues),
                Next::Sleep => {
                    watch(self, queues);
                    NicQueue::sleep(queues, Some(self.frames.fd()))?;
                }
            }
        }
    }

    /// One pass in both directions; true if anything moved.
    fn round(&mut self, port: &NicPort, queues: &mut [NicQueue]) -> Result<bool, Error> {
        let mut moved = false;
        for q in queues.iter_mut() {
            match self.send(q, port.config().frame() as usize) {
                Ok(n) => moved |= n > 0,
                // Only the host can clear a fault, which is counted and signalled already.
                Err(Error::Fault(_)) => {}
                Err(e) => return Err(e),
            }
        }
        moved |= self.receive(port, queues);
        for q in queues.iter_mut() {
            // What has arrived together, and what the ring had no room for before.
            moved |= q.rx_flush();
        }
        Ok(moved)
    }

    /// Sends the packets of a host's queue through the interface.
    fn send(&mut self, q: &mut NicQueue, mtu: usize) -> Result<usize, Error> {
        let mut bufs = Vec::with_capacity(BURST);
        let n = q.tx_poll(&mut bufs, BURST)?;
        if n == 0 {
            return Ok(0);
        }
        let mut bytes = Vec::new();
        let mut marked = false;
        for b in &bufs {
            // What is checked is a copy that the host cannot change any more.
            marked |= b.offloads();
            q.read(b, &mut bytes);
            if !b.more() {
                let lost = self.transmit(marked, &mut bytes, mtu);
                self.tx_drops += lost;
                q.note_drops(lost);
                bytes.clear();
                marked = false;
            }
        }
        q.tx_done();
        q.free(&mut bufs);
        self.frames.send();
        Ok(n)
    }

    /// Sends one packet; returns the number lost.
    fn transmit(&mut self, marked: bool, bytes: &mut [u8], mtu: usize) -> u64 {
        let (mut offload, frame) = match bytes.split_first_chunk_mut::<{ Offload::BYTES }>() {
            Some((head, frame)) if marked => match Offload::parse(head, frame.len()) {
                Ok(o) => (o, frame),
                Err(_) => return 1,
            },
            _ => (Offload::default(), bytes),
        };
        if frame.len() < ETHERNET || offload.wire(frame.len()) > mtu {
            return 1;
        }
        let able = self.frames.features();
        if offload.segments() && !able.has(Features::SEGMENT) {
            return 1;
        }
        if !able.has(Features::CHECKSUM) {
            offload.complete(frame);
            offload = Offload::default();
        }
        self.frames.put(&offload, frame)
    }

    /// Copies the interface's frames into the queues, which publish them in bursts.
    fn receive(&mut self, port: &NicPort, queues: &mut [NicQueue]) -> bool {
        let Overlay { frames, rx_drops, .. } = self;
        frames.receive(&mut |from, at, len, offload| {
            if !deliver(port, queues, from, (at, len), offload) {
                *rx_drops += 1;
            }
        })
    }
}

/// Copies a frame into buffers of the queue that its flow belongs to.
fn deliver(
    port: &NicPort,
    queues: &mut [NicQueue],
    from: &Region,
    (at, len): (usize, usize),
    offload: Option<Offload>,
) -> bool {
    let mut head = [0u8; 96];
    let head = &mut head[..len.min(96)];
    from.copy_out(at, head);
    let (pick, _) = port.rss().queue(head, queues.len() as u32);
    let q = &mut queues[pick as usize];
    let delivered = deliver_to(port, q, from, (at, len), offload);
    q.note_drops(u64::from(!delivered));
    delivered
}

fn deliver_to(
    port: &NicPort,
    q: &mut NicQueue,
    from: &Region,
    (at, len): (usize, usize),
    offload: Option<Offload>,
) -> bool {
    let todo = offload.unwrap_or_default();
    if todo.wire(len) > port.config().frame() as usize {
        return false;
    }
    let wanted = if todo.segments() { Features::MERGED } else { Features::CHECKSUM };
    if offload.is_some() && port.features().has(wanted) {
        let Ok(Some(mut packet)) = q.alloc_packet(Offload::BYTES + len) else {
            return false;
        };
        let mut whole = vec![0; Offload::BYTES + len];
        whole[..Offload::BYTES].copy_from_slice(&todo.to_bytes());
        from.copy_out(at, &mut whole[Offload::BYTES..]);
        q.write_packet(&packet, &whole);
        packet[0].mark_offload();
        return keep(q, &mut packet);
    }
    if todo.segments() {
        return false;
    }
    let Ok(Some(mut packet)) = q.alloc_packet(len) else {
        return false;
    };
    if todo.flags & Offload::NEEDS_CSUM != 0 {
        let mut frame = vec![0; len];
        from.copy_out(at, &mut frame);
        todo.complete(&mut frame);
        q.write_packet(&packet, &frame);
    } else {
        q.write_packet_from(&packet, from, at);
    }
    keep(q, &mut packet)
}

/// Queues a packet; a burst does not wait for the rest of what has arrived.
fn keep(q: &mut NicQueue, packet: &mut Vec<Buf>) -> bool {
    let kept = q.rx_keep(packet);
    if kept.as_ref().is_ok_and(|n| *n >= BURST) {
        q.rx_flush();
    }
    kept.is_ok()
}
