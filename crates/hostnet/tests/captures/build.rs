//! Builders of frames and capture files, byte by byte from the documents that define them.

/// Headers between the Ethernet addresses and UDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    V4,
    /// Router alert and end of options: RFC 2113, eight bytes with padding.
    V4Options,
    V6,
    /// Hop-by-hop options and destination options of eight bytes each: RFC 8200, section 4.
    V6Extensions,
    /// First fragment: RFC 791 flag MF.
    V4Fragment,
    /// Fragment header with offset zero and flag M: RFC 8200, section 4.5.
    V6Fragment,
}

/// VLAN tags: none, 802.1Q, or a service tag before it (802.1ad, "QinQ").
pub const TAGS: [&[u16]; 3] = [&[], &[0x8100], &[0x88a8, 0x8100]];

pub const CLIENT: u8 = 2;
pub const SERVER: u8 = 1;

/// A frame between hosts 10.0.0.`src` (fd00::`src`) and 10.0.0.`dst`.
pub fn frame(tags: &[u16], net: Network, src: (u8, u16), dst: (u8, u16), payload: &[u8]) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, dst.0, 2, 0, 0, 0, 0, src.0];
    for tag in tags {
        f.extend(tag.to_be_bytes());
        f.extend([0x00, 0x07]); // priority 0, VLAN 7
    }
    let mut udp = Vec::new();
    udp.extend(src.1.to_be_bytes());
    udp.extend(dst.1.to_be_bytes());
    udp.extend((8 + payload.len() as u16).to_be_bytes());
    udp.extend([0, 0]); // no checksum
    udp.extend(payload);
    match net {
        Network::V4 | Network::V4Options | Network::V4Fragment => {
            let options: &[u8] = match net {
                Network::V4Options => &[0x94, 0x04, 0, 0, 0x01, 0x01, 0x01, 0x00],
                _ => &[],
            };
            let header = 20 + options.len();
            f.extend([0x08, 0x00, 0x40 | (header / 4) as u8, 0]);
            f.extend(((header + udp.len()) as u16).to_be_bytes());
            f.extend([0, 1, if net == Network::V4Fragment { 0x20 } else { 0x40 }, 0]);
            f.extend([64, 17, 0, 0]); // time to live, UDP, checksum
            f.extend([10, 0, 0, src.0, 10, 0, 0, dst.0]);
            f.extend(options);
        }
        Network::V6 | Network::V6Extensions | Network::V6Fragment => {
            let (next, extensions): (u8, &[u8]) = match net {
                // Next header, length in further units of 8 bytes, PadN of four bytes.
                Network::V6Extensions => (0, &[60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]),
                Network::V6Fragment => (44, &[17, 0, 0, 1, 0, 0, 0, 9]),
                _ => (17, &[]),
            };
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            f.extend(((extensions.len() + udp.len()) as u16).to_be_bytes());
            f.extend([next, 64]);
            for host in [src.0, dst.0] {
                f.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            }
            f.extend(extensions);
        }
    }
    f.extend(udp);
    f
}

/// memcached's UDP frame header and a body.
pub fn datagram(id: u16, sequence: u16, count: u16, body: &[u8]) -> Vec<u8> {
    let mut d = Vec::new();
    for word in [id, sequence, count, 0] {
        d.extend(word.to_be_bytes());
    }
    d.extend(body);
    d
}

/// A request from client port `port` in a plain frame.
pub fn request(port: u16, id: u16, body: &[u8]) -> Vec<u8> {
    let payload = datagram(id, 0, 1, body);
    frame(&[], Network::V4, (CLIENT, port), (SERVER, 11211), &payload)
}

/// A datagram of a reply to client port `port` in a plain frame.
pub fn reply(port: u16, id: u16, sequence: u16, count: u16, body: &[u8]) -> Vec<u8> {
    let payload = datagram(id, sequence, count, body);
    frame(&[], Network::V4, (SERVER, 11211), (CLIENT, port), &payload)
}

/// A packet record: interface, time stamp in ticks, and the number of bytes to keep of the frame.
#[derive(Clone, Debug)]
pub struct Record {
    pub interface: u32,
    pub ticks: u64,
    pub snap: usize,
    pub frame: Vec<u8>,
}

