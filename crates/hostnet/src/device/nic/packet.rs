//! Records of packets from their arrival to the end of their last use.

use crate::kernel::{Int, LineAddr, PacketId, QueueId, Time};
use crate::memory::{Tag, LINE_U32};

/// Record of one packet. Its `kind`, `key` and `value_lines` are set by the sender and interpreted by the application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    pub arrived: Time,
    /// Flow of the packet, by which the classifier chooses `queue`, together with the RSS hash of the packet's
    /// addresses where it has any.
    pub flow: u32,
    pub hash: Option<u32>,
    pub queue: QueueId,
    /// Client of a closed loop that waits for the reply.
    pub client: u32,
    /// Cache lines that the packet occupies in memory.
    pub lines: u16,
    /// Bytes of the frame.
    pub wire_bytes: u32,
    /// Whether the network has marked the packet (ECN).
    pub marked: bool,
    /// Differentiated services code point of the packet's IP header.
    pub dscp: u8,
    /// Steering tags of the packet's first line and of its other lines, where the classifier derives tags for
    /// placement.
    pub tags: [Tag; 2],
    /// Time at which the packet's first line was sent to memory.
    pub began: Time,
    /// Number of the packet's receive buffer within its queue.
    pub buffer: u32,
    /// First line of the packet's receive buffer.
    pub line: LineAddr,
    /// Line of the packet's completion, where completions go to memory.
    pub completion: LineAddr,
    /// Whether all lines of the packet have been written.
    pub in_memory: bool,
    pub kind: u8,
    pub key: u64,
    pub value_lines: u16,
    /// First line of the reply.
    pub tx_line: LineAddr,
    pub tx_lines: u16,
    /// Bytes of the reply in memory, where bytes count.
    pub tx_bytes: u32,
    /// Second segment of the reply behind descriptor rings in memory: its first line, and its bytes (0 without a second
    /// segment).
    pub object: LineAddr,
    pub object_bytes: u32,
    /// Bytes of the packet in memory, behind descriptor rings in memory.
    pub rx_bytes: u32,
    /// Whether the reply is sent from the receive buffer.
    pub zero_copy: bool,
    /// Lines of the reply, or segments of it behind descriptor rings in memory, that the NIC has yet to read.
    pub left: u16,
    /// Time at which the last line read so far arrived.
    pub data_at: Time,
    /// Uses of the packet that have not ended: the receive buffer, the reply.
    pub uses: u8,
    /// Whether the packet's service has ended: its reply is sent, or it is consumed without a reply.
    pub done: bool,
    pub sent_at: Time,
}

impl Packet {
    /// Lines of the reply's second segment.
    #[inline]
    pub fn object_lines(&self) -> u32 {
        self.object_bytes.div_ceil(LINE_U32)
    }
}

/// Pool of packet records, which are recycled.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    all: Vec<Packet>,
    spare: Vec<PacketId>,
}

impl Packets {
    pub fn add(&mut self, p: Packet) -> PacketId {
        if let Some(id) = self.spare.pop() {
            self.all[id.index()] = p;
            return id;
        }
        self.all.push(p);
        PacketId::new(self.all.len() - 1)
    }

    #[inline]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.all[id.index()]
    }
    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.all[id.index()]
    }

    /// Ends one use of packet `id`; the last one recycles its record.
    pub fn end_use(&mut self, id: PacketId) {
        let p = self.get_mut(id);
        p.uses -= 1;
        if p.uses == 0 {
            self.spare.push(id);
        }
    }

    /// Recycles the record of packet `id`, which was lost.
    pub fn drop_record(&mut self, id: PacketId) {
        self.get_mut(id).done = true;
        self.spare.push(id);
    }

    /// Number of packets whose service has not ended.
    pub fn unfinished(&self) -> u64 {
        self.all.iter().filter(|p| !p.done).count().to_u64()
    }
}
