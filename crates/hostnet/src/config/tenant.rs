//! Tenants of a scenario: the tables that a user writes, and what they mean. A tenant has one stack with the options of that
//! stack, so that no option of another stack can be given; or the machine runs one directed probe and no tenant.

use super::traffic::TrafficSpec;
use crate::app::{AppSpec, Origin, WorkSource};
use crate::kernel::extension::Extension;
use crate::kernel::units::Size;
use crate::probe::{self, ProbeSpec};
use crate::stack::ccnic::spec::{CcnicMode, CcnicSpec};
use crate::stack::extension::StackExtension;
use crate::stack::pmd::{PipelineSpec, Recycling};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// LLC ways: a number counts ways from the top way down, a string such as "0-3" names a range of them, and a string such as
/// "0xf" is their bit mask.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a whole number of ways, or a range of ways such as \"0-3\" or \"0xf\"")]
pub enum WaysSpec {
    /// A number of ways, counted from the top way down.
    Count(u32),
    /// Ways by number, such as `0-3`, or by bit mask, such as `0xf`.
    Range(String),
}

/// A group of cores that runs one application.
#[derive(Clone, PartialEq, Debug)]
pub struct TenantSpec {
    /// Name of the tenant in messages and tables.
    pub name: String,
    /// Number of logical cores, taken in order from the platform's cores.
    pub cores: u32,
    /// Node of the tenant's cores, in whose memory its data lies.
    pub node: u8,
    /// LLC ways into which the L2 victims of this tenant may be allocated; None for all ways.
    pub llc_ways: Option<WaysSpec>,
    /// Size of the L2 of each of the tenant's cores, instead of the platform's.
    pub l2_size: Option<Size>,
    /// Differentiated services code point of the tenant's packets. With 0, the default, those of a capture keep their own.
    pub dscp: u8,
    /// Stack that hands packets to the application, with its options.
    pub stack: TenantStack,
    /// Packets that this tenant receives; None for those of the table `traffic`.
    pub traffic: Option<Box<TrafficSpec>>,
    /// Application that the tenant's cores run.
    pub app: AppSpec,
}

/// Stack of a tenant, with the options that this stack has and no other.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum TenantStack {
    /// None is given: queue pairs of the integrated NIC, for an application that serves packets.
    Implied,
    /// None is given for an application of kind "tcp_receive": the kernel over NIC `nic`, or the only one, which completes
    /// each frame with a line of its own.
    Frames { nic: Option<String> },
    /// Queue pairs of the integrated NIC.
    QueuePair,
    /// A poll-mode driver.
    PollMode(PollModeStack),
    /// The kernel, with descriptor rings of NIC `nic`, or of the only one.
    Kernel { nic: Option<String> },
    /// CC-NIC whose packets come from its own threads or from a wire.
    Ccnic(Box<CcnicSpec>),
    /// CC-NIC whose threads forward the packets of the PCIe NIC `nic`, or of the only one.
    Overlay { interface: Box<CcnicSpec>, nic: Option<String> },
    /// A stack of one's own: over a poll-mode driver of NIC `nic`, or over queue pairs of the integrated NIC.
    Extension { stack: StackExtension, nic: Option<String> },
}

/// Options of a poll-mode driver.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PollModeStack {
    /// Name of the NIC; None for the only one.
    pub nic: Option<String>,
    /// Treatment of a receive buffer whose packet the application has yet to process.
    pub recycling: Recycling,
    /// Pipeline of the tenant's cores in pairs; None where each core runs to completion.
    pub pipeline: Option<PipelineSpec>,
}

impl TenantStack {
    /// Name of the stack in scenarios and tables; None where the scenario gives none.
    pub fn name(&self) -> Option<&str> {
        Some(match self {
            TenantStack::Implied | TenantStack::Frames { .. } => return None,
            TenantStack::QueuePair => "queue_pair",
            TenantStack::PollMode(_) => "poll_mode",
            TenantStack::Kernel { .. } => "kernel",
            TenantStack::Ccnic(_) | TenantStack::Overlay { .. } => "ccnic",
            TenantStack::Extension { stack, .. } => &stack.name,
        })
    }

