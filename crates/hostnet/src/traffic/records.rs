//! Packet records from pcap and pcapng files, in either byte order and any time resolution.

use crate::kernel::Int;
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode, UnknownBlock};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{create_reader, Linktype, PcapBlockOwned, PcapError};
use std::io::{BufReader, Cursor, Read};

/// One captured packet.
pub struct Record<'a> {
    /// Picoseconds since the capture's epoch; `None` for pcapng's simple packet blocks.
    pub at_ps: Option<i128>,
    /// Length on the wire in bytes, which `data` need not reach.
    pub wire_len: u32,
    /// Link type of the interface on which the packet was captured.
    pub link: Linktype,
    /// Part of the packet that the capture kept.
    pub data: &'a [u8],
}

/// Damage of a capture file. Packets are numbered from 1, as in Wireshark.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum Damage {
    /// The system refused to open or read the file.
    Unreadable(String),
    /// The file does not begin like a pcap or pcapng file.
    NotACapture,
    /// The file begins like one that this program has compressed.
    Compressed(&'static str),
    /// The file begins like a modified pcap of Kuznetzov in big-endian byte order, whose records have fields of their own.
    ModifiedBigEndian,
    /// A record of a pcap older than version 2.4 contradicts that version: older programs wrote lengths in another order.
    Old { packet: u64, byte: u64, version: (u16, u16) },
    /// The block that begins at `byte` has `length` bytes, more than are read at once.
    LongBlock { byte: u64, length: u64 },
    /// The file ends inside the record that begins at `byte`, before or in packet `packet`.
    Truncated { packet: u64, byte: u64 },
    /// The record that begins at `byte` contradicts the format.
    Malformed { packet: u64, byte: u64 },
    /// The record that begins at `byte` claims more bytes of its packet than any snap length allows.
    Oversized { packet: u64, byte: u64, length: u64 },
    /// A packet names an interface that the file has not described.
    UnknownInterface { packet: u64, byte: u64, interface: u32 },
}

/// Maximum bytes of a packet: the largest snap length of tcpdump and Wireshark. Longer packets are treated as damage.
pub const LONGEST_PACKET: usize = 1 << 18;
/// Maximum bytes of a block; longer blocks are treated as damage.
pub const LONGEST_RECORD: usize = 16 << 20;
/// Bytes of a file that are read at first; the header of a section must lie within.
const FIRST_READ: usize = 1 << 20;
/// First bytes of a modified pcap in big-endian byte order.
const MODIFIED_BIG_ENDIAN: [u8; 4] = [0xa1, 0xb2, 0xcd, 0x34];

/// First bytes of files that capture tools write compressed (RFC 1952, RFC 8878, the formats of lz4, xz and bzip2), with the
/// program that compressed them.
const COMPRESSED: [(&[u8], &str); 5] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (b"BZh", "bzip2"),
];

/// Block type of pcapng's Packet Block, which the Enhanced Packet Block has replaced (pcapng draft, appendix A).
const PACKET_BLOCK: u32 = 2;
/// Block type of pcapng's Enhanced Packet Block.
const ENHANCED_PACKET_BLOCK: u32 = 6;
/// Offset of the captured length in the header of a record of pcap, and in a packet block of pcapng.
const LENGTH_IN_RECORD: usize = 8;
const LENGTH_IN_BLOCK: usize = 20;
/// Offset of a block's total length in pcapng.
const LENGTH_OF_BLOCK: usize = 4;
/// Bytes of an Interface Description Block without options, and of an option without its value.
const DESCRIPTION_WITHOUT_OPTIONS: usize = 20;
const OPTION_HEADER: usize = 4;

/// An interface of a pcapng section, or the only one of a pcap file.
struct CaptureInterface {
    link: Linktype,
    /// Maximum number of bytes that are kept of a packet; 0 means unspecified.
    snap: u32,
    /// Time resolution if_tsresol as stored: ticks are 10^-n s, or 2^-n s with the top bit set.
    resolution: u8,
    offset_s: i64,
}

/// Number in a file of either byte order.
fn number<const N: usize>(bytes: &[u8], at: usize, big_endian: bool) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<N>()?;
    let value = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    Some(if big_endian { bytes.iter().fold(0, value) } else { bytes.iter().rev().fold(0, value) })
}

