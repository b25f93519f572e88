//! Buffer handles.

use crate::desc::{MORE, NO_RECYCLE, OFFLOAD};

/// A buffer, or a part of one, as the C ABI sees it: plain data, 16 bytes. Copying it in C
/// is allowed; using it after it was sent or freed is caught and counted, not undefined.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawBuf {
    /// Byte offset of the first payload byte in the region.
    pub addr: u64,
    /// Number of the buffer.
    pub index: u32,
    /// Payload bytes in use.
    pub len: u16,
    /// [`MORE`] when the next buffer of the burst belongs to the same packet.
    pub flags: u16,
}

impl RawBuf {
    #[inline]
    pub(crate) fn desc(&self, lent: bool) -> crate::desc::Desc {
        let flags = self.flags & (MORE | OFFLOAD) | if lent { NO_RECYCLE } else { 0 };
        crate::desc::Desc::new(self.addr, self.len, flags)
    }
}

/// An owned buffer. It is returned by allocation and RX and consumed by TX and free; it
/// cannot be copied, so safe code cannot use a buffer it gave away. Dropping it without
/// freeing it keeps the buffer out of the pool for the life of the port.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Buf(pub(crate) RawBuf);

impl Buf {
    /// Payload bytes in use.
    pub fn len(&self) -> usize {
        self.0.len.into()
    }

    /// True when no payload bytes are in use; such a buffer cannot be sent.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Number of the buffer within the port, stable for its life.
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// True when the next buffer of the burst belongs to the same packet.
    pub fn more(&self) -> bool {
        self.0.flags & MORE != 0
    }

    /// True when the payload begins with an [`Offload`](crate::Offload) header.
    pub fn offloads(&self) -> bool {
        self.0.flags & OFFLOAD != 0
    }

    /// Says that the payload begins with an [`Offload`](crate::Offload) header; for the first
    /// buffer of a packet.
    pub fn mark_offload(&mut self) {
        self.0.flags |= OFFLOAD;
    }

    /// Marks whether the next buffer of the burst belongs to the same packet.
    pub fn set_more(&mut self, more: bool) {
        self.0.flags = self.0.flags & OFFLOAD | if more { MORE } else { 0 };
    }
}
