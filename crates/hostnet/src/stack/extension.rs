//! A stack of one's own, which an [`Engine`](crate::Engine) knows by a name: threads on the tenant's cores, and what they
//! share.

use super::pmd::PollMode;
use super::qp::QpSpec;
use super::role::Role;
use super::{Ctx, Notice, Software, Step, Thread, Wakes};
use crate::core::CoreSpec;
use crate::kernel::extension::Extension;
use crate::kernel::{Int, LineAddr, QueueId, RandomStream, TenantId, ThreadId, Time};
use crate::machine::Machine;
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::placement::Spent;
use dyn_clone::DynClone;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;
use std::marker::PhantomData;

/// Interface of a stack of one's own. The value of the type is the role that the stack's threads share.
///
/// Every core of the tenant has a queue pair of the integrated NIC; packets arrive at the tenant's first cores, whose number
/// is [`Stack::receivers`]. Where the tenant names a `nic`, these cores have a poll-mode driver of that NIC instead, with
/// descriptor rings in memory ([`StackSite::driver`]).
pub trait Stack: Role + Sized {
    /// Parameters of the stack: all keys of the table `stack` in a scenario except the kind.
    type Spec: DeserializeOwned + JsonSchema;

    /// Whether the threads take packets from poll-mode drivers where the tenant names a `nic`. A stack that only knows queue
    /// pairs is refused there.
    const DRIVES_RINGS: bool = false;

    /// Number of the tenant's cores that receive packets, which are its first ones.
    fn receivers(s: &Self::Spec, cores: u32) -> u32 {
        let _ = s;
        cores
    }

    /// Checks that the parameters fit together on `cores` cores.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    fn check(s: &Self::Spec, cores: u32) -> Result<(), String> {
        let _ = (s, cores);
        Ok(())
    }

    /// Lays the stack out in memory, and makes one thread for each of the tenant's cores.
    ///
    /// # Errors
    /// Returns one clause that names key and value when the stack cannot be built.
    fn build(s: &Self::Spec, site: &mut StackSite) -> Result<(Self, Vec<ExtensionThread>), String>;
}

/// Place at which a stack of one's own is built.
pub struct StackSite<'a> {
    /// Tenant whose stack is built.
    pub tenant: TenantId,
    /// The tenant's cores.
    pub cores: &'a [ThreadId],
    /// Core of the platform.
    pub core: &'a CoreSpec,
    /// Costs of the platform's queue pairs.
    pub queue_pair: &'a QpSpec,
    /// Treatment of receive buffers that software will not read again.
    pub spent: Spent,
    /// Seed of the scenario.
    pub seed: u64,
    /// Memory in use.
    pub(crate) map: &'a mut AddressMap,
    /// Drivers of the cores that receive packets; empty on queue pairs.
    pub(crate) drivers: Vec<Option<PollMode>>,
}

impl StackSite<'_> {
    /// Allocates `lines` lines that all cores of the tenant access; returns the first.
    pub fn shared(&mut self, lines: u64) -> LineAddr {
        self.add(lines, Sharing::Shared)
    }

    /// Allocates `lines` lines that only core number `local` of the tenant accesses; returns the first.
    pub fn private(&mut self, lines: u64, local: usize) -> LineAddr {
        self.add(lines, Sharing::of_thread(self.cores[local]))
    }

    fn add(&mut self, lines: u64, sharing: Sharing) -> LineAddr {
        let r = self.map.add(lines, RegionKind::App, sharing, self.tenant);
        self.map.get(r).base
    }

    /// Queue of core number `local` of the tenant at the integrated NIC.
    pub fn queue(&self, local: usize) -> QueueId {
        QueueId(self.cores[local].0)
    }

    /// Takes the poll-mode driver of core number `local` of the tenant, once; None on queue pairs, and for a core that receives
    /// no packets. A thread of the stack steps the driver, and passes notices and side effects on to it.
    pub fn driver(&mut self, local: usize) -> Option<PollMode> {
        self.drivers.get_mut(local)?.take()
    }

    /// Random stream of this tenant with the name `name`.
    pub fn random(&self, name: &str) -> RandomStream {
        RandomStream::new(self.seed, name, self.tenant.index().to_u64())
    }
}