    /// Name of the Ethernet NIC that the packets come through, if the scenario gives one.
    pub fn nic(&self) -> Option<&String> {
        match self {
            TenantStack::Frames { nic }
            | TenantStack::Kernel { nic }
            | TenantStack::Overlay { nic, .. }
            | TenantStack::Extension { nic, .. } => nic.as_ref(),
            TenantStack::PollMode(p) => p.nic.as_ref(),
            _ => None,
        }
    }

    /// The stack over the only NIC; a stack of one's own keeps the name, which tells that there is one.
    pub(super) fn without_nic(mut self) -> TenantStack {
        match &mut self {
            TenantStack::Frames { nic } | TenantStack::Kernel { nic } | TenantStack::Overlay { nic, .. } => *nic = None,
            TenantStack::PollMode(p) => p.nic = None,
            _ => {}
        }
        self
    }

    /// StackOptions of the poll-mode driver, if there is one.
    pub fn poll_mode(&self) -> Option<&PollModeStack> {
        match self {
            TenantStack::PollMode(p) => Some(p),
            _ => None,
        }
    }

    /// The interface over coherent memory, if there is one.
    pub fn ccnic(&self) -> Option<&CcnicSpec> {
        match self {
            TenantStack::Ccnic(interface) | TenantStack::Overlay { interface, .. } => Some(interface),
            _ => None,
        }
    }

    /// The stack of one's own, if it is one.
    pub fn extension(&self) -> Option<&StackExtension> {
        match self {
            TenantStack::Extension { stack, .. } => Some(stack),
            _ => None,
        }
    }

    /// Pipeline of the cores in pairs, if they work so.
    pub fn pipeline(&self) -> Option<&PipelineSpec> {
        self.poll_mode()?.pipeline.as_ref()
    }

    /// Whether descriptor rings of the kernel's driver bring the packets.
    pub fn is_kernel(&self) -> bool {
        matches!(self, TenantStack::Kernel { .. })
    }

    /// The stack that `stack` and the options of a table mean. `frames` tells whether the application is a TCP receiver.
    ///
    /// # Errors
    /// Returns the key of an option that the stack does not have, and what would be valid.
    fn parse(stack: Option<StackSpec>, options: StackOptions, frames: bool) -> Result<TenantStack, String> {
        let StackOptions { recycling, pipeline, nic, ccnic } = options;
        let driver = matches!(stack, Some(StackSpec::PollMode));
        if !driver && recycling != Recycling::RunToCompletion {
            return Err("recycling is of a poll-mode driver; give stack = \"poll_mode\" or leave it out".into());
        }
        if !driver && pipeline.is_some() {
            return Err("pipeline: its cores need stack = \"poll_mode\"".into());
        }
        if ccnic.is_some() && !matches!(stack, Some(StackSpec::Ccnic)) {
            return Err("ccnic needs stack = \"ccnic\" of that tenant; leave it out".into());
        }
        let on_chip = |stack| match &nic {
            None => Ok(stack),
            Some(name) => {
                Err(format!("nic = \"{name}\": the tenant's packets come through no Ethernet NIC; leave it out"))
            }
        };
        match stack {
            None if frames => Ok(TenantStack::Frames { nic }),
            None => on_chip(TenantStack::Implied),
            Some(StackSpec::QueuePair) => on_chip(TenantStack::QueuePair),
            Some(StackSpec::Extension(stack)) => Ok(TenantStack::Extension { stack, nic }),
            Some(StackSpec::PollMode) => Ok(TenantStack::PollMode(PollModeStack { nic, recycling, pipeline })),
            Some(StackSpec::Kernel) => Ok(TenantStack::Kernel { nic }),
            Some(StackSpec::Ccnic) => {
                let interface = ccnic.unwrap_or_default();
                match interface.mode {
                    CcnicMode::Overlay => Ok(TenantStack::Overlay { interface, nic }),
                    _ => on_chip(TenantStack::Ccnic(interface)),
                }
            }
        }
    }