/// Fields of an obsolete Packet Block: like those of an Enhanced Packet Block, but the interface has 16 bits, and 16
/// more bits count the packets that the interface lost.
struct PacketBlock<'a> {
    interface: u32,
    ticks: u64,
    wire_len: u32,
    data: &'a [u8],
}

impl<'a> PacketBlock<'a> {
    /// Reads the body of a block; None when the body is shorter than its lengths say.
    fn read(body: &'a [u8], big_endian: bool) -> Option<PacketBlock<'a>> {
        let word = |at| number::<4>(body, at, big_endian);
        Some(PacketBlock {
            interface: number::<2>(body, 0, big_endian)?.to_u32(),
            ticks: word(4)? << 32 | word(8)?,
            wire_len: word(16)?.to_u32(),
            data: body.get(20..)?.get(..word(12)?.to_usize())?,
        })
    }
}

impl CaptureInterface {
    fn legacy(header: &pcap_parser::PcapHeader) -> CaptureInterface {
        CaptureInterface {
            // The upper half says whether frames carry their checksum, and how long it is.
            link: Linktype(header.network.0 & 0xffff),
            snap: header.snaplen,
            resolution: if header.is_nanosecond_precision() { 9 } else { 6 },
            offset_s: 0,
        }
    }

    /// Interface of a pcapng description block; None when an option is longer than the rest of the block. Values of another
    /// length than their option has are ignored, as by Wireshark. The parser reads if_tsoffset as little-endian in every
    /// section, does not support resolutions that are powers of two, and leaves out the options from a damaged one on;
    /// therefore this function takes both values from the raw options, and counts their bytes.
    fn described(block: &InterfaceDescriptionBlock, big_endian: bool) -> Option<CaptureInterface> {
        let end = block.options.iter().position(|o| o.code == OptionCode::EndOfOpt);
        let options = &block.options[..end.unwrap_or(block.options.len())];
        let bytes: usize = options.iter().map(|o| OPTION_HEADER + o.value.len()).sum();
        if end.is_none() && DESCRIPTION_WITHOUT_OPTIONS + bytes < block.block_len1.to_usize() {
            return None;
        }
        let option = |code| options.iter().find(|o| o.code == code).and_then(|o| o.as_bytes().ok());
        let offset = option(OptionCode::IfTsoffset).and_then(|v| <[u8; 8]>::try_from(v).ok());
        let resolution = option(OptionCode::IfTsresol).and_then(|v| <[u8; 1]>::try_from(v).ok());
        Some(CaptureInterface {
            link: block.linktype,
            snap: block.snaplen,
            resolution: resolution.map_or(6, |[r]| r),
            offset_s: offset.map_or(0, |v| match big_endian {
                true => i64::from_be_bytes(v),
                false => i64::from_le_bytes(v),
            }),
        })
    }

