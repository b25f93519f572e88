//! Ethernet frames down to the UDP payload, and the flow hash of receive-side scaling.

use crate::kernel::Int;
use etherparse::{EtherType, IpNumber, LaxIpPayloadSlice, LaxNetSlice, LaxSlicedPacket, LenSource, TransportSlice};
use std::net::{IpAddr, SocketAddr};

/// EtherTypes of VLAN tags: 802.1Q, 802.1ad, and the older QinQ.
pub const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Bytes of the two addresses that a frame begins with.
const ADDRESSES: usize = 12;

/// A UDP datagram inside a captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpDatagram<'a> {
    /// IP address and port of the sender.
    pub src: SocketAddr,
    /// IP address and port of the receiver.
    pub dst: SocketAddr,
    /// Part of the payload that the capture kept.
    pub payload: &'a [u8],
    /// Length of the payload in bytes, by the UDP header.
    pub payload_len: usize,
    /// Differentiated services code point of the IP packet.
    pub dscp: u8,
}

/// Reason why a frame holds no UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoDatagram {
    /// The frame does not carry IP (ARP, LLDP, ...).
    NotIp,
    /// The frame carries TCP.
    Tcp,
    /// The frame carries IP, but neither UDP nor TCP.
    NotUdp,
    /// The frame carries a fragment of an IP datagram; fragments are not reassembled.
    Fragment,
    /// A header is cut off or contradicts itself.
    Malformed,
}

/// Fields of an IP packet that a NIC decides by: those of receive-side scaling, and the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RssFlow {
    /// Toeplitz hash of addresses and ports; of addresses alone where there are no ports (fragments, ICMP).
    pub hash: u32,
    /// Ports of the packet, where the frame shows them.
    pub ports: FlowPorts,
    /// Differentiated services code point (RFC 2474): the upper six bits of IPv4's second byte, or of IPv6's traffic class.
    pub dscp: u8,
}

/// Ports of an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowPorts {
    /// The frame shows both ports.
    Known {
        /// Port of the sender.
        source: u16,
        /// Port of the receiver.
        destination: u16,
    },
    /// The packet has no ports, or none that the frame shows, for this reason.
    Unknown(NoDatagram),
}

impl FlowPorts {
    /// Destination port of UDP or TCP.
    pub fn destination(self) -> Option<u16> {
        match self {
            FlowPorts::Known { destination, .. } => Some(destination),
            FlowPorts::Unknown(_) => None,
        }
    }
}

/// The UDP datagram in an Ethernet frame (with any VLAN tags, IPv4 options and IPv6 extension headers), of
/// which the capture may have kept the first bytes only.
pub fn datagram(frame: &[u8]) -> Result<UdpDatagram<'_>, NoDatagram> {
    let Sliced { packet, src, dst, cut, dscp, .. } = match slice(frame)? {
        sliced if sliced.fragmented => return Err(NoDatagram::Fragment),
        sliced => sliced,
    };
    match packet.transport {
        Some(TransportSlice::Udp(udp)) => Ok(UdpDatagram {
            src: SocketAddr::new(src, udp.source_port()),
            dst: SocketAddr::new(dst, udp.destination_port()),
            payload: udp.payload(),
            payload_len: usize::from(udp.length()).saturating_sub(8).max(udp.payload().len()),
            dscp,
        }),
        Some(TransportSlice::Tcp(_)) => Err(NoDatagram::Tcp),
        _ if cut.is_some_and(|c| c.protocol == IpNumber::TCP) => Err(NoDatagram::Tcp),
        _ if packet.stop_err.is_some() => Err(NoDatagram::Malformed),
        _ => Err(NoDatagram::NotUdp),
    }
}

