//! The 16-byte descriptor and its metadata word.

/// Most segments one packet may have: they share one 64-byte line.
pub const MAX_SEGMENTS: usize = 4;

/// Flag of a segment that is followed by another one of the same packet.
pub const MORE: u16 = 1;
/// Flag of a buffer its sender keeps: the receiver reads it and must not free it.
pub const NO_RECYCLE: u16 = 2;

/// Flag of a packet's first segment: its payload begins with an [`Offload`](crate::Offload).
pub const OFFLOAD: u16 = 4;

/// Signal bit of a published descriptor.
pub(crate) const READY: u64 = 1 << 63;
/// Signal bit of a blank buffer posted by the host (host-only buffer management).
pub(crate) const POSTED: u64 = 1 << 62;

/// One descriptor: a buffer's payload address (byte offset in the region) and its metadata.
///
/// Metadata bits: 0-15 length in bytes, 16-31 flags, 32-61 zero, 62 posted, 63 ready.
/// All sixteen bytes zero mean a blank slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Desc {
    /// Byte offset of the payload in the region; never zero in a used descriptor.
    pub addr: u64,
    /// Length and flags.
    pub meta: u64,
}

impl Desc {
    /// A descriptor of `len` bytes at `addr`.
    #[inline]
    pub fn new(addr: u64, len: u16, flags: u16) -> Desc {
        Desc { addr, meta: u64::from(len) | u64::from(flags) << 16 }
    }

    /// Payload length in bytes.
    #[inline]
    pub fn len(&self) -> u16 {
        self.meta as u16
    }

    /// True when the slot is blank.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.addr == 0 && self.meta == 0
    }

    /// Flags of the segment: [`MORE`], [`NO_RECYCLE`] and [`OFFLOAD`].
    #[inline]
    pub fn flags(&self) -> u16 {
        (self.meta >> 16) as u16
    }

    /// True when another segment of the same packet follows.
    #[inline]
    pub fn more(&self) -> bool {
        self.flags() & MORE != 0
    }
}
