//! Which queue a packet goes to.

/// Receive-side scaling: a table of queues that the flow's hash points into. Its queues are told apart by a steering tag, which
/// every packet of theirs carries towards memory.
#[derive(Clone, Debug)]
pub struct Classifier {
    table: Vec<u16>,
}

impl Classifier {
    /// Flow `i` goes to queue `i`, and those beyond the last begin again.
    pub fn spread(queues: usize) -> Classifier {
        Classifier { table: (0..queues as u16).collect() }
    }

    /// The queue of a flow.
    #[inline]
    pub fn queue(&self, flow: u32) -> u16 {
        self.table[flow as usize % self.table.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_one_hash_share_a_queue_and_the_table_is_used_evenly() {
        let c = Classifier::spread(3);
        let queues: Vec<_> = (0..7).map(|f| c.queue(f)).collect();
        assert_eq!(queues, [0, 1, 2, 0, 1, 2, 0]);
    }
}
