//! Offload header of a packet: checksum and segmentation that are left to a NIC, or that it has done.

use crate::error::Fault;

/// The bytes in front of a packet's payload whose first segment carries
/// [`OFFLOAD`](crate::OFFLOAD): the layout of `struct virtio_net_hdr` (VIRTIO 1.2, 5.1.6) in
/// little-endian order, and two bytes that are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// [`Offload::NEEDS_CSUM`] and [`Offload::DATA_VALID`].
    pub flags: u8,
    /// Zero, or one of the `GSO_` values.
    pub gso_type: u8,
    /// Bytes of all headers, for segmentation.
    pub hdr_len: u16,
    /// Most payload bytes of one segment.
    pub gso_size: u16,
    /// First byte that the checksum covers, from the start of the frame.
    pub csum_start: u16,
    /// Where the checksum is stored, from `csum_start`.
    pub csum_offset: u16,
}

impl Offload {
    /// Bytes in front of the frame.
    pub const BYTES: usize = 12;
    /// The checksum field holds the sum of the pseudo header only; the rest is to be added.
    pub const NEEDS_CSUM: u8 = 1;
    /// The checksum was verified.
    pub const DATA_VALID: u8 = 2;
    /// TCP over IPv4 to be segmented, or merged from segments.
    pub const GSO_TCPV4: u8 = 1;
    /// TCP over IPv6 to be segmented, or merged from segments.
    pub const GSO_TCPV6: u8 = 4;
    /// UDP datagrams of `gso_size` bytes each.
    pub const GSO_UDP_L4: u8 = 5;

    /// The byte form of the header.
    pub fn to_bytes(&self) -> [u8; Offload::BYTES] {
        let mut b = [0; Offload::BYTES];
        (b[0], b[1]) = (self.flags, self.gso_type);
        for (i, v) in [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset].into_iter().enumerate() {
            b[2 + 2 * i..4 + 2 * i].copy_from_slice(&v.to_le_bytes());
        }
        b
    }

    /// Reads the byte form and checks it against the frame's length: no value of it leads
    /// outside the frame.
    pub fn parse(bytes: &[u8; Offload::BYTES], frame: usize) -> Result<Offload, Fault> {
        let half = |i: usize| u16::from_le_bytes([bytes[2 + 2 * i], bytes[3 + 2 * i]]);
        let o = Offload {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: half(0),
            gso_size: half(1),
            csum_start: half(2),
            csum_offset: half(3),
        };
        let known = [0, Offload::GSO_TCPV4, Offload::GSO_TCPV6, Offload::GSO_UDP_L4].contains(&o.gso_type)
            && o.flags & !(Offload::NEEDS_CSUM | Offload::DATA_VALID) == 0
            && bytes[10..] == [0, 0];
        let sum =
            o.flags & Offload::NEEDS_CSUM == 0 || usize::from(o.csum_start) + usize::from(o.csum_offset) + 2 <= frame;
        let cut =
            o.gso_type == 0 || o.gso_size > 0 && usize::from(o.hdr_len) < frame && o.flags & Offload::NEEDS_CSUM != 0;
        if known && sum && cut {
            Ok(o)
        } else {
            Err(Fault::Offload)
        }
    }

    /// True when the packet is to be cut into several frames.
    pub fn segments(&self) -> bool {
        self.gso_type != 0
    }

    /// Bytes of the longest frame on the wire.
    pub fn wire(&self, frame: usize) -> usize {
        if self.segments() {
            frame.min(usize::from(self.hdr_len) + usize::from(self.gso_size))
        } else {
            frame
        }
    }

    /// Completes the checksum of `frame` in place, for a way out that cannot.
    pub fn complete(&self, frame: &mut [u8]) {
        let (start, at) = (usize::from(self.csum_start), usize::from(self.csum_start) + usize::from(self.csum_offset));
        if self.flags & Offload::NEEDS_CSUM == 0 || at + 2 > frame.len() {
            return;
        }
        let sum = !fold(frame[start..].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))));
        // A UDP sum of zero means "none"; its equal in one's complement is sent (RFC 768).
        let sum = if sum == 0 && self.csum_offset == 6 { 0xffff } else { sum };
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The one's complement sum of 16-bit words (RFC 1071).
fn fold(words: impl Iterator<Item = u32>) -> u16 {
    let mut sum = words.fold(0u64, |a, w| a + u64::from(w));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_form_is_that_of_virtio() {
        let o = Offload { flags: 1, gso_type: 4, hdr_len: 0x0102, gso_size: 0x0304, csum_start: 34, csum_offset: 16 };
        assert_eq!(o.to_bytes(), [1, 4, 2, 1, 4, 3, 34, 0, 16, 0, 0, 0]);
        assert_eq!(Offload::parse(&o.to_bytes(), 2000), Ok(o));
    }

    #[test]
    fn values_that_lead_outside_the_frame_are_refused() {
        let sum = Offload { flags: 1, csum_start: 34, csum_offset: 16, ..Offload::default() };
        assert!(Offload::parse(&sum.to_bytes(), 52).is_ok());
        assert!(Offload::parse(&sum.to_bytes(), 51).is_err());
        let far = Offload { csum_start: u16::MAX, csum_offset: u16::MAX, ..sum };
        assert!(Offload::parse(&far.to_bytes(), 65535).is_err());
        let cut = Offload { gso_type: 1, hdr_len: 54, gso_size: 0, ..sum };
        assert!(Offload::parse(&cut.to_bytes(), 3000).is_err(), "segments of no bytes never end");
        assert!(Offload::parse(&Offload { gso_type: 2, ..sum }.to_bytes(), 3000).is_err());
    }

    /// The example of RFC 1071, section 3: 0001 f203 f4f5 f6f7 sums to ddf2.
    #[test]
    fn completing_stores_the_complement_of_the_sum() {
        let mut frame = [0xaa, 0xbb, 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0, 0];
        let o = Offload { flags: 1, csum_start: 2, csum_offset: 8, ..Offload::default() };
        o.complete(&mut frame);
        assert_eq!(frame[10..], (!0xddf2u16).to_be_bytes());
    }
}
