//! Captures of the packets that returned to the generator: pcap with nanoseconds, a format that tcpdump and Wireshark
//! read.
//!
//! The format is defined in draft-ietf-opsawg-pcap. Frames have no check sequence, as NICs deliver them. Time stamps
//! count from the start of the simulation.

use super::frame;
use super::generator::{addresses, Returned, CHECKSUM};
use super::mac::Mac;
use super::memcached;
use super::pcap::Capture;
use crate::kernel::{Int, Time};
use etherparse::{IpNumber, Ipv4Header, Ipv6Header, UdpHeader};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const NANOSECONDS: u32 = 0xa1b2_3c4d;
const VERSION: (u16, u16) = (2, 4);
const LONGEST: u32 = 1 << 18;
const ETHERNET: u32 = 1;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// EtherType for local experiments (IEEE 802, table 9-1).
const EXPERIMENT: u16 = 0x88b5;
const HOPS: u8 = 64;
/// Bytes of an Ethernet header; `IPV4_UDP` is the number of bytes of the IPv4 and UDP headers.
const HEADER: usize = 14;
const IPV4_UDP: usize = 28;

/// Contents of the frames that return to the generator.
#[derive(Clone)]
pub struct FrameFormat {
    /// Address of the NIC.
    pub host: Mac,
    /// Address of the generator; None to keep the address in a capture.
    pub generator: Option<Mac>,
    /// Whether frames carry UDP, or plain Ethernet.
    pub udp: bool,
    /// Offset in bytes at which a frame carries its time of sending, in ps, as eight bytes in big-endian order.
    pub stamp: u32,
    /// Capture whose frames were replayed.
    pub capture: Option<Arc<Capture>>,
    /// Whether replies have their own content even where a reply is as long as its request (memcached).
    pub answers: bool,
}

/// Packets that returned to the generators, those of each generator with the contents of their frames.
pub type ReturnedFrames = Vec<(FrameFormat, Vec<Returned>)>;

