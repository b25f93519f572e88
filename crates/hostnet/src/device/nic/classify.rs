//! Which queue a packet goes to.

use std::collections::HashMap;

/// Receive-side scaling: a table of queues that the flow's hash points into. Its queues are told apart by a steering tag, which
/// every packet of theirs carries towards memory.
#[derive(Clone, Debug)]
pub struct Classifier {
    table: Vec<u16>,
    /// Flow director: flows whose queue is said, before the hash is asked.
    exact: HashMap<u32, u16>,
}

impl Classifier {
    /// Flow `i` goes to queue `i`, and those beyond the last begin again.
    pub fn spread(queues: usize) -> Classifier {
        Classifier { table: (0..queues as u16).collect(), exact: HashMap::new() }
    }

    /// Flow `flow` goes to `queue` from now on.
    pub fn direct(&mut self, flow: u32, queue: u16) {
        self.exact.insert(flow, queue);
    }

    /// The queue of a flow.
    #[inline]
    pub fn queue(&self, flow: u32) -> u16 {
        if !self.exact.is_empty() {
            if let Some(queue) = self.exact.get(&flow) {
                return *queue;
            }
        }
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

    #[test]
    fn a_flow_that_is_directed_goes_to_its_queue_and_others_do_not() {
        let mut c = Classifier::spread(3);
        c.direct(4, 2);
        let queues: Vec<_> = (0..7).map(|f| c.queue(f)).collect();
        assert_eq!(queues, [0, 1, 2, 0, 2, 2, 0]);
    }
}