/// Whole frames, one microsecond apart.
pub fn whole(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Record> {
    let record = |(i, frame)| Record { interface: 0, ticks: i as u64, snap: usize::MAX, frame };
    frames.into_iter().enumerate().map(record).collect()
}

/// Writes numbers in one byte order.
struct Out {
    big: bool,
    bytes: Vec<u8>,
}

impl Out {
    fn u16(&mut self, n: u16) {
        self.bytes.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
    }
    fn u32(&mut self, n: u32) {
        self.bytes.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
    }
    fn padded(&mut self, data: &[u8]) {
        self.bytes.extend(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
    /// A pcapng block around `body`.
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Out)) {
        let mut inner = Out { big: self.big, bytes: Vec::new() };
        body(&mut inner);
        let len = 12 + inner.bytes.len() as u32;
        self.u32(kind);
        self.u32(len);
        self.bytes.extend(inner.bytes);
        self.u32(len);
    }
}

/// A pcap file (draft-ietf-opsawg-pcap) with micro- or nanosecond ticks.
pub fn pcap(big: bool, nanoseconds: bool, link: u32, records: &[Record]) -> Vec<u8> {
    let mut out = Out { big, bytes: Vec::new() };
    out.u32(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
    out.u16(2);
    out.u16(4);
    for n in [0, 0, 262_144, link] {
        out.u32(n);
    }
    let second = if nanoseconds { 1_000_000_000 } else { 1_000_000 };
    for r in records {
        let kept = r.snap.min(r.frame.len());
        out.u32((r.ticks / second) as u32);
        out.u32((r.ticks % second) as u32);
        out.u32(kept as u32);
        out.u32(r.frame.len() as u32);
        out.bytes.extend(&r.frame[..kept]);
    }
    out.bytes
}

/// An interface of a pcapng file.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    pub link: u16,
    pub snap: u32,
    pub tsresol: Option<u8>,
    pub tsoffset: Option<i64>,
}

pub const ETHERNET: Interface = Interface { link: 1, snap: 262_144, tsresol: None, tsoffset: None };

/// A pcapng file (draft-ietf-opsawg-pcapng) of one section.
pub fn pcapng(big: bool, interfaces: &[Interface], records: &[Record]) -> Vec<u8> {
    let mut out = Out { big, bytes: Vec::new() };
    out.block(0x0a0d_0d0a, |b| {
        b.u32(0x1a2b_3c4d);
        b.u16(1);
        b.u16(0);
        b.u32(u32::MAX);
        b.u32(u32::MAX); // section length unknown
    });
    for i in interfaces {
        out.block(1, |b| {
            b.u16(i.link);
            b.u16(0);
            b.u32(i.snap);
            if let Some(resolution) = i.tsresol {
                b.u16(9);
                b.u16(1);
                b.padded(&[resolution]);
            }
            if let Some(offset) = i.tsoffset {
                b.u16(14);
                b.u16(8);
                b.bytes.extend(if b.big { offset.to_be_bytes() } else { offset.to_le_bytes() });
            }
            b.u32(0); // end of options
        });
    }
    for r in records {
        let kept = &r.frame[..r.snap.min(r.frame.len())];
        out.block(6, |b| {
            b.u32(r.interface);
            b.u32((r.ticks >> 32) as u32);
            b.u32(r.ticks as u32);
            b.u32(kept.len() as u32);
            b.u32(r.frame.len() as u32);
            b.padded(kept);
        });
    }
    // Interface statistics, as dumpcap appends them.
    out.block(5, |b| [0, 0, 0].into_iter().for_each(|n| b.u32(n)));
    out.bytes
}

/// An obsolete packet block with a count of losses and a comment, for the end of a pcapng file.
pub fn packet_block(big: bool, r: &Record) -> Vec<u8> {
    let kept = &r.frame[..r.snap.min(r.frame.len())];
    let mut out = Out { big, bytes: Vec::new() };
    out.block(2, |b| {
        b.u16(r.interface as u16);
        b.u16(0xfffe); // packets that the interface lost
        b.u32((r.ticks >> 32) as u32);
        b.u32(r.ticks as u32);
        b.u32(kept.len() as u32);
        b.u32(r.frame.len() as u32);
        b.padded(kept);
        b.u16(1);
        b.u16(5);
        b.padded(b"notes");
        b.u32(0); // end of options
    });
    out.bytes
}

/// A simple packet block, which has no timestamp, for the end of a pcapng file.
pub fn simple_packet(big: bool, frame: &[u8]) -> Vec<u8> {
    let mut out = Out { big, bytes: Vec::new() };
    out.block(3, |b| {
        b.u32(frame.len() as u32);
        b.padded(frame);
    });
    out.bytes
}