/// Makes the stacks of one name.
pub trait StackFactory: Send + Sync {
    /// Reads the keys of the stack.
    ///
    /// # Errors
    /// Returns the path of the key at fault, and what is wrong with its value.
    fn read(&self, keys: &Value) -> Result<(), (String, String)>;
    /// See [`Stack::DRIVES_RINGS`].
    fn drives_rings(&self) -> bool;
    /// See [`Stack::receivers`].
    fn receivers(&self, keys: &Value, cores: u32) -> u32;
    /// See [`Stack::check`].
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    fn check(&self, keys: &Value, cores: u32) -> Result<(), String>;
    /// See [`Stack::build`].
    ///
    /// # Errors
    /// Returns one clause that names key and value when the stack cannot be built.
    fn build(&self, keys: &Value, site: &mut StackSite) -> Result<(Box<dyn Role>, Vec<Thread>), String>;
    /// JSON Schema of the keys.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

/// Factory of the stacks of a type.
pub struct StackOf<S>(PhantomData<fn() -> S>);

impl<S> Default for StackOf<S> {
    fn default() -> Self {
        StackOf(PhantomData)
    }
}

impl<S: Stack> StackOf<S> {
    /// Parameters that the keys give, which `read` has checked.
    fn spec(keys: &Value) -> S::Spec {
        S::Spec::deserialize(keys).expect("the keys were read when the scenario was resolved")
    }
}

impl<S: Stack> StackFactory for StackOf<S> {
    fn read(&self, keys: &Value) -> Result<(), (String, String)> {
        let read: Result<S::Spec, _> = serde_path_to_error::deserialize(keys);
        read.map(|_| ()).map_err(|e| (e.path().to_string(), e.inner().to_string()))
    }
    fn drives_rings(&self) -> bool {
        S::DRIVES_RINGS
    }
    fn receivers(&self, keys: &Value, cores: u32) -> u32 {
        S::receivers(&Self::spec(keys), cores)
    }
    fn check(&self, keys: &Value, cores: u32) -> Result<(), String> {
        S::check(&Self::spec(keys), cores)
    }
    fn build(&self, keys: &Value, site: &mut StackSite) -> Result<(Box<dyn Role>, Vec<Thread>), String> {
        let cores = site.cores.len();
        let (role, threads) = S::build(&Self::spec(keys), site)?;
        if threads.len() != cores {
            return Err(format!("the stack made {} threads for {cores} cores", threads.len()));
        }
        Ok((Box::new(role), threads.into_iter().map(Thread::Extension).collect()))
    }
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<S::Spec>()
    }
}

/// The stack that a scenario names.
pub type StackExtension = Extension<dyn StackFactory>;

/// A thread of any type that can be copied with its host.
trait DynSoftware: Software + DynClone + Send {}

impl<T: Software + Clone + Send> DynSoftware for T {}

dyn_clone::clone_trait_object!(DynSoftware);

/// A thread of a stack of one's own.
#[derive(Clone)]
pub struct ExtensionThread(Box<dyn DynSoftware>);

impl ExtensionThread {
    /// The thread `t`.
    pub fn new<T: Software + Clone + Send + 'static>(t: T) -> ExtensionThread {
        ExtensionThread(Box::new(t))
    }
}

impl Software for ExtensionThread {
    fn step(&mut self, c: &mut Ctx) -> Step {
        self.0.step(c)
    }
    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        self.0.notify(what, now)
    }
    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        self.0.retired(tag, c);
    }
    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.0.retired_functional(tag, m);
    }
    fn restart_meters(&mut self, now: Time) {
        self.0.restart_meters(now);
    }
    fn idle(&self, since: Time, now: Time) -> Option<Time> {
        self.0.idle(since, now)
    }
}
