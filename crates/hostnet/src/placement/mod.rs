//! Where inbound lines go and what happens to spent buffers. One file a policy; `docs/develop/extending.md`
//! walks through a new one.

pub mod iat;
pub mod nebula;
pub mod resq;
pub mod sweeper;

use crate::core::{Op, Program};
use crate::kernel::{LineAddr, Time};
use crate::memory::stats::{CoreCounts, DmaCounts, MemStats};
use crate::memory::{Agent, Inbound, Outbound, Sweep, Tag};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Who sweeps a transmit buffer, and when (Sweeper, section V-D).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepTx {
    /// Nobody.
    #[default]
    None,
    /// The NIC, right after transmission: the SweepBuffer bit of the work queue entry.
    Nic,
    /// The core, when it gets to the completion queue's hint.
    Cpu,
}

/// LLC ways as they are written.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "ways are a whole number, or \"all\" of the LLC's")]
enum WaysText {
    Count(u32),
    Word(AllWays),
}

/// The word for every way of the LLC.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AllWays {
    All,
}

/// The number of ways. `config::resolve` has put it in place of "all", as it knows the LLC.
fn counted<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    match WaysText::deserialize(d)? {
        WaysText::Count(n) => Ok(n),
        WaysText::Word(AllWays::All) => Err(D::Error::custom("\"all\" needs a platform with caches.llc.ways")),
    }
}

/// Everything that a scenario says about placement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// How inbound packets are injected.
    pub policy: Policy,
    /// LLC ways that NIC writes may allocate into, counted from way 0; "all" of the platform's.
    #[serde(default = "ddio::default_ways", deserialize_with = "counted")]
    #[schemars(with = "WaysText")]
    pub ways: u32,
    /// Sweeper on receive: software relinquishes a buffer after its last read.
    #[serde(default)]
    pub sweep_rx: bool,
    /// Sweeper on transmit, and who does it.
    #[serde(default)]
    pub sweep_tx: SweepTx,
    /// Moves ways between the NIC and the cores at run time.
    #[serde(default)]
    pub iat: Option<iat::IatSpec>,
    /// Caps receive rings so that all buffers fit the ways.
    #[serde(default)]
    pub resq: bool,
    /// Which of IDIO's mechanisms work; `dynamic` when absent.
    #[serde(default)]
    pub mode: Option<idio::Mode>,
    /// Thresholds, intervals and choices of IDIO.
    #[serde(default)]
    pub idio: Option<idio::IdioSpec>,
}

/// What software does with a receive buffer that nobody will read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spent {
    /// Nothing.
    #[default]
    Keep,
    /// Sweeps it (Sweeper).
    Sweep,
    /// Invalidates it without write-back (IDIO).
    Invalidate {
        /// The caches that lose the line.
        op: Sweep,
        /// Whether each line takes an instruction, or one invalidates all.
        each: bool,
    },
}

impl Spent {
    /// One op over the buffer's `lines` lines: after the last read and before the buffer goes back to the NIC.
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

    /// Whether a buffer that is sent in place comes back to software first.
    pub fn follows_transmission(self) -> bool {
        matches!(self, Spent::Invalidate { .. })
    }
}

impl PlacementSpec {
    /// What threads do with spent receive buffers.
    pub fn spent(&self) -> Spent {
        if self.policy == Policy::Idio && self.mode.unwrap_or_default().invalidates() {
            let s = self.idio.clone().unwrap_or_default();
            let op = if s.invalidate == idio::Depth::Llc { Sweep::Invalidate } else { Sweep::InvalidateOwn };
            return Spent::Invalidate { op, each: s.invalidate_form == idio::Form::Line };
        }
        if self.sweep_rx {
            Spent::Sweep
        } else {
            Spent::Keep
        }
    }

    /// IDIO's settings, where a NIC's lines are hinted to cores.
    pub fn hints(&self) -> Option<idio::IdioSpec> {
        let hints = self.policy == Policy::Idio && self.mode.unwrap_or_default().hints();
        hints.then(|| self.idio.clone().unwrap_or_default())
    }
}

/// What a device is, however it is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// Packets for software to receive.
    Nic,
    /// Remote memory accesses that no software here sees.
    Rdma,
    /// Blocks that software reads and writes.
    Storage,
}

/// A device's transfer as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The attachment of the device.
    pub agent: Agent,
    /// Kind of the device.
    pub device: DeviceKind,
    /// The first line.
    pub line: LineAddr,
    /// What the device says about it.
    pub tag: Tag,
}

impl Transfer {
    /// A transfer whose device says nothing about it.
    #[inline]
    pub fn of(agent: Agent, device: DeviceKind, line: LineAddr) -> Transfer {
        Transfer { agent, device, line, tag: Tag::default() }
    }
}

/// What a policy sees at the end of an epoch: counts since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters<'a> {
    /// Lines that devices wrote.
    pub writes: u64,
    /// Lines that devices wrote and the LLC did not have.
    pub write_misses: u64,
    /// What each core's L2 gave up.
    pub cores: &'a [CoreCounts],
}

impl Counters<'_> {
    /// Counters of the memory system since the window began.
    pub fn of(m: &MemStats) -> Counters<'_> {
        let sum = |f: fn(&DmaCounts) -> u64| m.dma.iter().map(f).sum();
        Counters { writes: sum(|d| d.writes), write_misses: sum(|d| d.write_misses), cores: m.cores.as_slice() }
    }
}

