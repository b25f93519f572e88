//! Parameters of a poll-mode driver, as a platform and a scenario state them.

use crate::device::nic::RingsSpec;
use crate::kernel::with_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a poll-mode driver, and its costs in addition to the memory accesses that are simulated (descriptors,
/// mbufs, packets).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollModeSpec {
    /// Maximum number of packets that an `rx_burst` returns. The default is 32.
    #[serde(default = "thirty_two")]
    pub burst: u32,
    /// Instructions of an `rx_burst` that finds no packet.
    pub poll_instructions: u32,
    /// Fixed instructions of an `rx_burst` that finds packets, and of a `tx_burst`.
    pub burst_instructions: u32,
    /// Instructions per received packet.
    pub receive_instructions: u32,
    /// Instructions per packet to be sent.
    pub transmit_instructions: u32,
    /// Instructions per freed buffer.
    pub free_instructions: u32,
    /// Habits of the NIC's driver and its memory pools, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: PollModeQuirks,
}

/// Habits of poll-mode drivers and their memory pools that NICs differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollModeQuirks {
    /// Number of packets that the driver gathers for a `tx_burst`, unless no more packets arrive; also the maximum of
    /// one `tx_burst`. When absent, the driver sends the packets of an `rx_burst` as soon as they have been served.
    #[serde(default)]
    pub transmit_burst: Option<u32>,
    /// Instructions to allocate a buffer for a reply. Use 0, the default, where the application's own instructions
    /// include the allocation.
    #[serde(default)]
    pub allocate_instructions: u32,
    /// Additional instructions per freed buffer whose metadata represents data elsewhere, to release the data and
    /// restore the metadata. The default is 0.
    #[serde(default)]
    pub detach_instructions: u32,
    /// Taken branches per received packet, each of which costs `core.quirks.taken_branch_cycles`; without that key they change
    /// nothing. The default is 0.
    #[serde(default)]
    pub receive_branches: u32,
    /// Taken branches per packet to be sent, those that free a buffer among them, each of which costs
    /// `core.quirks.taken_branch_cycles`; without that key they change nothing. The default is 0.
    #[serde(default)]
    pub transmit_branches: u32,
    /// Whether each `rx_burst` begins with a serialising instruction, such as the read of the thread pointer on AArch64
    /// in gem5. The default is false.
    #[serde(default)]
    pub poll_serialises: bool,
    /// Whether each freed buffer takes a serialising instruction. The default is false.
    #[serde(default)]
    pub free_serialises: bool,
    /// Number of buffers in a core's cache of the mempool. The default is 250. With 0 there is no cache, and buffers
    /// are used in the order in which they were returned.
    #[serde(default = "mempool_cache")]
    pub mempool_cache: u32,
    /// Whether the buffers of all cores belong to one pool. The buffers with which the rings begin then lie back to
    /// back, queue by queue, in the order in which the set-up of the rings takes them, and the other buffers lie behind
    /// them. When false (the default), each core's pool has separate memory.
    #[serde(default)]
    pub mempool_shared: bool,
    /// Number of buffers of each core's mempool. When absent or 0, as many buffers as both rings, two caches and two
    /// bursts can hold.
    #[serde(default)]
    pub mempool: Option<u32>,
    /// Number of lines of a buffer's metadata that the driver accesses: 1 or 2. The default is 2.
    #[serde(default = "two")]
    pub mbuf_lines: u32,
    /// Whether the driver prefetches each packet's first line and the next buffer's metadata. The default is true.
    #[serde(default = "yes")]
    pub prefetch: bool,
    /// Number of receive descriptors that the driver refills with fresh buffers before it tells the NIC (DPDK:
    /// `rx_free_thresh`). The default is 32.
    #[serde(default = "thirty_two")]
    pub rearm: u32,
    /// Number of free transmit descriptors below which the driver frees sent buffers (DPDK: `tx_free_thresh`): as many
    /// buffers as this number, or as the burst needs. Not with `free_sent = "burst"`. The default is 32.
    #[serde(default = "thirty_two")]
    pub free_threshold: u32,
    /// Time at which the driver frees sent buffers: "threshold" (the default), "burst" or "reuse". Sent buffers that the
    /// driver keeps enlarge the memory that packets use.
    #[serde(default)]
    pub free_sent: FreeSent,
}

impl Default for PollModeQuirks {
    fn default() -> PollModeQuirks {
        with_defaults()
    }
}

/// Time at which a poll-mode driver frees the buffers of packets that have been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeSent {
    /// When few transmit descriptors are free: see `free_threshold` (DPDK's drivers for Intel NICs).
    #[default]
    Threshold,
    /// With each descriptor that the driver writes, it frees the buffer of an earlier packet, once few transmit
    /// descriptors are free (DPDK's driver e1000).
    Reuse,
    /// In each `tx_burst`, the driver frees all sent buffers (DPDK's driver mlx5 handles completions at that time).
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
            ("quirks.transmit_burst", self.quirks.transmit_burst.unwrap_or(1), 1, 512),
            ("poll_instructions", self.poll_instructions, 1, 1 << 20),
            ("quirks.mempool_cache", self.quirks.mempool_cache, 0, 512),
            ("quirks.mbuf_lines", self.quirks.mbuf_lines, 1, 2),
            ("quirks.rearm", self.quirks.rearm, 1, 512),
            ("quirks.free_threshold", self.quirks.free_threshold, 1, 512),
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
        for (key, n) in [("quirks.rearm", self.quirks.rearm), ("burst", self.burst)] {
            if n > rings.receive / 2 {
                let (has, least) = (rings.receive, (2 * n).next_multiple_of(8));
                return Err(format!(
                    "{key} = {n} is more than half of the NIC's rings.receive = {has}; give rings.receive = {least} or more"
                ));
            }
        }
        if self.quirks.free_threshold >= rings.transmit {
            let (n, has) = (self.quirks.free_threshold, rings.transmit);
            return Err(format!(
                "quirks.free_threshold = {n} is not below the NIC's rings.transmit = {has}; give rings.transmit = {} or more",
                (n + 1).next_multiple_of(8)
            ));
        }
        let (n, least) = (self.buffers(rings), self.least(rings));
        if n < least {
            return Err(format!(
                "quirks.mempool = {n} is less than the {least} buffers that rings, cache and bursts can hold; 0 makes as many"
            ));
        }
        Ok(())
    }

    /// Number of buffers that rings, caches and bursts can hold.
    fn least(&self, rings: &RingsSpec) -> u32 {
        rings.receive
            + rings.transmit
            + 2 * self.quirks.mempool_cache
            + 2 * self.burst
            + self.quirks.transmit_burst.unwrap_or(0)
    }

    /// Number of buffers of a core's mempool; where `mempool` does not set the size, the number includes `more`
    /// buffers.
    pub fn buffers_and(&self, rings: &RingsSpec, more: u32) -> u32 {
        self.quirks.mempool.filter(|n| *n > 0).unwrap_or(self.least(rings) + more)
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
    /// The application works in the buffer, which is free when the application has finished.
    #[default]
    RunToCompletion,
    /// The driver copies the packet to memory of the application, and the buffer is free immediately.
    Copy,
    /// The driver keeps the buffer while packets arrive, up to as many buffers as the mempool's cache holds, and
    /// processes the packet later.
    Reallocate,
}
