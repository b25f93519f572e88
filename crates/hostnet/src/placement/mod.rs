//! Placement policies: the destination of inbound lines, and the treatment of spent buffers. Each policy is one file;
//! `docs/develop/extending.md` explains how to add one.

pub mod iat;
pub mod nebula;
pub mod resq;
pub mod sweeper;

use crate::core::{Op, Program};
use crate::kernel::extension::Extension;
use crate::kernel::{CoreId, LineAddr, Time};
use crate::memory::stats::{CoreCounts, DmaCounts, MemStats};
use crate::memory::{Agent, Inbound, Outbound, Sweep, Tag};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Agent that sweeps a transmit buffer, and the time at which it does (Sweeper, section V-D).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepTx {
    /// No agent sweeps transmit buffers.
    #[default]
    None,
    /// The NIC sweeps the buffer right after transmission, as the SweepBuffer bit of the work queue entry requests.
    Nic,
    /// The core sweeps the buffer when it processes the hint in the completion queue.
    Cpu,
}

/// Consecutive LLC ways: a number of ways counts from way 0 up, and a text such as "4-7" names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways {
    /// Lowest of the ways.
    pub first: u32,
    /// Number of ways.
    pub count: u32,
}

/// Texts of [`Ways`]: a number of ways, the word "all" for every way of the LLC, or a range of ways.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "ways are a whole number, a range such as \"0-3\", a bit mask such as \"0xf\", or \"all\" of the LLC's"
)]
enum WaysText {
    Count(u32),
    Range(String),
}

impl Ways {
    /// The `count` lowest ways.
    pub fn low(count: u32) -> Ways {
        Ways { first: 0, count }
    }

    /// Reads ways from a text: a range such as "4-7" or "4", or a bit mask such as "0xf0".
    ///
    /// # Errors
    /// Fails with one clause that names the text.
    pub fn parse(text: &str) -> Result<Ways, String> {
        if let Some(digits) = text.trim().strip_prefix("0x") {
            let ways = u32::from_str_radix(digits, 16).ok().and_then(Ways::of_mask);
            return ways.ok_or_else(|| format!("\"{text}\" is not a bit mask of ways side by side, such as \"0xf\""));
        }
        let (a, b) = text.split_once('-').unwrap_or((text, text));
        match (a.trim().parse::<u32>(), b.trim().parse::<u32>()) {
            (Ok(a), Ok(b)) if a <= b && b < u32::BITS => Ok(Ways { first: a, count: b - a + 1 }),
            _ => Err(format!("\"{text}\" is not a range of ways such as \"0-3\", or a bit mask such as \"0xf\"")),
        }
    }

    /// The ways whose bits `mask` has; None where they are no range.
    pub fn of_mask(mask: u32) -> Option<Ways> {
        let ways = Ways { first: mask.trailing_zeros(), count: mask.count_ones() };
        (mask != 0 && ways.mask() == mask).then_some(ways)
    }

    /// The ways as a range, such as `0-3`.
    pub fn range(self) -> String {
        format!("{}-{}", self.first, (self.first + self.count).saturating_sub(1))
    }

    /// Bit mask of the ways.
    #[inline]
    pub fn mask(self) -> u32 {
        ddio::low_ways(self.first + self.count) & !ddio::low_ways(self.first)
    }
}

impl<'de> Deserialize<'de> for Ways {
    /// Reads ways. `config::resolve`, which knows the LLC, has replaced the word "all" by a number.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Ways, D::Error> {
        match WaysText::deserialize(d)? {
            WaysText::Count(n) => Ok(Ways::low(n)),
            WaysText::Range(r) if r == "all" => Err(D::Error::custom("\"all\" needs a platform with caches.llc.ways")),
            WaysText::Range(r) => Ways::parse(&r)
                .map_err(|e| D::Error::custom(format!("{e}; ways are also a whole number, or \"all\" of the LLC's"))),
        }
    }
}

impl Serialize for Ways {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match *self {
            Ways { first: 0, count } => WaysText::Count(count).serialize(s),
            ways => WaysText::Range(ways.range()).serialize(s),
        }
    }
}