/// What a policy promises a scenario before it runs, and what it does with every transfer.
pub trait DataPlane {
    /// The policy of a scenario.
    fn new(s: &PlacementSpec) -> Self;

    /// What a scenario must not ask of this policy on this platform.
    ///
    /// # Errors
    /// One clause with key and value.
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        if s.iat.is_some() {
            return Err("placement.iat needs placement.policy = \"ddio\"".into());
        }
        // An LLC may have fewer ways than the default, which a policy without ways does not use.
        if s.ways == ddio::default_ways() {
            return Ok(());
        }
        ddio::check_ways(s, llc_ways)
    }

    /// Where a device's write goes.
    fn write(&mut self, t: &Transfer) -> Inbound;

    /// Where a device's read looks.
    fn read(&mut self, t: &Transfer) -> Outbound {
        let _ = t;
        Outbound::Nearest
    }

    /// LLC ways that writes may allocate into now.
    fn ways(&self) -> u32 {
        0
    }

    /// Receive buffers live in a cache of their own.
    fn keeps_buffers_apart(&self) -> bool {
        false
    }

    /// Time between two decisions of the control plane, if the policy has one.
    fn epoch(&self) -> Option<Time> {
        None
    }

    /// An epoch ends: what has been counted since the window began.
    fn decide(&mut self, c: &Counters) {
        let _ = c;
    }

    /// Counters begin at zero again.
    fn restart(&mut self) {}

    /// A control plane of the user's own has decided.
    ///
    /// # Errors
    /// One sentence about a setting that the policy has not.
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        if *s == Settings::default() {
            return Ok(());
        }
        Err("the control plane sets what placement.policy does not have; ways need \"ddio\" or \"idio\", prefetch \"idio\"".into())
    }
}

/// What a control plane of the user's own changes at the end of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// LLC ways that devices may allocate into.
    pub ways: Option<u32>,
    /// Cores whose payload is prefetched, or is not, or is as the policy itself says.
    pub prefetch: Vec<(u16, Option<bool>)>,
}

impl Settings {
    /// # Errors
    /// When the LLC has not that many ways.
    fn check_ways(&self, of: u32) -> Result<(), String> {
        match self.ways {
            Some(n) if !(1..=of).contains(&n) => {
                Err(format!("the control plane sets ways = {n}, which is not within 1 to {of}"))
            }
            _ => Ok(()),
        }
    }
}

/// Declares the policies, a file each: their names in scenarios, and the dispatch.
macro_rules! policies {
    ($($(#[$doc:meta])* mod $file:ident => $name:ident($policy:ty),)*) => {
        $(pub mod $file;)*

        /// How inbound packets are injected.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Policy {
            $($(#[$doc])* $name,)*
        }

        /// The policy at work. It stands below every device: whoever moves lines for one asks it, request by request,
        /// and its control plane sees counters once an epoch.
        #[derive(Clone, Debug)]
        pub enum Placement {
            $($(#[$doc])* $name($policy),)*
        }

        impl Policy {
            /// # Errors
            /// One clause with key and value.
            pub fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
                match s.policy { $(Policy::$name => <$policy>::check(s, llc_ways),)* }
            }
        }

        impl Placement {
            /// The data plane of the policy that `s` names.
            pub fn new(s: &PlacementSpec) -> Placement {
                match s.policy { $(Policy::$name => Placement::$name(<$policy>::new(s)),)* }
            }
            /// Where a write goes.
            #[inline]
            pub fn write(&mut self, t: &Transfer) -> Inbound {
                match self { $(Placement::$name(p) => p.write(t),)* }
            }
            /// Where a read looks.
            #[inline]
            pub fn read(&mut self, t: &Transfer) -> Outbound {
                match self { $(Placement::$name(p) => p.read(t),)* }
            }
            /// LLC ways that devices may allocate into now.
            pub fn ways(&self) -> u32 {
                match self { $(Placement::$name(p) => p.ways(),)* }
            }
            /// Whether receive buffers live in a cache of their own.
            pub fn keeps_buffers_apart(&self) -> bool {
                match self { $(Placement::$name(p) => p.keeps_buffers_apart(),)* }
            }
            /// Time between two decisions of the control plane, if there is one.
            pub fn epoch(&self) -> Option<Time> {
                match self { $(Placement::$name(p) => p.epoch(),)* }
            }
            /// An epoch ends.
            pub fn decide(&mut self, c: &Counters) {
                match self { $(Placement::$name(p) => p.decide(c),)* }
            }
            /// A control plane of the user's own has decided.
            ///
            /// # Errors
            /// One sentence about a setting that the policy has not.
            pub fn set(&mut self, s: &Settings, llc_ways: u32) -> Result<(), String> {
                s.check_ways(llc_ways)?;
                match self { $(Placement::$name(p) => p.set(s),)* }
            }
            /// Counters begin at zero again.
            pub fn restart(&mut self) {
                match self { $(Placement::$name(p) => p.restart(),)* }
            }
        }
    };
}

policies! {
    /// To DRAM.
    mod dma => Dma(dma::Dma),
    /// Into some ways of the LLC.
    mod ddio => Ddio(ddio::Ddio),
    /// Into an LLC of its own without limit.
    mod ideal => Ideal(ideal::Ideal),
    /// Into the L2 of its core, the LLC or DRAM, line by line (IDIO).
    mod idio => Idio(idio::Idio),
}

impl Placement {
    /// Whether devices' writes enter the LLC.
    pub fn fills_llc(&self) -> bool {
        self.ways() > 0
    }
}
