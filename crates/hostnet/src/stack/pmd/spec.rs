//! What a platform and a scenario say about a poll-mode driver.

use crate::device::nic::RingsSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a poll-mode driver costs beside the memory accesses that are simulated (descriptors, mbufs, packets), in instructions
/// where nothing else is said.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollModeSpec {
    /// Packets that `rx_burst` returns at most.
    #[serde(default = "thirty_two")]
    pub burst: u32,
    /// Packets that are gathered for a `tx_burst`, unless no more come, and most of one. Absent: what an `rx_burst` returned
    /// is sent at once.
    #[serde(default)]
    pub transmit_burst: Option<u32>,
    /// An `rx_burst` that finds nothing.
    pub poll_instructions: u32,
    /// The fixed part of an `rx_burst` that finds packets, and of a `tx_burst`.
    pub burst_instructions: u32,
    /// A received packet.
    pub receive_instructions: u32,
    /// A packet to be sent.
    pub transmit_instructions: u32,
    /// A buffer that is freed.
    pub free_instructions: u32,
    /// A buffer that is taken for a reply. What an application says of its instructions may have it, too: then this is 0.
    #[serde(default)]
    pub allocate_instructions: u32,
    /// More of a buffer that is freed, when its metadata stands for data elsewhere: that is let go, and the metadata is restored.
    #[serde(default)]
    pub detach_instructions: u32,
    /// Buffers of a core's cache of the mempool. 0: none, so that buffers are used in the order in which they came back.
    #[serde(default = "mempool_cache")]
    pub mempool_cache: u32,
    /// The cores' buffers are one pool's: those that rings begin with lie one behind another, queue by queue, as their
    /// set-up takes them, and the rest behind them. When false, each core's pool has a place of its own.
    #[serde(default)]
    pub mempool_shared: bool,
    /// Buffers of each core's mempool. Absent or 0: as many as both rings, two caches and two bursts can hold.
    #[serde(default)]
    pub mempool: Option<u32>,
    /// Lines of a buffer's metadata that the driver touches: 1 or 2.
    #[serde(default = "two")]
    pub mbuf_lines: u32,
    /// Whether each packet's first line and the next buffer's metadata are prefetched.
    #[serde(default = "yes")]
    pub prefetch: bool,
    /// Receive descriptors that are given fresh buffers before the NIC is told (`rx_free_thresh`).
    #[serde(default = "thirty_two")]
    pub rearm: u32,
    /// When fewer transmit descriptors than this are free (`tx_free_thresh`), as many sent buffers are freed, or as many as
    /// the burst needs.
    #[serde(default = "thirty_two")]
    pub free_threshold: u32,
    /// When sent buffers are freed. Those that the driver keeps enlarge the memory that packets pass through.
    #[serde(default)]
    pub free_sent: FreeSent,
}

/// When a poll-mode driver frees the buffers of packets that have been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeSent {
    /// When few transmit descriptors are free: see `free_threshold` (DPDK's drivers of Intel NICs).
    #[default]
    Threshold,
    /// In each `tx_burst`, all of them (DPDK's driver mlx5 handles completions there).
    Burst,
}
fn thirty_two() -> u32 {
    32
}
fn mempool_cache() -> u32 {
    250
}
fn two() -> u32 {
    2
}
fn yes() -> bool {
    true
}

impl PollModeSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        let counts = [
            ("burst", self.burst, 1, 512),
            ("transmit_burst", self.transmit_burst.unwrap_or(1), 1, 512),
            ("poll_instructions", self.poll_instructions, 1, 1 << 20),
            ("mempool_cache", self.mempool_cache, 0, 512),
            ("mbuf_lines", self.mbuf_lines, 1, 2),
            ("rearm", self.rearm, 1, 512),
            ("free_threshold", self.free_threshold, 1, 512),
        ];
        match counts.iter().find(|(_, n, least, most)| n < least || n > most) {
            Some((key, n, least, most)) => Err(format!("{key} = {n} is not within {least} to {most}")),
            None => Ok(()),
        }
    }

    /// # Errors
    /// One clause with key and value, when the driver does not fit the NIC's rings.
    pub fn check_with(&self, rings: &RingsSpec) -> Result<(), String> {
        for (key, n) in [("rearm", self.rearm), ("burst", self.burst)] {
            if n > rings.receive / 2 {
                return Err(format!("{key} = {n} is more than half of the {} receive descriptors", rings.receive));
            }
        }
        if self.free_threshold >= rings.transmit {
            return Err(format!(
                "free_threshold = {} is not below the {} transmit descriptors",
                self.free_threshold, rings.transmit
            ));
        }
        let (n, least) = (self.buffers(rings), self.least(rings));
        if n < least {
            return Err(format!(
                "mempool = {n} is less than the {least} buffers that rings, cache and bursts can hold; 0 makes as many"
            ));
        }
        Ok(())
    }

    /// Buffers that rings, caches and bursts can hold.
    fn least(&self, rings: &RingsSpec) -> u32 {
        rings.receive + rings.transmit + 2 * self.mempool_cache + 2 * self.burst + self.transmit_burst.unwrap_or(0)
    }

    /// Buffers of a core's mempool, to which `more` can be lent where nothing is said of its size.
    pub fn buffers_and(&self, rings: &RingsSpec, more: u32) -> u32 {
        self.mempool.filter(|n| *n > 0).unwrap_or(self.least(rings) + more)
    }

    /// Buffers of a core's mempool.
    pub fn buffers(&self, rings: &RingsSpec) -> u32 {
        self.buffers_and(rings, 0)
    }
}

/// What becomes of a receive buffer whose packet the application has yet to process (IDIO, section II-B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recycling {
    /// The application works in it, and it is free afterwards.
    #[default]
    RunToCompletion,
    /// The packet is copied to memory of the application's, and the buffer is free at once.
    Copy,
    /// It is kept while packets come, up to as many as the mempool's cache holds, and processed later.
    Reallocate,
}