/// Placement of inbound lines and treatment of spent buffers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// Policy that chooses the destination of inbound lines.
    pub policy: PlacementPolicy,
    /// LLC ways into which writes of devices may allocate. A number counts from way 0 up, whereas the number of
    /// `tenant.llc_ways` counts from the top way down; a string such as "0-3" names a range, "0x600" is the bit mask
    /// of "9-10", and "all" stands for every way of the platform's LLC. 2, which are ways 0 and 1, when absent. Where
    /// `caches.llc.quirks.device_ways = "highest"`, ways count from the other end.
    #[serde(default = "ddio::default_ways")]
    #[schemars(with = "WaysText")]
    pub ways: Ways,
    /// Whether software relinquishes a receive buffer after its last read (Sweeper). A buffer that the application sends in
    /// place has no last read; where every tenant sends in place, as forwarders with `stack = "poll_mode"` do, the key changes
    /// nothing.
    #[serde(default)]
    pub sweep_rx: bool,
    /// Agent that sweeps transmit buffers after transmission (Sweeper); none by default. Applications that send nothing have no
    /// such buffers.
    #[serde(default)]
    pub sweep_tx: SweepTx,
    /// Control loop that moves LLC ways between the NIC and the cores at run time; needs `policy = "ddio"`. The number
    /// of ways is fixed when absent.
    #[serde(default)]
    pub iat: Option<iat::IatSpec>,
    /// Whether receive rings are shortened so that all receive buffers fit into the LLC ways that `ways` gives the NIC
    /// (ResQ). Rings whose buffers fit stay as they are.
    #[serde(default)]
    pub resq: bool,
    /// Set of IDIO's mechanisms that are active; needs `policy = "idio"`. `dynamic` when absent.
    #[serde(default)]
    pub mode: Option<idio::IdioMode>,
    /// Thresholds, intervals and choices of IDIO; needs `policy = "idio"`. `policy = "table"` takes its classes and its queue
    /// of hints.
    #[serde(default)]
    pub idio: Option<idio::IdioSpec>,
    /// Destination of each class of lines; needs `policy = "table"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<table::TableSpec>,
    /// Policy of one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub extension: Option<Extension<dyn extension::PolicyFactory>>,
}

/// Treatment of a receive buffer that software will not read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spent {
    /// Software leaves the buffer's lines in the caches.
    #[default]
    Keep,
    /// Software sweeps the buffer's lines (Sweeper).
    Sweep,
    /// Software invalidates the buffer's lines without write-back (IDIO).
    Invalidate {
        /// Effect of the invalidation, which determines the caches that lose the line.
        op: Sweep,
        /// Whether software executes an instruction for each line, instead of one for the whole buffer.
        each: bool,
    },
}

impl Spent {
    /// Appends the treatment of a buffer's `lines` lines to a program, after the last read and before the buffer
    /// returns to the NIC.
    #[inline]
    pub fn relinquish(self, program: &mut Program, line: LineAddr, lines: u32) {
        match self {
            Spent::Keep => {}
            Spent::Sweep => sweeper::relinquish(program, line, lines),
            Spent::Invalidate { op, each } => {
                let instructions = if each { lines } else { 1 };
                program.push(Op::Invalidate { line, lines, op, instructions });
            }
        }
    }

    /// Whether software treats a buffer that is sent in place only after its transmission.
    pub fn follows_transmission(self) -> bool {
        matches!(self, Spent::Invalidate { .. })
    }
}

impl PlacementSpec {
    /// Treatment of spent receive buffers by the software of a scenario.
    pub fn spent(&self) -> Spent {
        if self.policy == PlacementPolicy::Idio && self.mode.unwrap_or_default().invalidates() {
            let s = self.idio.clone().unwrap_or_default();
            let op = if s.quirks.invalidate == idio::Depth::Llc { Sweep::Invalidate } else { Sweep::InvalidateOwn };
            return Spent::Invalidate { op, each: s.quirks.invalidate_form == idio::Form::Line };
        }
        if self.sweep_rx {
            Spent::Sweep
        } else {
            Spent::Keep
        }
    }

    /// Settings of the NICs' classifier and of the hints to cores, which are IDIO's for every policy.
    pub fn tagging(&self) -> idio::IdioSpec {
        self.idio.clone().unwrap_or_default()
    }

    /// Whether the policy decides by steering tags or hints lines to cores.
    pub fn reads_tags(&self) -> bool {
        Placement::new(self).reads_tags()
    }

    /// Whether the policy hints lines to the cores that their tags name.
    pub fn hints(&self) -> bool {
        match self.policy {
            PlacementPolicy::Idio => true,
            PlacementPolicy::Table => self.table.as_ref().is_some_and(table::TableSpec::hints),
            _ => false,
        }
    }

    /// Whether the policy reads a core, or class 1, from the codes of tags.
    pub fn reads_codes(&self) -> bool {
        self.policy == PlacementPolicy::Idio || self.table.as_ref().is_some_and(table::TableSpec::reads_codes)
    }
}

/// Kind of a device, regardless of its attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// NIC: it delivers packets to software on this host.
    Nic,
    /// RDMA NIC: remote accesses to memory without software on this host.
    Rdma,
    /// Storage device: blocks that software reads and writes.
    Storage,
}

/// Transfer of a device as placement policies see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceTransfer {
    /// Attachment of the device.
    pub agent: Agent,
    /// Kind of the device.
    pub device: DeviceKind,
    /// First line of the transfer.
    pub line: LineAddr,
    /// Steering tag of a NIC's write, under every policy. All other transfers have the default, which names core 0 and
    /// neither a header nor a burst.
    pub tag: Tag,
}

