//! Content of packets: the requests that packets carry.

use super::lines;
use crate::device::nic::Packet;
use crate::traffic::pcap::Captured;

/// Content of a packet, opaque to the NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Content {
    /// Kind of the request, in the numbering of the application.
    pub kind: u8,
    /// Number of the key that the request asks for, or another number that the application defines.
    pub key: u64,
    /// Lines of the packet in its receive buffer.
    pub lines: u16,
    /// Number of lines of the value that the request concerns.
    pub value_lines: u16,
    /// Bytes of the packet's frame on the wire.
    pub wire_bytes: u32,
    /// Flow of the packet.
    pub flow: u32,
}

impl Content {
    /// Content of packet `p`.
    #[inline]
    pub fn of(p: &Packet) -> Content {
        Content {
            kind: p.kind,
            key: p.key,
            lines: p.lines,
            value_lines: p.value_lines,
            wire_bytes: p.wire_bytes,
            flow: p.flow,
        }
    }

    /// Content of a packet in a frame of the size that a captured packet has.
    #[inline]
    pub fn of_size(self, packet: &Captured) -> Content {
        self.sized(packet.wire_len)
    }

    /// Content of a packet in a frame of `bytes` bytes.
    #[inline]
    pub fn sized(self, bytes: u32) -> Content {
        Content { lines: lines(bytes.into()), wire_bytes: bytes, ..self }
    }
}
