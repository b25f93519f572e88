//! A placement policy of one's own, which an [`Engine`](crate::Engine) knows by a name.

use super::{DataPlane, DeviceTransfer, EpochCounters, PlacementSpec, Settings};
use crate::kernel::Time;
use crate::memory::{Inbound, Outbound};
use dyn_clone::DynClone;
use std::fmt;

/// Makes the policy of a scenario.
pub trait PolicyFactory: Send + Sync {
    /// Checks that the scenario's settings suit the policy and a platform with `llc_ways` LLC ways.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    fn check(&self, s: &PlacementSpec, llc_ways: u32) -> Result<(), String>;

    /// Makes the policy.
    fn make(&self, s: &PlacementSpec) -> ExtensionPolicy;
}

/// Factory that calls a function.
pub struct PolicyFunction<F>(pub F);

impl<P: DataPlane + Clone + Send + 'static, F: Fn(&PlacementSpec) -> P + Send + Sync> PolicyFactory
    for PolicyFunction<F>
{
    fn check(&self, s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        P::check(s, llc_ways)
    }
    fn make(&self, s: &PlacementSpec) -> ExtensionPolicy {
        ExtensionPolicy(Box::new((self.0)(s)))
    }
}

/// The part of [`DataPlane`] that needs no type.
trait DynDataPlane: DynClone + Send {
    fn write(&mut self, t: &DeviceTransfer) -> Inbound;
    fn read(&mut self, t: &DeviceTransfer) -> Outbound;
    fn reads_tags(&self) -> bool;
    fn ways(&self) -> u32;
    fn first_way(&self) -> u32;
    fn keeps_buffers_apart(&self) -> bool;
    fn epoch(&self) -> Option<Time>;
    fn decide(&mut self, c: &EpochCounters);
    fn decide_in_silence(&mut self, c: &EpochCounters, epochs: u64);
    fn restart(&mut self);
    fn set(&mut self, s: &Settings) -> Result<(), String>;
}

impl<P: DataPlane + Clone + Send> DynDataPlane for P {
    fn write(&mut self, t: &DeviceTransfer) -> Inbound {
        DataPlane::write(self, t)
    }
    fn read(&mut self, t: &DeviceTransfer) -> Outbound {
        DataPlane::read(self, t)
    }
    fn reads_tags(&self) -> bool {
        DataPlane::reads_tags(self)
    }
    fn ways(&self) -> u32 {
        DataPlane::ways(self)
    }
    fn first_way(&self) -> u32 {
        DataPlane::first_way(self)
    }
    fn keeps_buffers_apart(&self) -> bool {
        DataPlane::keeps_buffers_apart(self)
    }
    fn epoch(&self) -> Option<Time> {
        DataPlane::epoch(self)
    }
    fn decide(&mut self, c: &EpochCounters) {
        DataPlane::decide(self, c);
    }
    fn decide_in_silence(&mut self, c: &EpochCounters, epochs: u64) {
        DataPlane::decide_in_silence(self, c, epochs);
    }
    fn restart(&mut self) {
        DataPlane::restart(self);
    }
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        DataPlane::set(self, s)
    }
}

dyn_clone::clone_trait_object!(DynDataPlane);

/// A policy of one's own.
#[derive(Clone)]
pub struct ExtensionPolicy(Box<dyn DynDataPlane>);

impl fmt::Debug for ExtensionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy of one's own")
    }
}

impl DataPlane for ExtensionPolicy {
    fn new(s: &PlacementSpec) -> ExtensionPolicy {
        s.extension.as_ref().expect("a policy of one's own has a name").factory().make(s)
    }
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        s.extension.as_ref().map_or(Ok(()), |e| e.factory().check(s, llc_ways))
    }
    #[inline]
    fn write(&mut self, t: &DeviceTransfer) -> Inbound {
        self.0.write(t)
    }
    #[inline]
    fn read(&mut self, t: &DeviceTransfer) -> Outbound {
        self.0.read(t)
    }
    fn reads_tags(&self) -> bool {
        self.0.reads_tags()
    }
    fn ways(&self) -> u32 {
        self.0.ways()
    }
    fn first_way(&self) -> u32 {
        self.0.first_way()
    }
    fn keeps_buffers_apart(&self) -> bool {
        self.0.keeps_buffers_apart()
    }
    fn epoch(&self) -> Option<Time> {
        self.0.epoch()
    }
    fn decide(&mut self, c: &EpochCounters) {
        self.0.decide(c);
    }
    fn decide_in_silence(&mut self, c: &EpochCounters, epochs: u64) {
        self.0.decide_in_silence(c, epochs);
    }
    fn restart(&mut self) {
        self.0.restart();
    }
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        self.0.set(s)
    }
}