impl DeviceTransfer {
    /// Makes a transfer without a steering tag.
    #[inline]
    pub fn of(agent: Agent, device: DeviceKind, line: LineAddr) -> DeviceTransfer {
        DeviceTransfer { agent, device, line, tag: Tag::default() }
    }
}

/// Counters that a policy sees at the end of an epoch, counted since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpochCounters<'a> {
    /// Lines that devices wrote.
    pub writes: u64,
    /// Lines that devices wrote and that missed the LLC.
    pub write_misses: u64,
    /// Write-backs of each core's L2.
    pub cores: &'a [CoreCounts],
}

impl EpochCounters<'_> {
    /// Counters of the memory system since the window began.
    pub fn of(m: &MemStats) -> EpochCounters<'_> {
        let sum = |f: fn(&DmaCounts) -> u64| m.dma.iter().map(f).sum();
        EpochCounters { writes: sum(|d| d.writes), write_misses: sum(|d| d.write_misses), cores: m.cores.as_slice() }
    }
}

/// Interface of a placement policy: checks of a scenario, and decisions about every transfer.
pub trait DataPlane {
    /// Makes the policy of a scenario.
    fn new(s: &PlacementSpec) -> Self;

    /// Checks that the scenario's settings suit this policy and platform.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        if s.iat.is_some() {
            return Err("placement.iat needs placement.policy = \"ddio\"".into());
        }
        // An LLC may have fewer ways than the default, which matters only to a policy that uses ways.
        if s.ways == ddio::default_ways() {
            return Ok(());
        }
        ddio::check_ways(s, llc_ways)
    }

    /// Chooses the destination of a device's write.
    fn write(&mut self, t: &DeviceTransfer) -> Inbound;

    /// Chooses the source of the data for a device's read.
    fn read(&mut self, t: &DeviceTransfer) -> Outbound {
        let _ = t;
        Outbound::Nearest
    }

    /// Whether the policy decides by steering tags or hints lines to cores: a NIC then writes the first line of a packet
    /// as a transfer of its own, and cores follow hints. Otherwise a packet may be one transfer with the tag of its first
    /// line.
    fn reads_tags(&self) -> bool {
        true
    }

    /// Number of LLC ways that writes of devices may currently allocate into.
    fn ways(&self) -> u32 {
        0
    }

    /// Lowest LLC way that writes of devices may allocate into.
    fn first_way(&self) -> u32 {
        0
    }

    /// LLC ways that writes of devices may currently allocate into, as a mask.
    fn way_mask(&self) -> u32 {
        Ways { first: self.first_way(), count: self.ways() }.mask()
    }

    /// Whether receive buffers are kept in a separate cache of unlimited size.
    fn keeps_buffers_apart(&self) -> bool {
        false
    }

    /// Time between two decisions of the policy's control plane, if it has one.
    fn epoch(&self) -> Option<Time> {
        None
    }

    /// Decides at the end of an epoch, from counts since the window began.
    fn decide(&mut self, c: &EpochCounters) {
        let _ = c;
    }

    /// Decides at the ends of `epochs` epochs in which nothing has happened since the last decision. The result must be
    /// that of as many single decisions; a policy that knows the result returns it without a loop.
    fn decide_in_silence(&mut self, c: &EpochCounters, epochs: u64) {
        for _ in 0..epochs {
            self.decide(c);
        }
    }

    /// Tells the policy that the counters have been reset to zero.
    fn restart(&mut self) {}

    /// Applies the decision of the user's control plane.
    ///
    /// # Errors
    /// Fails with one sentence about a setting that the policy does not have.
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        if *s == Settings::default() {
            return Ok(());
        }
        Err("the control plane sets what placement.policy does not have; ways need \"ddio\", \"idio\" or \"table\", prefetch \"idio\"".into())
    }
}

/// Settings that the user's control plane changes at the end of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Number of LLC ways that devices may allocate into; unchanged when None.
    pub ways: Option<u32>,
    /// Cores with a decision about their payload: prefetched, not prefetched, or None for the policy's own decision.
    pub prefetch: Vec<(CoreId, Option<bool>)>,
}

impl Settings {
    /// Checks that the LLC has the number of ways that a setting names.
    ///
    /// # Errors
    /// Fails with one sentence when the number of ways is not within 1 to `of`.
    fn check_ways(&self, of: u32) -> Result<(), String> {
        match self.ways {
            Some(n) if !(1..=of).contains(&n) => {
                Err(format!("the control plane sets ways = {n}, which is not within 1 to {of}"))
            }
            _ => Ok(()),
        }
    }
}

