//! Audit of the memory system: the contents of the caches, and the conservation of requests and dirty lines.

use super::mc_queue::McQueue;
use super::node::{Node, FIRST_NODE};
use super::region::RegionKind;
use super::{Agent, Memory, Txn};
use crate::kernel::{Int, ThreadId};

impl Memory {
    /// Number of lines that the LLCs and the L2s hold.
    pub fn lines_held(&self) -> u64 {
        let arrays = self.l2.iter().chain(self.nodes.iter().map(|n| &n.llc));
        arrays.map(|a| a.held().to_u64()).sum()
    }
    /// How often each way of each node's LLC has taken in as many lines as it holds.
    pub fn turns_of_ways(&self) -> Vec<f64> {
        let of = |n: &Node| {
            let (sets, ways) = (f64::from(n.llc.sets()), n.llc.ways().to_usize());
            n.taken_in.map(|taken| taken.to_f64() / sets).into_iter().take(ways)
        };
        self.nodes.iter().flat_map(of).collect()
    }
    /// Number of LLC lines that hold receive buffers: all of them, and those outside the ways of the policy's mask
    /// `ways`.
    pub fn llc_rx_lines(&self, ways: u32) -> (u64, u64) {
        let mut n = (0, 0);
        let (lines, ways) = (self.rx_line_states.range(), self.device_way_mask(ways));
        if lines.is_empty() {
            return n;
        }
        let alike = self.nodes[FIRST_NODE].llc.lines_of_tags(&lines);
        if self.map.is_all(RegionKind::Rx, &alike) {
            for node in self.nodes.iter() {
                let (all, inside) = node.llc.count(&alike, ways);
                n = (n.0 + all, n.1 + all - inside);
            }
            return n;
        }
        for node in self.nodes.iter() {
            // `for_each` is used because the iterator runs its inner loops faster than repeated calls of `next`.
            node.llc.iter_within(lines.clone()).for_each(|(line, way, _)| {
                if self.map.of(line).kind == RegionKind::Rx {
                    n.0 += 1;
                    n.1 += u64::from(ways >> way & 1 == 0);
                }
            });
        }
        n
    }

    /// Checks that every dirty line is accounted for and that no request is lost.
    ///
    /// # Errors
    /// Fails with one sentence that contains the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        let on_link = self.memory_link.as_ref().map_or(0, |l| l.waiting.len());
        let waiting: usize = on_link + self.channels.iter().map(McQueue::writes_waiting).sum::<usize>();
        let used: u32 = self.nodes.iter().map(|n| n.cha_writes.used()).sum();
        if [used, self.nodes.iter().flat_map(|n| n.waiting).sum()] != [waiting.to_u32(); 2] {
            return Err(format!("{used} home-agent credits are out for {waiting} waiting writes"));
        }
        if let Some(m) = &self.mshrs {
            m.check(self.channels.iter().map(McQueue::victims_waiting).sum())?;
        }
        let arrays = self.l1.iter().chain(&self.l2).chain(self.nodes.iter().map(|n| &n.llc));
        let resident = arrays.map(|a| a.iter().filter(|l| l.2).count().to_u64()).sum::<u64>();
        // Dirty lines in transactions, whose ownership is on the way to a core.
        let moving = self.txns.iter().filter(|t| t.dirty).count().to_u64();
        if self.live_txns == 0 && self.lines.used() > 0 {
            return Err(format!("{} lines have an entry and no request is in flight", self.lines.used()));
        }
        self.stats.ledger.check(resident + moving)
    }

    /// Whether no request is outstanding and no write waits for a memory-controller queue. The queues may still hold
    /// writes.
    pub fn is_idle(&self) -> bool {
        let on_link = self.memory_link.as_ref().is_some_and(|l| !l.waiting.is_empty());
        self.live_txns == 0 && !on_link && self.channels.iter().all(|c| c.writes_waiting() == 0)
    }

    /// Outstanding requests of one hardware thread.
    pub fn requests_of(&self, thread: ThreadId) -> impl Iterator<Item = &Txn> {
        let mut live = vec![true; self.txns.len()];
        self.free_txns.iter().for_each(|id| live[id.index()] = false);
        let own = move |t: &&Txn| t.agent() == Agent::Core && t.thread() == thread;
        self.txns.iter().zip(live).filter(|t| t.1).map(|t| t.0).filter(own)
    }
}