    fn picoseconds(&self, ticks: u64) -> i128 {
        const SECOND: u128 = 1_000_000_000_000;
        let n = u32::from(self.resolution & 0x7f);
        let ps = if self.resolution & 0x80 != 0 {
            (u128::from(ticks) * SECOND) >> n
        } else if n <= 12 {
            u128::from(ticks) * 10u128.pow(12 - n)
        } else {
            10u128.checked_pow(n - 12).map_or(0, |d| u128::from(ticks) / d)
        };
        ps.cast_signed() + i128::from(self.offset_s) * SECOND.cast_signed()
    }
}

/// Passes each packet record of a capture to `each`, in file order, and returns the number of records. With `lenient`,
/// damage ends the reading, and the damage is returned with the number.
///
/// # Errors
/// Returns errors of `each`, and damage of the file; with `lenient`, only damage of the file's header.
pub fn read<E: From<Damage>>(
    source: impl Read + Send,
    lenient: bool,
    each: impl FnMut(u64, Record) -> Result<(), E>,
) -> Result<(u64, Option<Damage>), E> {
    use Damage::{Compressed, Malformed, ModifiedBigEndian, NotACapture, Old, Oversized, Truncated, Unreadable};
    let (mut packets, mut version) = (0, (2, 4));
    let walked = walk(source, &mut packets, &mut version, each).map_err(|stop| match stop {
        Stop::Damaged(Malformed { packet, byte } | Oversized { packet, byte, .. } | Truncated { packet, byte })
            if version < (2, 4) =>
        {
            Stop::Damaged(Old { packet, byte, version })
        }
        other => other,
    });
    match walked {
        Ok(()) => Ok((packets, None)),
        Err(Stop::Damaged(d @ (Unreadable(_) | NotACapture | Compressed(_) | ModifiedBigEndian))) => Err(d.into()),
        Err(Stop::Damaged(d)) if lenient => Ok((packets, Some(d))),
        Err(Stop::Damaged(d)) => Err(d.into()),
        Err(Stop::Refused(e)) => Err(e),
    }
}

/// Reason why reading ended early: damage of the file, or an error of the caller.
enum Stop<E> {
    Damaged(Damage),
    Refused(E),
}

impl<E> From<Damage> for Stop<E> {
    fn from(d: Damage) -> Stop<E> {
        Stop::Damaged(d)
    }
}

fn walk<E>(
    source: impl Read + Send,
    packets: &mut u64,
    version: &mut (u16, u16),
    mut each: impl FnMut(u64, Record) -> Result<(), E>,
) -> Result<(), Stop<E>> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let mut start = Vec::new();
    let first = (&mut source).take(FIRST_READ.to_u64()).read_to_end(&mut start);
    first.map_err(|e| Damage::Unreadable(e.to_string()))?;
    if start.starts_with(&MODIFIED_BIG_ENDIAN) {
        return Err(Damage::ModifiedBigEndian.into());
    }
    if let Some((_, program)) = COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(Damage::Compressed(program).into());
    }
    let mut reader = create_reader(FIRST_READ, Cursor::new(start).chain(source)).map_err(|e| match e {
        PcapError::ReadError => Damage::Unreadable("reading failed".into()),
        _ => Damage::NotACapture,
    })?;
    let mut capacity = FIRST_READ;
    let mut interfaces = Vec::new();
    let mut big_endian = false;
    // Offset of the captured length in a record's header.
    let mut length_at = LENGTH_IN_BLOCK;
    loop {
        let byte = reader.consumed().to_u64();
        let packet = *packets + 1;
        let (used, block) = match reader.next() {
            Ok(next) => next,
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => {
                refill(&mut *reader)?;
                continue;
            }
            Err(PcapError::BufferTooSmall) if capacity < LONGEST_RECORD => {
                capacity *= 2;
                reader.grow(capacity);
                refill(&mut *reader)?;
                continue;
            }
            Err(PcapError::UnexpectedEof) => {
                // A length that no packet has is damage, however long the file is.
                let header = reader.data();
                let kind = number::<4>(header, 0, big_endian).map(Int::to_u32);
                let has_length =
                    length_at == LENGTH_IN_RECORD || matches!(kind, Some(PACKET_BLOCK | ENHANCED_PACKET_BLOCK));
                let length = number::<4>(header, length_at, big_endian).filter(|_| has_length).unwrap_or(0);
                // A block that is there to its end, but claims more of its packet than it holds, is not truncated.
                let block = number::<4>(header, LENGTH_OF_BLOCK, big_endian).filter(|_| length_at == LENGTH_IN_BLOCK);
                return Err(if length > LONGEST_PACKET.to_u64() {
                    Damage::Oversized { packet, byte, length }.into()
                } else if block.is_some_and(|block| block % 4 > 0 || block <= header.len().to_u64()) {
                    Damage::Malformed { packet, byte }.into()
                } else {
                    Damage::Truncated { packet, byte }.into()
                });
            }
            Err(PcapError::BufferTooSmall) if length_at == LENGTH_IN_BLOCK => {
                let length = number::<4>(reader.data(), LENGTH_OF_BLOCK, big_endian).unwrap_or(0);
                return Err(Damage::LongBlock { byte, length }.into());
            }
            Err(_) => return Err(Damage::Malformed { packet, byte }.into()),
        };
        let mut hand_over = |record: Record| {
            if record.data.len() > LONGEST_PACKET {
                return Err(Damage::Oversized { packet, byte, length: record.data.len().to_u64() }.into());
            }
            *packets += 1;
            each(packet, record).map_err(Stop::Refused)
        };
        let interface = |n: u32| {
            let unknown = Damage::UnknownInterface { packet, byte, interface: n };
            interfaces.get(n.to_usize()).ok_or(unknown)
        };
        match block {
            PcapBlockOwned::LegacyHeader(h) => {
                (big_endian, length_at) = (h.is_bigendian(), LENGTH_IN_RECORD);
                *version = (h.version_major, h.version_minor);
                interfaces.push(CaptureInterface::legacy(&h));
            }
            PcapBlockOwned::Legacy(p) => {
                // Programs that wrote these versions put the length on the wire first, and it is the larger one.
                if *version < (2, 4) && p.caplen > p.origlen {
                    return Err(Damage::Malformed { packet, byte }.into());
                }
                let on = interface(0)?;
                let per_second = 10u64.pow(u32::from(on.resolution));
                let ticks = u64::from(p.ts_sec) * per_second + u64::from(p.ts_usec);
                let at_ps = Some(on.picoseconds(ticks));
                hand_over(Record { at_ps, wire_len: p.origlen, link: on.link, data: p.data })?;
            }
            PcapBlockOwned::NG(Block::SectionHeader(h)) => {
                big_endian = h.big_endian();
                interfaces.clear();
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(i)) => {
                let described = CaptureInterface::described(&i, big_endian);
                interfaces.push(described.ok_or(Damage::Malformed { packet, byte })?);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(p)) => {
                let on = interface(p.if_id)?;
                let ticks = u64::from(p.ts_high) << 32 | u64::from(p.ts_low);
                let at_ps = Some(on.picoseconds(ticks));
                let (wire_len, data) = (p.origlen, p.packet_data());
                hand_over(Record { at_ps, wire_len, link: on.link, data })?;
            }
            PcapBlockOwned::NG(Block::SimplePacket(p)) => {
                let on = interface(0)?;
                // The snap length tells how much of the last word is padding.
                let most = if on.snap == 0 { usize::MAX } else { on.snap.to_usize() };
                let data = p.packet_data();
                let data = &data[..data.len().min(most)];
                hand_over(Record { at_ps: None, wire_len: p.origlen, link: on.link, data })?;
            }
            PcapBlockOwned::NG(Block::Unknown(UnknownBlock { block_type, data, .. }))
                if PACKET_BLOCK == if big_endian { block_type.swap_bytes() } else { block_type } =>
            {
                // The parser reads the type as little-endian, whatever the section is.
                let p = PacketBlock::read(data, big_endian).ok_or(Damage::Malformed { packet, byte })?;
                let on = interface(p.interface)?;
                let at_ps = Some(on.picoseconds(p.ticks));
                hand_over(Record { at_ps, wire_len: p.wire_len, link: on.link, data: p.data })?;
            }
            PcapBlockOwned::NG(_) => {} // statistics, names, secrets, comments
        }
        reader.consume(used);
    }
}