/// Declares the policies, one file each: their names in scenarios, and the dispatch.
macro_rules! policies {
    ($($(#[$doc:meta])* mod $file:ident => $name:ident($policy:ty),)*) => {
        $(pub mod $file;)*

        /// Policy that chooses the destination of inbound lines.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum PlacementPolicy {
            $($(#[$doc])* $name,)*
        }

        /// The active placement policy. Every device that moves lines asks it for each request, and its control plane
        /// sees counters once an epoch.
        #[derive(Clone, Debug)]
        pub enum Placement {
            $($(#[$doc])* $name($policy),)*
        }

        impl PlacementPolicy {
            /// Name in scenarios.
            pub fn name(self) -> &'static str {
                match self { $(PlacementPolicy::$name => stringify!($file),)* }
            }
            /// Checks that the scenario's settings suit its policy and platform.
            ///
            /// # Errors
            /// Fails with one clause that names key and value.
            pub fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
                match s.policy { $(PlacementPolicy::$name => <$policy>::check(s, llc_ways),)* }
            }
        }

        impl Placement {
            /// The data plane of the policy that `s` names.
            pub fn new(s: &PlacementSpec) -> Placement {
                match s.policy { $(PlacementPolicy::$name => Placement::$name(<$policy>::new(s)),)* }
            }
            /// Chooses the destination of a device's write.
            #[inline]
            pub fn write(&mut self, t: &DeviceTransfer) -> Inbound {
                match self { $(Placement::$name(p) => p.write(t),)* }
            }
            /// Chooses the source of the data for a device's read.
            #[inline]
            pub fn read(&mut self, t: &DeviceTransfer) -> Outbound {
                match self { $(Placement::$name(p) => p.read(t),)* }
            }
            /// Whether the policy decides by steering tags or hints lines to cores.
            pub fn reads_tags(&self) -> bool {
                match self { $(Placement::$name(p) => p.reads_tags(),)* }
            }
            /// Number of LLC ways that writes of devices may currently allocate into.
            pub fn ways(&self) -> u32 {
                match self { $(Placement::$name(p) => p.ways(),)* }
            }
            /// Lowest LLC way of `placement.ways`, from which the user's control plane counts.
            fn first_way(&self) -> u32 {
                match self { $(Placement::$name(p) => p.first_way(),)* }
            }
            /// LLC ways that writes of devices may currently allocate into, as a mask.
            pub fn way_mask(&self) -> u32 {
                match self { $(Placement::$name(p) => p.way_mask(),)* }
            }
            /// Whether receive buffers are kept in a separate cache of unlimited size.
            pub fn keeps_buffers_apart(&self) -> bool {
                match self { $(Placement::$name(p) => p.keeps_buffers_apart(),)* }
            }
            /// Time between two decisions of the policy's control plane, if it has one.
            pub fn epoch(&self) -> Option<Time> {
                match self { $(Placement::$name(p) => p.epoch(),)* }
            }
            /// Decides at the end of an epoch, from counts since the window began.
            pub fn decide(&mut self, c: &EpochCounters) {
                match self { $(Placement::$name(p) => p.decide(c),)* }
            }
            /// Decides at the ends of `epochs` epochs in which nothing happened since the last decision.
            pub fn decide_in_silence(&mut self, c: &EpochCounters, epochs: u64) {
                match self { $(Placement::$name(p) => p.decide_in_silence(c, epochs),)* }
            }
            /// Applies the decision of the user's control plane.
            ///
            /// # Errors
            /// Fails with one sentence about a setting that the policy does not have.
            pub fn set(&mut self, s: &Settings, llc_ways: u32) -> Result<(), String> {
                s.check_ways(llc_ways.saturating_sub(self.first_way()))?;
                match self { $(Placement::$name(p) => p.set(s),)* }
            }
            /// Tells the policy that the counters have been reset to zero.
            pub fn restart(&mut self) {
                match self { $(Placement::$name(p) => p.restart(),)* }
            }
        }
    };
}

policies! {
    /// Conventional DMA: inbound lines go to DRAM.
    mod dma => Dma(dma::Dma),
    /// DDIO: inbound lines go to some ways of the LLC.
    mod ddio => Ddio(ddio::Ddio),
    /// Ideal DDIO: inbound lines go to an additional LLC of unlimited size.
    mod ideal => Ideal(ideal::Ideal),
    /// IDIO: each inbound line goes to the L2 of its core, to the LLC or to DRAM.
    mod idio => Idio(idio::Idio),
    /// A destination for each class of lines, as `placement.table` says: headers, payload, descriptors.
    mod table => Table(table::Table),
    /// Policy of one's own, which an engine knows by its name.
    mod extension => Extension(extension::ExtensionPolicy),
}

impl Placement {
    /// Whether writes of devices enter the LLC.
    pub fn fills_llc(&self) -> bool {
        self.ways() > 0
    }
}
