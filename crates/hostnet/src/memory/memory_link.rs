//! Link between the caches of a node and its memory controllers, where both are on chips of their own.

use super::home::CORES;
use super::mc_queue::Write;
use super::node::FIRST_NODE;
use super::{Memory, MemoryEvent, MemoryPosts, LINE};
use crate::flow::Link;
use crate::kernel::units::ByteRate;
use crate::kernel::{Int, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Link between the caches of a node and its memory controllers. AMD's processors since Zen 2 have one link for each chip of
/// cores, which is wider for reads than for writes. Accesses of devices do not cross the link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryLinkSpec {
    /// Rate of lines from memory to cores.
    pub read: ByteRate,
    /// Rate of lines that caches and cores write to memory. Lines that wait for the link count as writes that wait at the
    /// home agent (`caches.llc.write_buffer`).
    pub write: ByteRate,
}

impl MemoryLinkSpec {
    /// Checks that both directions carry lines, on a machine with so many `nodes`.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(&self, nodes: u32) -> Result<(), String> {
        if nodes > 1 {
            return Err(format!("memory_link is built for one node, and platform.nodes.count = {nodes}"));
        }
        match [("read", self.read), ("write", self.write)].into_iter().find(|(_, rate)| rate.0 == 0) {
            Some((key, rate)) => Err(format!("memory_link.{key} = \"{rate}\" must be positive")),
            None => Ok(()),
        }
    }
}

/// Both directions of the link, and the writes that wait for it, in order.
#[derive(Clone)]
pub struct MemoryLink {
    read: Link,
    write: Link,
    pub(super) waiting: VecDeque<Write>,
}

impl MemoryLink {
    pub(super) fn new(s: &MemoryLinkSpec) -> MemoryLink {
        let of = |rate: ByteRate| Link::new(rate.0.to_f64() * 8.0, Time::ZERO);
        MemoryLink { read: of(s.read), write: of(s.write), waiting: VecDeque::new() }
    }

    /// Time that a line takes over the link to the cores.
    pub fn read_time(&self) -> Time {
        self.read.time(LINE)
    }

    /// Time at which a line that leaves memory at `now` has crossed the link.
    pub(super) fn receive(&mut self, now: Time) -> Time {
        self.read.send(LINE, now)
    }

    pub(super) fn restart(&mut self, now: Time) {
        self.read.restart(now);
        self.write.restart(now);
    }

    /// Times since the restart in which the link carried lines to the cores, and to memory.
    pub fn busy_until(&self, now: Time) -> [Time; 2] {
        [&self.read, &self.write].map(|l| l.busy_until(now))
    }
}

impl Memory {
    /// Link between caches and memory controllers, where the machine has one.
    pub fn memory_link(&self) -> Option<&MemoryLink> {
        self.memory_link.as_deref()
    }

    /// Sends a write over the link; the write holds a credit of the home agent until a memory controller accepts it.
    #[cold]
    pub(super) fn write_over_link(&mut self, cal: &mut impl MemoryPosts, w: Write, now: Time) {
        let link = self.memory_link.as_mut().expect("a link");
        cal.post(link.write.send(LINE, now), MemoryEvent::MemoryLink);
        link.waiting.push_back(w);
        let home = &mut self.nodes[FIRST_NODE];
        home.waiting[CORES] += 1;
        home.cha_writes.force(now);
    }

    /// Handles `MemoryEvent::MemoryLink`: the line that has been on the link for the longest time has crossed it.
    pub fn on_memory_link(&mut self, cal: &mut impl MemoryPosts, now: Time) {
        let link = self.memory_link.as_mut().expect("a link");
        let w = link.waiting.pop_front().expect("a line on the link");
        self.write_after_link(cal, w, now);
        self.admit_waiting_requests(cal, FIRST_NODE, now);
    }
}
