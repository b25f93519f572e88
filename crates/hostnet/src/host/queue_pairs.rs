//! Queue pairs of the integrated NIC: their receive and transmit buffers.

use super::layout::HostLayout;
use super::role_layout::RoleLayout;
use super::threads;
use crate::config::check;
use crate::device::nic::RingStart;
use crate::kernel::{Int, QueueId, RandomStream, TenantId};
use crate::memory::region::{RegionKind, Sharing};
use crate::memory::LINE;
use crate::stack::Thread;

/// Tenants whose packets come through queue pairs.
pub(super) struct QueuePairs;

impl RoleLayout for QueuePairs {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let spec = layout.s.tenants.get(t.index()).filter(|spec| check::serves(spec) && !spec.has_rings());
        if let Some(spec) = spec {
            // Any core of a stack of one's own may work on a packet.
            let shared = spec.stack.extension().is_some();
            lay_out_buffers(layout, t, spec.receivers().to_usize(), shared);
        }
        Ok(())
    }

    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        let spec = layout.s.tenants.get(t.index())?;
        Some(vec![threads::of_app(&spec.app, layout.s, t); layout.groups[t].cores.len()])
    }
}

/// Allocates receive and transmit buffers for the first `receivers` cores of `t`, which several cores access where they are
/// `shared`.
pub(super) fn lay_out_buffers(layout: &mut HostLayout, t: TenantId, receivers: usize, shared: bool) {
    let HostLayout { s, map, nic, groups, .. } = layout;
    let buffer_lines = s.rings.buffer_size.0.div_ceil(LINE);
    let (receivers, rx_buffers) = (&groups[t].cores[..receivers], check::pair_buffers(s));
    for kind in [RegionKind::Rx, RegionKind::Tx] {
        for &c in receivers {
            let n = if kind == RegionKind::Rx { rx_buffers } else { s.rings.tx_buffers };
            let sharing = if shared { Sharing::Shared } else { Sharing::of_thread(c) };
            let r = map.add(u64::from(n) * buffer_lines, kind, sharing, t);
            let base = map.get(r).base;
            if kind == RegionKind::Rx && s.placement.spent().follows_transmission() {
                map.make_invalidatable(base);
            }
            match kind {
                RegionKind::Rx => nic.attach_receive(QueueId(c.0), base, n, buffer_lines),
                _ => nic.attach_transmit(QueueId(c.0), base, n, buffer_lines),
            }
        }
    }
    let starts = if s.platform.nic.ring_start == RingStart::Random { receivers } else { &[] };
    for &c in starts {
        let mut rng = RandomStream::new(s.seed, "ring phase", c.0.into());
        let (rx, tx) = (rng.below(rx_buffers.into()), rng.below(s.rings.tx_buffers.into()));
        nic.start_at(QueueId(c.0), rx, tx);
    }
}