/// The flow of an Ethernet frame that carries IP, whatever protocol the IP packet contains.
pub fn flow(frame: &[u8]) -> Result<RssFlow, NoDatagram> {
    let Sliced { packet, src, dst, dscp, fragmented, cut } = slice(frame)?;
    let ports = match &packet.transport {
        // Only the first fragment has ports, and all go to one queue.
        _ if fragmented => FlowPorts::Unknown(NoDatagram::Fragment),
        Some(TransportSlice::Udp(udp)) => {
            FlowPorts::Known { source: udp.source_port(), destination: udp.destination_port() }
        }
        Some(TransportSlice::Tcp(tcp)) => {
            FlowPorts::Known { source: tcp.source_port(), destination: tcp.destination_port() }
        }
        _ => match cut {
            Some(CutHeader { ports: Some((source, destination)), .. }) => FlowPorts::Known { source, destination },
            _ if packet.stop_err.is_some() => FlowPorts::Unknown(NoDatagram::Malformed),
            _ => FlowPorts::Unknown(NoDatagram::NotUdp),
        },
    };
    let hash = match ports {
        FlowPorts::Known { source, destination } => {
            rss_hash(SocketAddr::new(src, source), SocketAddr::new(dst, destination))
        }
        FlowPorts::Unknown(_) => toeplitz(&[src, dst], &[]),
    };
    Ok(RssFlow { hash, ports, dscp })
}

/// A dissected frame that carries IP.
struct Sliced<'a> {
    packet: LaxSlicedPacket<'a>,
    src: IpAddr,
    dst: IpAddr,
    dscp: u8,
    fragmented: bool,
    /// Header of UDP or TCP that the capture cut.
    cut: Option<CutHeader>,
}

/// A header of UDP or TCP of which the capture kept less than the whole.
#[derive(Clone, Copy)]
struct CutHeader {
    protocol: IpNumber,
    /// Ports of the sender and of the receiver: the first four bytes of either header.
    ports: Option<(u16, u16)>,
}

impl CutHeader {
    /// The header at the start of `ip`, where that is all that the capture kept of it.
    fn of(ip: &LaxIpPayloadSlice<'_>) -> Option<CutHeader> {
        let protocol = ip.ip_number;
        let (IpNumber::UDP | IpNumber::TCP) = protocol else { return None };
        let least = if protocol == IpNumber::TCP { 20 } else { 8 };
        let tcp_words = ip.payload.get(12).filter(|_| protocol == IpNumber::TCP).map(|b| usize::from(b >> 4));
        let length = tcp_words.map_or(least, |words| words * 4);
        // Otherwise the IP packet itself is too short, and the header is malformed.
        let by_the_capture = ip.len_source == LenSource::Slice && ip.payload.len() < length.max(least);
        let ports =
            ip.payload.first_chunk().map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])));
        by_the_capture.then_some(CutHeader { protocol, ports })
    }
}

/// Dissects a frame.
fn slice(frame: &[u8]) -> Result<Sliced<'_>, NoDatagram> {
    let (kind, rest) = untagged(frame).ok_or(NoDatagram::Malformed)?;
    let packet = LaxSlicedPacket::from_ether_type(EtherType(kind), rest);
    let (src, dst, dscp, ip): (IpAddr, IpAddr, u8, _) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let h = ip.header();
            (h.source_addr().into(), h.destination_addr().into(), h.dcp().value(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let h = ip.header();
            (h.source_addr().into(), h.destination_addr().into(), h.traffic_class() >> 2, ip.payload())
        }
        Some(LaxNetSlice::Arp(_)) => return Err(NoDatagram::NotIp),
        None if packet.stop_err.is_some() => return Err(NoDatagram::Malformed),
        None => return Err(NoDatagram::NotIp),
    };
    let (fragmented, cut) = (ip.fragmented, CutHeader::of(ip));
    Ok(Sliced { src, dst, dscp, fragmented, cut, packet })
}

/// EtherType of a frame behind all its VLAN tags, and what follows the type; None when the frame ends before.
fn untagged(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut rest = frame.get(ADDRESSES..)?;
    loop {
        let (kind, behind) = rest.split_first_chunk::<2>()?;
        let kind = u16::from_be_bytes(*kind);
        if !TAGS.contains(&kind) {
            return Some((kind, behind));
        }
        rest = behind.get(2..)?;
    }
}

/// Microsoft's default RSS secret key ("Verifying the RSS hash calculation").
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b,
    0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
    0x01, 0xfa,
];