/// Writes a capture of the packets of all generators, in the order in which they `returned`.
///
/// # Errors
/// Returns the system's error.
pub fn write(out: &mut dyn Write, returned: &ReturnedFrames) -> io::Result<()> {
    out.write_all(&NANOSECONDS.to_le_bytes())?;
    out.write_all(&VERSION.0.to_le_bytes())?;
    out.write_all(&VERSION.1.to_le_bytes())?;
    for n in [0, 0, LONGEST, ETHERNET] {
        out.write_all(&n.to_le_bytes())?;
    }
    let mut all: Vec<_> = returned.iter().flat_map(|(frames, own)| own.iter().map(move |r| (frames, r))).collect();
    all.sort_by_key(|(_, r)| r.back);
    for (frames, r) in all {
        let (frame, length) = frames.frame(r);
        let ns = r.back.0 / 1000;
        let (second, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        for n in [second.to_u32(), rest.to_u32(), frame.len().to_u32(), length.to_u32()] {
            out.write_all(&n.to_le_bytes())?;
        }
        out.write_all(&frame)?;
    }
    Ok(())
}

impl FrameFormat {
    /// The bytes that are kept of a frame that returned, and the length of the frame.
    fn frame(&self, r: &Returned) -> (Vec<u8>, usize) {
        let captured = self.capture.as_ref().zip(r.asked.captured).and_then(|(c, i)| c.frames.get(i.to_usize()));
        match captured {
            Some(request) => self.replayed(request, r),
            None => {
                let frame = self.made(r);
                let length = frame.len();
                (frame, length)
            }
        }
    }

    /// Reply to a captured frame, and its length.
    fn replayed(&self, request: &[u8], r: &Returned) -> (Vec<u8>, usize) {
        let forwarded = r.request == r.reply && !self.answers;
        if let (false, Some(reply)) = (forwarded, self.answer(request, r)) {
            let length = reply.len();
            return (reply, length);
        }
        let mut frame = request.to_vec();
        if let Some((addresses, _)) = frame.split_at_mut_checked(12) {
            let source = self.source(addresses);
            addresses[..6].copy_from_slice(&source.0);
            addresses[6..].copy_from_slice(&self.host.0);
        }
        (frame, r.request.max(request.len().to_u32()).to_usize())
    }

    /// Address that the request with these addresses came from.
    fn source(&self, addresses: &[u8]) -> Mac {
        let own = addresses.last_chunk().map(|a| Mac(*a));
        self.generator.or(own).unwrap_or(Mac::GENERATOR)
    }

    /// A datagram back to the sender of a captured datagram, with the VLAN tags and the memcached header of that
    /// datagram.
    fn answer(&self, request: &[u8], r: &Returned) -> Option<Vec<u8>> {
        let asked = frame::datagram(request).ok()?;
        let mut ends = 12;
        let kind = |at: usize| request.get(at..at + 2).map(|t| u16::from_be_bytes([t[0], t[1]]));
        while frame::TAGS.contains(&kind(ends)?) {
            ends += 4;
        }
        let source = self.source(&request[..12]);
        let mut out = [source.0, self.host.0].concat();
        out.extend_from_slice(&request[12..ends]);
        let headers = ends + 2 + if asked.src.is_ipv4() { IPV4_UDP } else { Ipv6Header::LEN + 8 };
        let header = memcached::header(asked.payload).map(|(asked, _)| memcached::alone(asked.id));
        // Replies are known in lines of 64 bytes, of which headers of IPv6 and tags may leave less than memcached's own.
        let mut payload: Vec<u8> = header.into_iter().flatten().collect();
        payload.resize(r.reply.to_usize().saturating_sub(headers).max(payload.len()), 0);
        datagram(&mut out, asked.dst, asked.src, r.asked.number, &payload)?;
        Some(out)
    }

    /// A frame that the generator made, in the form in which it returns: a frame of another length is a reply.
    fn made(&self, r: &Returned) -> Vec<u8> {
        let length = r.reply.saturating_sub(CHECKSUM).to_usize();
        let generator = self.generator.unwrap_or(Mac::GENERATOR);
        let mut out = [generator.0, self.host.0].concat();
        if self.udp {
            let (mut from, mut to) = addresses(r.asked.flow);
            if r.reply != r.request {
                std::mem::swap(&mut from, &mut to);
            }
            let mut payload = vec![0; length.saturating_sub(HEADER + IPV4_UDP)];
            self.mark(&mut payload, HEADER + IPV4_UDP, r.sent);
            // The longest frame allowed fits into an IP packet.
            datagram(&mut out, from, to, r.asked.number, &payload).expect("a payload that fits");
        } else {
            out.extend(EXPERIMENT.to_be_bytes());
            let mut payload = vec![0; length.saturating_sub(HEADER)];
            self.mark(&mut payload, HEADER, r.sent);
            out.extend(payload);
        }
        out
    }

    /// Writes the time of sending into a payload that begins at byte `at` of the frame.
    fn mark(&self, payload: &mut [u8], at: usize, sent: Time) {
        let there = (self.stamp.to_usize()).checked_sub(at).and_then(|i| payload.get_mut(i..i + 8));
        if let Some(bytes) = there {
            bytes.copy_from_slice(&sent.0.to_be_bytes());
        }
    }
}

/// Appends type, IP and UDP headers and `payload`. None when an IP packet cannot hold the payload.
fn datagram(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, number: u64, payload: &[u8]) -> Option<()> {
    let length = u16::try_from(8 + payload.len()).ok()?;
    let udp = match (from.ip(), to.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mut ip = Ipv4Header::new(length, HOPS, IpNumber::UDP, a.octets(), b.octets()).ok()?;
            ip.identification = number.low_u16();
            ip.header_checksum = ip.calc_header_checksum();
            out.extend(IPV4.to_be_bytes());
            out.extend_from_slice(&ip.to_bytes());
            UdpHeader::with_ipv4_checksum(from.port(), to.port(), &ip, payload)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let ip = Ipv6Header {
                payload_length: length,
                next_header: IpNumber::UDP,
                hop_limit: HOPS,
                source: a.octets(),
                destination: b.octets(),
                ..Ipv6Header::default()
            };
            out.extend(IPV6.to_be_bytes());
            out.extend_from_slice(&ip.to_bytes());
            UdpHeader::with_ipv6_checksum(from.port(), to.port(), &ip, payload)
        }
        _ => return None,
    };
    out.extend_from_slice(&udp.ok()?.to_bytes());
    out.extend_from_slice(payload);
    Some(())
}
