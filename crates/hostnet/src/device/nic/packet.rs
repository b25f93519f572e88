//! Records of packets from their arrival to the end of their last use.

use crate::kernel::{Int, LineAddr, PacketId, QueueId, Time};
use crate::memory::{Tag, LINE_U32};

/// Record of one packet. Its `kind`, `key` and `value_lines` are set by the sender and interpreted by the application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// Time at which the packet arrived at the NIC.
    pub arrived: Time,
    /// Flow of the packet. The classifier chooses `queue` by the flow and, where the packet has addresses, by their RSS
    /// hash.
    pub flow: u32,
    /// RSS hash of the packet's addresses; None where the packet has no addresses.
    pub hash: Option<u32>,
    /// Function of the NIC that the packet's destination address belongs to.
    pub function: u8,
    /// Receive queue that the classifier chose.
    pub queue: QueueId,
    /// Client of a closed loop that waits for the reply to the packet.
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
    /// Kind of the request, in the numbering of the application.
    pub kind: u8,
    /// Number of the key that the request asks for.
    pub key: u64,
    /// Number of lines of the value that the request concerns.
    pub value_lines: u16,
    /// First line of the reply.
    pub tx_line: LineAddr,
    /// Number of lines of the reply.
    pub tx_lines: u16,
    /// Bytes of the reply in memory, for attachments that count bytes.
    pub tx_bytes: u32,
    /// First line of the reply's second segment, with descriptor rings in memory.
    pub object: LineAddr,
    /// Bytes of the reply's second segment; 0 without a second segment.
    pub object_bytes: u32,
    /// Bytes of the packet in memory, with descriptor rings in memory.
    pub rx_bytes: u32,
    /// Whether the reply is sent from the receive buffer.
    pub zero_copy: bool,
    /// Lines of the reply that the NIC has yet to read; with descriptor rings in memory, segments of the reply.
    pub left: u16,
    /// Time at which the last line read so far arrived.
    pub data_at: Time,
    /// Number of uses of the packet that have not ended: its receive buffer, and its reply.
    pub uses: u8,
    /// Whether the packet's service has ended: the reply has been sent, or software has consumed the packet without a
    /// reply.
    pub done: bool,
    /// Time at which the packet was sent.
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

    /// Ends one use of packet `id`; the end of the last use recycles the packet's record.
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