/// The Toeplitz hash by which NICs spread flows over queues: source and destination address, then source and
/// destination port. The two directions of a connection hash differently.
pub fn rss_hash(src: SocketAddr, dst: SocketAddr) -> u32 {
    toeplitz(&[src.ip(), dst.ip()], &[src.port(), dst.port()])
}

fn toeplitz(addresses: &[IpAddr], ports: &[u16]) -> u32 {
    let mut input = [0u8; 36];
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        input[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
    };
    for ip in addresses {
        match ip {
            IpAddr::V4(a) => put(&a.octets()),
            IpAddr::V6(a) => put(&a.octets()),
        }
    }
    ports.iter().for_each(|p| put(&p.to_be_bytes()));

    let mut window = u64::from_be_bytes(*KEY.first_chunk().expect("the key has 40 bytes"));
    let mut hash = 0;
    for (i, byte) in input[..len].iter().enumerate() {
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= (window >> 32).to_u32();
            }
            window <<= 1;
        }
        window |= u64::from(KEY.get(i + 8).copied().unwrap_or(0));
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(src: &str, dst: &str) -> u32 {
        rss_hash(src.parse().unwrap(), dst.parse().unwrap())
    }

    /// "Verifying the RSS hash calculation", learn.microsoft.com, tables for IPv4 and IPv6 with ports.
    #[test]
    fn the_flow_hash_is_the_one_that_microsoft_publishes() {
        assert_eq!(hash("66.9.149.187:2794", "161.142.100.80:1766"), 0x51cc_c178);
        assert_eq!(hash("199.92.111.2:14230", "65.69.140.83:4739"), 0xc626_b0ea);
        assert_eq!(hash("24.19.198.95:12898", "12.22.207.184:38024"), 0x5c2b_394a);
        assert_eq!(hash("38.27.205.30:48228", "209.142.163.6:2217"), 0xafc7_327f);
        assert_eq!(hash("153.39.163.191:44251", "202.188.127.2:1303"), 0x10e8_28a2);
        assert_eq!(hash("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766"), 0x4020_7d3d);
    }

    /// "Verifying the RSS hash calculation", learn.microsoft.com, columns without ports.
    #[test]
    fn without_ports_the_hash_is_of_the_addresses() {
        let hash = |src: &str, dst: &str| toeplitz(&[src.parse().unwrap(), dst.parse().unwrap()], &[]);
        assert_eq!(hash("66.9.149.187", "161.142.100.80"), 0x323e_8fc2);
        assert_eq!(hash("199.92.111.2", "65.69.140.83"), 0xd718_262a);
        assert_eq!(hash("24.19.198.95", "12.22.207.184"), 0xd2d0_a5de);
        assert_eq!(hash("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1"), 0x2cc1_8cd5);
    }

    #[test]
    fn the_two_directions_of_a_connection_hash_differently() {
        assert_ne!(hash("10.0.0.1:7", "10.0.0.2:9"), hash("10.0.0.2:9", "10.0.0.1:7"));
    }

    /// RFC 2474: the code point is the upper six bits of IPv4's second byte (RFC 791) and of IPv6's traffic class, which follows four
    /// bits of version (RFC 8200); the lower two are those of congestion. 8 is CS1, and 46 is EF.
    #[test]
    fn the_code_point_is_read_from_either_header() {
        let udp = [0, 7, 0, 9, 0, 8, 0, 0];
        let v4 = [0x45, 8 << 2 | 1, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let v6: Vec<u8> = [0x6b, 0x80, 0, 0, 0, 8, 17, 64].into_iter().chain([1; 16]).chain([2; 16]).collect();
        for (kind, header, dscp) in [([8, 0], v4.as_slice(), 8), ([0x86, 0xdd], v6.as_slice(), 46)] {
            let frame = [&[0; ADDRESSES], kind.as_slice(), header, &udp].concat();
            assert_eq!(flow(&frame).map(|f| f.dscp), Ok(dscp));
            assert_eq!(datagram(&frame).map(|d| d.dscp), Ok(dscp));
        }
    }
}