    /// The choice and the options that a table gives for the stack.
    fn written(self) -> (Option<StackSpec>, StackOptions) {
        let of = |nic| StackOptions { nic, ..StackOptions::default() };
        match self {
            TenantStack::Implied => (None, StackOptions::default()),
            TenantStack::Frames { nic } => (None, of(nic)),
            TenantStack::QueuePair => (Some(StackSpec::QueuePair), StackOptions::default()),
            TenantStack::PollMode(PollModeStack { nic, recycling, pipeline }) => {
                (Some(StackSpec::PollMode), StackOptions { recycling, pipeline, ..of(nic) })
            }
            TenantStack::Kernel { nic } => (Some(StackSpec::Kernel), of(nic)),
            TenantStack::Ccnic(c) => {
                (Some(StackSpec::Ccnic), StackOptions { ccnic: Some(c), ..StackOptions::default() })
            }
            TenantStack::Overlay { interface, nic } => {
                (Some(StackSpec::Ccnic), StackOptions { ccnic: Some(interface), ..of(nic) })
            }
            TenantStack::Extension { stack, nic } => (Some(StackSpec::Extension(stack)), of(nic)),
        }
    }
}

/// Options of all stacks, as a table may give them.
#[derive(Default)]
struct StackOptions {
    recycling: Recycling,
    pipeline: Option<PipelineSpec>,
    nic: Option<String>,
    ccnic: Option<Box<CcnicSpec>>,
}

impl TenantSpec {
    /// Number of the tenant's cores that receive packets, which are its first ones.
    pub fn receivers(&self) -> u32 {
        match &self.app {
            _ if self.stack.pipeline().is_some() => self.cores / 2,
            _ if self.stack.extension().is_some() => self.receivers_of_extension(),
            // The last core runs the application and receives no packets.
            AppSpec::TcpEcho(_) => self.cores.saturating_sub(1),
            _ => self.cores,
        }
    }

    fn receivers_of_extension(&self) -> u32 {
        let extension = self.stack.extension().filter(|e| e.factory.is_some());
        extension.map_or(self.cores, |e| e.factory().receivers(&e.keys, self.cores))
    }

    /// Origin of the packets that the tenant's cores send. Only a driver of a NIC originates packets that loop back:
    /// CC-NIC's threads generate theirs themselves.
    pub fn origin(&self) -> Origin {
        match self.app.origin() {
            Origin::Loop if self.stack.poll_mode().is_none() => Origin::Network,
            origin => origin,
        }
    }

    /// Whether the tenant's cores send packets to themselves, through a NIC that loops back.
    pub fn loops(&self) -> bool {
        self.origin() == Origin::Loop
    }

    /// Source of the work of the tenant's cores: packets that loop back count as packets. Packets that the threads of
    /// CC-NIC's NIC generate come from no other NIC.
    pub fn work(&self) -> WorkSource {
        if self.loops() {
            return WorkSource::Packets;
        }
        match self.app.work() {
            WorkSource::Packets if matches!(self.stack, TenantStack::Ccnic(_)) => WorkSource::Own,
            work => work,
        }
    }

    /// Whether the tenant's packets go through CC-NIC, and CC-NIC's NIC forwards them to and from a PCIe NIC.
    pub fn has_overlay(&self) -> bool {
        matches!(self.stack, TenantStack::Overlay { .. })
    }

    /// Whether the tenant's packets come through an Ethernet NIC on a port.
    pub fn has_port(&self) -> bool {
        self.has_rings() || self.work() == WorkSource::Kernel
    }

    /// Number of requests that the tenant's clients have outstanding, where the application determines it.
    pub fn requests(&self) -> u32 {
        match &self.app {
            AppSpec::TcpEcho(e) => e.flows.saturating_mul(e.pipelined),
            _ => 0,
        }
    }

