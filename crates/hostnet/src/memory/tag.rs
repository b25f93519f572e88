//! Steering tag that a NIC attaches to a line, in reserved bits of the TLP header of its write (IDIO, section V-A, Fig.
//! 7).

use crate::kernel::{CoreId, Int};

/// Code whose bits are all ones, which stands for class 1 instead of a core.
const CLASS_1: u16 = 0b11_1111;
/// Number of cores that have a code.
pub const CORES: usize = CLASS_1 as usize;

const HEADER: u16 = 1 << 6;
const BURST: u16 = 1 << 7;
/// Mark beyond the eight bits of IDIO's tag, as PCIe's processing hints (TPH) tell descriptors from data in the two lowest bits of
/// the address.
const DESCRIPTOR: u16 = 1 << 8;

/// Bits of the first dword that carry the core's code, from its highest bit down.
const CORE_BITS: [u32; 6] = [23, 19, 18, 17, 16, 11];
/// Bit of the first dword that marks the first line of a packet.
const HEADER_BIT: u32 = 31;
/// Bit of the first dword that signals a burst.
const BURST_BIT: u32 = 10;

/// Steering tag: destination core, header mark and burst mark, as eight reserved bits carry them, and the mark of descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tag(u16);

impl Tag {
    /// Makes the tag of a line for `core`. A header names its core whatever the class; other lines of class 1 carry the
    /// code of class 1 instead, and so do all lines for a core that has no code.
    pub fn new(core: CoreId, class_1: bool, header: bool, burst: bool) -> Tag {
        let code = if class_1 && !header || core.index() >= CORES { CLASS_1 } else { core.0.to_u16() };
        Tag(code | if header { HEADER } else { 0 } | if burst { BURST } else { 0 })
    }

    /// Core that the line is for; None for a line of class 1, and for a core beyond the 63 that have a code.
    #[inline]
    pub fn core(self) -> Option<CoreId> {
        let code = self.0 & CLASS_1;
        (code != CLASS_1).then_some(CoreId(code))
    }
    /// The tag of a descriptor for the core that this tag names, or of its class.
    #[inline]
    pub fn of_descriptor(self) -> Tag {
        Tag(self.0 & !HEADER | DESCRIPTOR)
    }
    /// Whether the line holds descriptors or a completion.
    #[inline]
    pub fn is_descriptor(self) -> bool {
        self.0 & DESCRIPTOR != 0
    }
    /// Whether the line is the first of its packet.
    #[inline]
    pub fn is_header(self) -> bool {
        self.0 & HEADER != 0
    }
    /// Whether the line belongs to a burst of packets.
    #[inline]
    pub fn is_burst(self) -> bool {
        self.0 & BURST != 0
    }

    /// The tag with the mark of descriptors of `other`, which a packet carries beside its first dword.
    #[inline]
    pub fn with_hint_of(self, other: Tag) -> Tag {
        Tag(self.0 | other.0 & DESCRIPTOR)
    }

    /// Reserved bits of a memory write's first dword, which have no room for the mark of descriptors.
    #[inline]
    pub fn encode(self) -> u32 {
        if self == Tag::default() {
            return 0;
        }
        let core = CORE_BITS.iter().enumerate().map(|(i, bit)| u32::from(self.0 >> (5 - i) & 1) << bit).sum::<u32>();
        core | u32::from(self.is_header()) << HEADER_BIT | u32::from(self.is_burst()) << BURST_BIT
    }

    /// Reads the tag from the reserved bits of a first dword.
    #[inline]
    pub fn decode(dword: u32) -> Tag {
        if dword == 0 {
            return Tag::default();
        }
        let bit = |at: u32| (dword >> at & 1).to_u16();
        let core = CORE_BITS.iter().fold(0, |code, at| code << 1 | bit(*at));
        Tag(core | bit(HEADER_BIT) << 6 | bit(BURST_BIT) << 7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The core's code lies in bits 23, 19:16 and 11, the header mark in bit 31, and the burst mark in bit 10.
    #[test]
    fn core_header_and_burst_have_their_reserved_bits() {
        for (core, dword) in
            [(0, 0), (1, 1 << 11), (2, 1 << 16), (4, 1 << 17), (8, 1 << 18), (16, 1 << 19), (32, 1 << 23)]
        {
            assert_eq!(Tag::new(CoreId(core), false, false, false).encode(), dword, "core {core}");
        }
        let all = 1 << 23 | 0xf << 16 | 1 << 11;
        assert_eq!(Tag::new(CoreId(62), false, false, false).encode(), all - (1 << 11));
        assert_eq!(Tag::new(CoreId(0), false, true, false).encode(), 1 << 31);
        assert_eq!(Tag::new(CoreId(0), false, false, true).encode(), 1 << 10);
        assert_eq!(Tag::new(CoreId(5), true, false, false).encode(), all, "class 1 is the code of all ones");
    }

    /// According to PCI Express Base Specification, 2.2.1, format, type, traffic class, digest, poison, attributes and
    /// length are not reserved.
    #[test]
    fn no_bit_with_a_meaning_of_its_own_is_touched() {
        let own = 0x7f << 24 | 0x7 << 20 | 0xf << 12 | 0x3ff;
        for bits in 0..=u8::MAX.into() {
            assert_eq!(Tag(bits).encode() & own, 0);
            assert_eq!(Tag::decode(Tag(bits).encode() | own), Tag(bits));
        }
    }

    /// A packet of class 1 names its core in the header's write, and has code 63 in the other writes.
    #[test]
    fn a_header_of_class_1_names_its_core_and_its_payload_does_not() {
        let (header, payload) = (Tag::new(CoreId(7), true, true, true), Tag::new(CoreId(7), true, false, true));
        assert_eq!((header.core(), header.is_header(), header.is_burst()), (Some(CoreId(7)), true, true));
        assert_eq!((payload.core(), payload.is_header(), payload.is_burst()), (None, false, true));
    }
}
