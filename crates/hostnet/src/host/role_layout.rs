//! Kinds of roles that a host may have, each of which lays itself out: memory, cores, queues and threads.

use super::application::Applications;
use super::ccnic::CcnicInterfaces;
use super::layout::{Devices, HostLayout};
use super::network::FrameReceivers;
use super::queue_pairs::QueuePairs;
use super::rings::{RingDrivers, SoftwarePipelines};
use super::storage::BlockLayers;
use super::tas::TcpServices;
use super::thread_pairs::OwnThreads;
use crate::kernel::TenantId;
use crate::stack::Thread;

/// A kind of role. The host calls each method for all tenants, and for the kernel behind them, before it turns to the next
/// kind: the order of the list decides where in memory a role lies.
pub(super) trait RoleLayout {
    /// Claims memory, and queues and functions of NICs, for tenant `t`, and adds roles to it.
    ///
    /// # Errors
    /// Returns one sentence that names the key that does not work.
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String>;

    /// Claims what needs the NICs, once all devices exist.
    ///
    /// # Errors
    /// Returns one sentence that names the key that does not work.
    fn lay_out_behind_devices(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let _ = (layout, t);
        Ok(())
    }

    /// Makes the threads of the cores of tenant `t` and of their peers, once devices exist; None where another kind brings
    /// them.
    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        let _ = (layout, t);
        None
    }
}

/// Every kind, in the order of lay-out; devices and the block layer are the kernel's. The last kind that brings threads for a tenant has those of its cores.
pub(super) const ROLE_LAYOUTS: [&dyn RoleLayout; 10] = [
    &QueuePairs,
    &FrameReceivers,
    &Applications,
    &CcnicInterfaces,
    &TcpServices,
    &OwnThreads,
    &RingDrivers,
    &SoftwarePipelines,
    &Devices,
    &BlockLayers,
];