    /// Whether the tenant's packets come through descriptor rings in memory.
    pub fn has_rings(&self) -> bool {
        matches!(
            (&self.stack, self.work()),
            (
                TenantStack::PollMode(_)
                    | TenantStack::Kernel { .. }
                    | TenantStack::Overlay { .. }
                    | TenantStack::Extension { nic: Some(_), .. },
                WorkSource::Packets
            ) | (TenantStack::Kernel { .. }, WorkSource::Kernel)
        )
    }
}

/// Stack that hands packets to an application.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StackSpec {
    /// Queue pairs of the integrated NIC, on the chip.
    QueuePair,
    /// A poll-mode driver of the Ethernet NIC behind a PCIe port.
    PollMode,
    /// CC-NIC: descriptors and payload in coherent memory, and threads of the NIC on cores of their own.
    Ccnic,
    /// The kernel, over the Ethernet NIC behind a PCIe port: a UDP socket on each core, or a TCP connection for
    /// `tcp_receive`.
    Kernel,
    /// Stack of one's own, which an engine knows by its name.
    #[schemars(skip)]
    Extension(StackExtension),
}

impl StackSpec {
    /// Name of the stack in scenarios and tables.
    pub fn name(&self) -> &str {
        match self {
            StackSpec::QueuePair => "queue_pair",
            StackSpec::PollMode => "poll_mode",
            StackSpec::Ccnic => "ccnic",
            StackSpec::Kernel => "kernel",
            StackSpec::Extension(e) => &e.name,
        }
    }
}

impl Serialize for StackSpec {
    /// Writes a stack as scenarios give it: its name, or a table with its kind and its keys.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            StackSpec::Extension(Extension { name, keys: Value::Object(keys), .. }) if !keys.is_empty() => {
                let kind = [("kind".to_string(), Value::from(name.as_str()))];
                kind.into_iter().chain(keys.clone()).collect::<Map<String, Value>>().serialize(s)
            }
            other => s.serialize_str(other.name()),
        }
    }
}

/// Work of the cores of the host: the applications of tenants, or one directed probe on an idle machine.
#[derive(Clone, PartialEq, Debug)]
pub enum Jobs {
    /// Tenants, in the order of the file.
    Tenants(Vec<TenantSpec>),
    /// A directed probe, which drives the machine itself.
    Probe(Box<ProbeTenant>),
}

/// Cores of a directed probe.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeTenant {
    /// Name of the tenant in messages.
    pub name: String,
    /// Number of cores.
    pub cores: u32,
    /// Node of the cores.
    pub node: u8,
    /// LLC ways into which L2 victims of the cores may be allocated; None for all ways.
    pub llc_ways: Option<WaysSpec>,
    /// Size of the L2 of each of the cores, instead of the platform's.
    pub l2_size: Option<Size>,
    /// The probe.
    pub probe: ProbeSpec,
}

impl Jobs {
    /// The directed probe, if it is one.
    pub fn probe(&self) -> Option<&ProbeTenant> {
        match self {
            Jobs::Probe(p) => Some(p),
            Jobs::Tenants(_) => None,
        }
    }

    /// The jobs that the tables of a file mean.
    ///
    /// # Errors
    /// Returns the key at fault, from the number of its table on, and what would be valid.
    fn parse(tables: Vec<WrittenTenant>) -> Result<Jobs, String> {
        let alone = tables.len() == 1;
        let mut tenants = Vec::new();
        for (i, t) in tables.into_iter().enumerate() {
            let at = |why| format!("[{i}].{why}");
            let options = StackOptions { recycling: t.recycling, pipeline: t.pipeline, nic: t.nic, ccnic: t.ccnic };
            let WrittenTenant { name, cores, node, llc_ways, l2_size, dscp, traffic, .. } = t;
            match t.app {
                TenantApp::App(app) => {
                    let frames = matches!(app, AppSpec::TcpReceive(_));
                    let stack = TenantStack::parse(t.stack, options, frames).map_err(at)?;
                    tenants.push(TenantSpec { name, cores, node, llc_ways, l2_size, dscp, stack, traffic, app });
                }
                TenantApp::Probe(_) if !alone => {
                    return Err(at("app: a directed test is the only tenant and has run.load = \"none\"".into()));
                }
                TenantApp::Probe(probe) => {
                    if t.stack.is_some() {
                        return Err(at(
                            "stack has no effect: a directed test drives the machine itself; leave it out".into()
                        ));
                    }
                    TenantStack::parse(None, options, false).map_err(at)?;
                    for (key, given) in [("traffic", traffic.is_some()), ("dscp", dscp != 0)] {
                        if given {
                            return Err(at(format!(
                                "{key} has no effect: a directed test takes no packets; leave it out"
                            )));
                        }
                    }
                    return Ok(Jobs::Probe(Box::new(ProbeTenant { name, cores, node, llc_ways, l2_size, probe })));
                }
            }
        }
        Ok(Jobs::Tenants(tenants))
    }

