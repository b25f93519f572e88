//! Parameters of a poll-mode driver, as a platform and a scenario state them.

use crate::device::nic::RingsSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Costs of a poll-mode driver in addition to the memory accesses that are simulated (descriptors, mbufs, packets), and
/// its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollModeSpec {
    /// Maximum number of packets that an `rx_burst` returns. The default is 32.
    #[serde(default = "thirty_two")]
    pub burst: u32,
    /// Number of packets that are gathered for a `tx_burst`, unless no more come; also the maximum of one `tx_burst`.
    /// When absent, the packets of an `rx_burst` are sent as soon as they have been served.
    #[serde(default)]
    pub transmit_burst: Option<u32>,
    /// Instructions of an `rx_burst` that finds nothing.
    pub poll_instructions: u32,
    /// Fixed instructions of an `rx_burst` that finds packets, and of a `tx_burst`.
    pub burst_instructions: u32,
    /// Instructions per received packet.
    pub receive_instructions: u32,
    /// Instructions per packet to be sent.
    pub transmit_instructions: u32,
    /// Instructions per freed buffer.
    pub free_instructions: u32,
    /// Instructions to allocate a buffer for a reply. Use 0, the default, where the application's own instructions
    /// include them.
    #[serde(default)]
    pub allocate_instructions: u32,
    /// Additional instructions per freed buffer whose metadata stands for data elsewhere: the data is released, and the
    /// metadata is restored. The default is 0.
    #[serde(default)]
    pub detach_instructions: u32,
    /// Buffers in a core's cache of the mempool. The default is 250. With 0 there is no cache, so that buffers are used
    /// in the order in which they came back.
    #[serde(default = "mempool_cache")]
    pub mempool_cache: u32,
    /// Whether the buffers of all cores belong to one pool: the buffers with which the rings begin then lie one behind
    /// another, queue by queue, as the rings' set-up takes them, and the other buffers behind them. When false (the
    /// default), each core's pool has memory of its own.
    #[serde(default)]
    pub mempool_shared: bool,
    /// Buffers of each core's mempool. When absent or 0, as many as both rings, two caches and two bursts can hold.
    #[serde(default)]
    pub mempool: Option<u32>,
    /// Lines of a buffer's metadata that the driver touches: 1 or 2. The default is 2.
    #[serde(default = "two")]
    pub mbuf_lines: u32,
    /// Whether the driver prefetches each packet's first line and the next buffer's metadata. The default is true.
    #[serde(default = "yes")]
    pub prefetch: bool,
    /// Receive descriptors that are given fresh buffers before the NIC is told (DPDK: `rx_free_thresh`). The default is
    /// 32.
    #[serde(default = "thirty_two")]
    pub rearm: u32,
    /// Number of free transmit descriptors below which sent buffers are freed (DPDK: `tx_free_thresh`): as many as this
    /// number, or as the burst needs. Only with `free_sent = "threshold"`. The default is 32.
    #[serde(default = "thirty_two")]
    pub free_threshold: u32,
    /// Time at which sent buffers are freed: "threshold" (the default) or "burst". Sent buffers that the driver keeps
    /// enlarge the memory that packets pass through.
    #[serde(default)]
    pub free_sent: FreeSent,
}

/// Time at which a poll-mode driver frees the buffers of packets that have been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeSent {
    /// When few transmit descriptors are free: see `free_threshold` (DPDK's drivers of Intel NICs).
    #[default]
    Threshold,
    /// In each `tx_burst`, all sent buffers (DPDK's driver mlx5 handles completions there).
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
    /// Checks that the driver's parameters are usable.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
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

    /// Checks that the driver fits the NIC's rings.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
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

    /// Number of buffers that rings, caches and bursts can hold.
    fn least(&self, rings: &RingsSpec) -> u32 {
        rings.receive + rings.transmit + 2 * self.mempool_cache + 2 * self.burst + self.transmit_burst.unwrap_or(0)
    }

    /// Number of buffers of a core's mempool, of which `more` can be lent where `mempool` does not set its size.
    pub fn buffers_and(&self, rings: &RingsSpec, more: u32) -> u32 {
        self.mempool.filter(|n| *n > 0).unwrap_or(self.least(rings) + more)
    }

    /// Number of buffers of a core's mempool.
    pub fn buffers(&self, rings: &RingsSpec) -> u32 {
        self.buffers_and(rings, 0)
    }
}

/// Treatment of a receive buffer whose packet the application has yet to process (IDIO, section II-B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recycling {
    /// The application works in the buffer, which is free afterwards.
    #[default]
    RunToCompletion,
    /// The packet is copied to memory of the application, and the buffer is free immediately.
    Copy,
    /// The buffer is kept while packets arrive, up to as many buffers as the mempool's cache holds, and the packet is
    /// processed later.
    Reallocate,
}
