//! Packets between their arrival and the end of their last use.

use crate::kernel::{Int, LineAddr, PacketId, QueueId, Time};
use crate::memory::{Tag, LINE_U32};

/// A packet. What it asks for is the sender's and the application's business.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    pub arrived: Time,
    /// What the classifier looks at: the flow, and the RSS hash of its addresses if it has any; and the queue that it chose.
    pub flow: u32,
    pub hash: Option<u32>,
    pub queue: QueueId,
    /// Which client of a closed loop waits for its reply.
    pub client: u32,
    /// Lines in memory.
    pub lines: u16,
    /// Bytes of the frame.
    pub wire_bytes: u32,
    /// The network has marked it (ECN).
    pub marked: bool,
    /// Differentiated services code point of its IP header.
    pub dscp: u8,
    /// Of its first line and of the others, where the classifier tells placement about packets.
    pub tags: [Tag; 2],
    /// Its first line has set out for memory.
    pub began: Time,
    /// Number of its receive buffer within the queue.
    pub buffer: u32,
    /// First line of that buffer.
    pub line: LineAddr,
    /// Where its completion is, if there is one in memory.
    pub completion: LineAddr,
    /// All its lines have been written.
    pub in_memory: bool,
    pub kind: u8,
    pub key: u64,
    pub value_lines: u16,
    /// The reply's lines.
    pub tx_line: LineAddr,
    pub tx_lines: u16,
    /// Its bytes in memory, where bytes count.
    pub tx_bytes: u32,
    /// A second segment of the reply, behind descriptor rings in memory: its first line, and its bytes, if there is one.
    pub object: LineAddr,
    pub object_bytes: u32,
    /// Bytes of the packet in memory, behind descriptor rings there.
    pub rx_bytes: u32,
    /// The reply leaves from the receive buffer.
    pub zero_copy: bool,
    /// Lines the NIC has yet to read.
    pub left: u16,
    /// When the last line read so far has come.
    pub data_at: Time,
    /// Uses that have not ended: receive buffer, reply.
    pub uses: u8,
    /// Its service has ended: sent, or consumed for good.
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

/// Records of packets; those of packets that are gone are used again.
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

    /// One use has ended; with the last the record goes.
    pub fn end_use(&mut self, id: PacketId) {
        let p = self.get_mut(id);
        p.uses -= 1;
        if p.uses == 0 {
            self.spare.push(id);
        }
    }

    /// A packet that was lost: its record goes.
    pub fn drop_record(&mut self, id: PacketId) {
        self.get_mut(id).done = true;
        self.spare.push(id);
    }

    /// Packets whose service has not ended.
    pub fn unfinished(&self) -> u64 {
        self.all.iter().filter(|p| !p.done).count().to_u64()
    }
}