    /// The tables of a file that mean these jobs.
    fn written(&self) -> Vec<WrittenTenant> {
        match self {
            Jobs::Tenants(tenants) => tenants.iter().map(WrittenTenant::of).collect(),
            Jobs::Probe(p) => vec![WrittenTenant::of_probe(p)],
        }
    }
}

impl Default for Jobs {
    /// No tenant.
    fn default() -> Jobs {
        Jobs::Tenants(Vec::new())
    }
}

/// The tenants, of which a probe has none.
impl Deref for Jobs {
    type Target = [TenantSpec];

    fn deref(&self) -> &[TenantSpec] {
        match self {
            Jobs::Tenants(tenants) => tenants,
            Jobs::Probe(_) => &[],
        }
    }
}

impl DerefMut for Jobs {
    fn deref_mut(&mut self) -> &mut [TenantSpec] {
        match self {
            Jobs::Tenants(tenants) => tenants,
            Jobs::Probe(_) => &mut [],
        }
    }
}

impl<'a> IntoIterator for &'a Jobs {
    type Item = &'a TenantSpec;
    type IntoIter = std::slice::Iter<'a, TenantSpec>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Jobs {
    /// Writes the tables that a file would have.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.written().serialize(s)
    }
}

impl<'de> Deserialize<'de> for Jobs {
    /// Reads the tables of a file.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Jobs, D::Error> {
        Jobs::parse(Vec::deserialize(d)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for Jobs {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        <Vec<WrittenTenant>>::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<WrittenTenant>>::json_schema(generator)
    }
}

/// A group of cores that runs one application.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TenantSpec")]
pub(super) struct WrittenTenant {
    /// Name of the tenant in messages and tables.
    name: String,
    /// Number of logical cores, taken in order from the platform's cores. With `platform.core.threads = 2`, cores
    /// beyond a node's number of cores are second hardware threads.
    cores: u32,
    /// Node of the tenant's cores, in whose memory its data lies. Nodes have cores and private caches of one kind, so that a
    /// probe of its own core's L1 or L2 finds the same on each of them. The default is 0.
    #[serde(default)]
    node: u8,
    /// LLC ways into which the L2 victims of this tenant may be allocated (Intel CAT). A number counts from the top way
    /// down, whereas the number of `placement.ways` counts from way 0 up; a string such as "0-3" names a range,
    /// and "0xf" is the bit mask of the same ways. When absent, all ways.
    #[serde(default)]
    llc_ways: Option<WaysSpec>,
    /// Size of the L2 of each of the tenant's cores, instead of the platform's, with the same number of ways.
    #[serde(default)]
    l2_size: Option<Size>,
    /// Differentiated services code point of the tenant's packets (0 to 63). Placement policies see whether
    /// `placement.idio.class1_dscp` lists it. The default is 0.
    #[serde(default)]
    dscp: u8,
    /// Stack that hands packets to the application. When absent, queue pairs on the integrated NIC; or, for an `app` of
    /// kind "tcp_receive", the kernel over a NIC that completes each frame with a line of its own.
    #[serde(default)]
    stack: Option<StackSpec>,
    /// Treatment of a receive buffer whose packet the application has yet to process, with `stack = "poll_mode"`. The
    /// default is "run_to_completion".
    #[serde(default)]
    recycling: Recycling,
    /// Pipeline of the tenant's cores in pairs, with a ring in memory between the two cores of a pair (DPDK's pipeline
    /// model), with `stack = "poll_mode"`. When absent, each core runs to completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pipeline: Option<PipelineSpec>,
    /// Packets that this tenant receives, for the keys in which they differ from those of the table `traffic`. When
    /// absent, as in that table. Each tenant that serves packets has traffic of its own, at the rate that is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traffic: Option<Box<TrafficSpec>>,
    /// Name of the `[[peripheral]]` of kind "ethernet" that the tenant's packets come through. When absent, the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nic: Option<String>,
    /// CC-NIC of this tenant, with `stack = "ccnic"`: the keys in which it differs from the table `ccnic`. Each tenant has
    /// an interface of its own, with threads of the NIC, queue pairs and buffers. When absent, as in that table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ccnic: Option<Box<CcnicSpec>>,
    /// Application that the tenant's cores run.
    app: TenantApp,
}

impl WrittenTenant {
    /// The table that means `tenant`.
    fn of(tenant: &TenantSpec) -> WrittenTenant {
        let TenantSpec { name, cores, node, llc_ways, l2_size, dscp, stack, traffic, app } = tenant.clone();
        let (stack, StackOptions { recycling, pipeline, nic, ccnic }) = stack.written();
        let app = TenantApp::App(app);
        WrittenTenant {
            name,
            cores,
            node,
            llc_ways,
            l2_size,
            dscp,
            stack,
            recycling,
            pipeline,
            traffic,
            nic,
            ccnic,
            app,
        }
    }