fn refill(reader: &mut dyn pcap_parser::traits::PcapReaderIterator) -> Result<(), Damage> {
    reader.refill().map_err(|e| Damage::Unreadable(e.to_string()))
}

/// Name of a link type: a word for the link types that tcpdump and Wireshark write most, otherwise the number. Source:
/// tcpdump.org/linktypes.html.
pub fn link_name(link: Linktype) -> String {
    let name = match link.0 {
        0 => "BSD loopback",
        1 => "Ethernet",
        9 => "PPP",
        101 => "raw IP",
        105 => "IEEE 802.11",
        108 => "OpenBSD loopback",
        113 => "Linux cooked (interface \"any\")",
        127 => "IEEE 802.11 with radiotap",
        228 => "raw IPv4",
        229 => "raw IPv6",
        239 => "NFLOG",
        249 => "USBPcap",
        276 => "Linux cooked v2 (interface \"any\")",
        n => return n.to_string(),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(resolution: u8, offset_s: i64, ticks: u64) -> i128 {
        CaptureInterface { link: Linktype(1), snap: 0, resolution, offset_s }.picoseconds(ticks)
    }

    /// Section 4.2 of the pcapng draft: the top bit of if_tsresol selects powers of two.
    #[test]
    fn timestamps_follow_if_tsresol_and_if_tsoffset() {
        assert_eq!(at(6, 0, 1_500_000), 1_500_000_000_000);
        assert_eq!(at(9, 0, 1), 1_000);
        assert_eq!(at(0, 0, 2), 2_000_000_000_000);
        assert_eq!(at(15, 0, 2_000), 2);
        assert_eq!(at(0x80 | 10, 0, 512), 500_000_000_000);
        assert_eq!(at(6, -1, 2_000_000), 1_000_000_000_000);
    }

    #[test]
    fn no_resolution_overflows() {
        for r in 0..=255 {
            assert!(at(r, i64::MAX, u64::MAX) >= at(r, i64::MIN, 0));
        }
    }
}
