//! A packet socket with TPACKET_V3 rings both ways: works on every interface.

use std::os::fd::{AsFd, BorrowedFd};

use super::{Frames, Take};
use crate::error::Error;
use crate::handshake::Features;
use crate::mem::Mem;
use crate::offload::Offload;
use crate::raw::{sys, Region};

const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 16;
const FRAME: usize = 1 << 14;
const FRAMES: usize = BLOCK / FRAME * BLOCKS;
/// Payload offset in a TX frame: the aligned size of `tpacket3_hdr`.
const TX_DATA: usize = 48;

/// Bytes of the `virtio_net_hdr` in front of each frame (PACKET_VNET_HDR).
const HEADER: usize = 10;
/// Bit of `gso_type` that says only that congestion may be marked.
const GSO_ECN: u8 = 0x80;

pub(super) struct PacketSocket {
    rings: Region,
    block: usize,
    frame: usize,
}

impl PacketSocket {
    pub fn open(index: u32) -> Result<PacketSocket, Error> {
        let fd = sys::packet_socket(index)?;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        const PACKET_VNET_HDR: i32 = 15;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, &1i32)?;
        // Without this, the kernel stays at a frame that it refuses, and sends none behind it.
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_LOSS, &1i32)?;
        let mut request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: FRAMES as u32,
            tp_retire_blk_tov: 1,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        request.tp_retire_blk_tov = 0;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let rings = Region::map(fd, 2 * BLOCK * BLOCKS)?;
        Ok(PacketSocket { rings, block: 0, frame: 0 })
    }
}

/// Offload header that the kernel put in front of a frame; none if it left nothing undone.
fn left_undone(bytes: &[u8; HEADER], frame: usize) -> Option<Offload> {
    let mut whole = [0; Offload::BYTES];
    whole[..HEADER].copy_from_slice(bytes);
    whole[1] &= !GSO_ECN;
    Offload::parse(&whole, frame).ok().filter(|o| *o != Offload::default())
}

/// Bytes of a VLAN tag.
const TAG: usize = 4;
/// Bytes in front of a VLAN tag: the two addresses.
const ADDRESSES: usize = 12;

/// The VLAN tag that the kernel took out of a frame, in the frame's byte order, given the word of its header's status and the one
/// of its tag.
fn removed_tag(status: u64, tag: u64) -> Option<[u8; TAG]> {
    const VALID: u64 = 1 << 4;
    const TYPE_VALID: u64 = 1 << 6;
    let status = status >> 32;
    let kind = if status & TYPE_VALID != 0 { (tag >> 32) as u16 } else { 0x8100 };
    let [a, b] = kind.to_be_bytes();
    let [c, d] = (tag as u16).to_be_bytes();
    (status & VALID != 0).then_some([a, b, c, d])
}

/// The offload header of a frame whose tag was put back.
fn behind_tag(todo: Offload) -> Offload {
    let moved = |at: u16, by: usize| if at == 0 { 0 } else { at.saturating_add(by as u16) };
    Offload { csum_start: moved(todo.csum_start, TAG), hdr_len: moved(todo.hdr_len, TAG), ..todo }
}

impl PacketSocket {
    /// Puts a tag back into the frame at byte `data` of the rings, over the end of the offload header in front of it; returns where
    /// the frame begins.
    fn put_back(&self, tag: [u8; TAG], data: usize) -> usize {
        let mut addresses = [0; ADDRESSES];
        self.rings.copy_out(data, &mut addresses);
        self.rings.copy_in(data - TAG, &addresses);
        self.rings.copy_in(data - TAG + ADDRESSES, &tag);
        data - TAG
    }
}

impl Frames for PacketSocket {
    fn features(&self) -> Features {
        Features::ALL
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd().expect("a mapped region has a descriptor")
    }

    fn put(&mut self, offload: &Offload, bytes: &[u8]) -> u64 {
        const SEND_REQUEST: u64 = 1;
        const SENDING: u64 = 2;
        let at = BLOCK * BLOCKS + self.frame * FRAME;
        let status = at / 8 + 2;
        let now = self.rings.get_acquire(status) >> 32;
        if bytes.len() > FRAME - TX_DATA - HEADER || now & (SEND_REQUEST | SENDING) != 0 {
            return 1;
        }
        self.rings.copy_in(at + TX_DATA, &offload.to_bytes()[..HEADER]);
        self.rings.copy_in(at + TX_DATA + HEADER, bytes);
        self.rings.put(at / 8, 0);
        self.rings.put_release(status, (HEADER + bytes.len()) as u64 | SEND_REQUEST << 32);
        self.frame = (self.frame + 1) % FRAMES;
        0
    }

    fn send(&mut self) {
        if sys::kick(self.fd()).is_err() {
            // A full queue, or an interface that is down: what is left is sent with the next burst. The kernel drops frames that
            // it refuses, and says nothing of them.
            std::thread::yield_now();
        }
    }

    /// One block of frames, if the kernel has filled one.
    fn receive(&mut self, take: &mut Take<'_>) -> bool {
        const USER: u64 = 1;
        let block = self.block * BLOCK;
        let word = self.rings.get_acquire(block / 8 + 1);
        if word & USER == 0 {
            return false;
        }
        let frames = word >> 32;
        let mut at = (self.rings.get(block / 8 + 2) & 0xffff_ffff) as usize;
        for _ in 0..frames {
            // The kernel keeps headers inside the block, 16-byte aligned.
            let header = (block + at) / 8;
            let len = (self.rings.get(header + 1) >> 32) as usize;
            let data = block + at + (self.rings.get(header + 3) & 0xffff) as usize;
            let mut todo = [0; HEADER];
            self.rings.copy_out(data - HEADER, &mut todo);
            let todo = left_undone(&todo, len);
            match removed_tag(self.rings.get(header + 2), self.rings.get(header + 4)) {
                Some(tag) if len >= ADDRESSES => {
                    take(&self.rings, self.put_back(tag, data), len + TAG, todo.map(behind_tag))
                }
                _ => take(&self.rings, data, len, todo),
            }
            at += (self.rings.get(header) & 0xffff_ffff) as usize;
        }
        self.rings.put_release(block / 8 + 1, 0);
        self.block = (self.block + 1) % BLOCKS;
        true
    }
}