    /// The table that means the probe `p`.
    fn of_probe(p: &ProbeTenant) -> WrittenTenant {
        let ProbeTenant { name, cores, node, llc_ways, l2_size, probe } = p.clone();
        let StackOptions { recycling, pipeline, nic, ccnic } = StackOptions::default();
        let app = TenantApp::Probe(probe);
        WrittenTenant {
            name,
            cores,
            node,
            llc_ways,
            l2_size,
            dscp: 0,
            stack: None,
            recycling,
            pipeline,
            traffic: None,
            nic,
            ccnic,
            app,
        }
    }
}

/// Choice of a table for the tenant's application: an application, or a directed probe.
enum TenantApp {
    App(AppSpec),
    Probe(ProbeSpec),
}

impl Serialize for TenantApp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            TenantApp::App(app) => app.serialize(s),
            TenantApp::Probe(probe) => probe.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for TenantApp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<TenantApp, D::Error> {
        let table = Value::deserialize(d)?;
        let kind = table.get("kind").and_then(Value::as_str);
        if kind.is_some_and(|kind| probe::KINDS.contains(&kind)) {
            return ProbeSpec::deserialize(&table).map(TenantApp::Probe).map_err(de::Error::custom);
        }
        AppSpec::deserialize(&table).map(TenantApp::App).map_err(|e| {
            let mut why = e.to_string();
            if kind.is_some_and(|kind| !AppSpec::knows(kind)) {
                probe::KINDS.iter().for_each(|kind| why += &format!(", `{kind}`"));
            }
            de::Error::custom(why)
        })
    }
}

impl JsonSchema for TenantApp {
    fn schema_name() -> Cow<'static, str> {
        AppSpec::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        AppSpec::schema_id()
    }
    /// Schema of the applications with that of the probes.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (mut all, mut probes) = (AppSpec::json_schema(generator), ProbeSpec::json_schema(generator));
        let probes = probes.get_mut("oneOf").and_then(Value::as_array_mut).map(std::mem::take);
        if let Some(choices) = all.get_mut("oneOf").and_then(Value::as_array_mut) {
            choices.extend(probes.into_iter().flatten());
        }
        all
    }
}
