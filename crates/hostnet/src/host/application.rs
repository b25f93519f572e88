//! Applications of tenants: their data in memory, and buffers that hold their messages.

use super::layout::HostLayout;
use super::role_layout::RoleLayout;
use crate::app::{App, AppBuildContext};
use crate::config::check;
use crate::config::scenario::ArrivalsSpec;
use crate::device::nic::BUFFERS;
use crate::kernel::{Int, TenantId};
use crate::memory::LINE;

/// The application of every tenant.
pub(super) struct Applications;

impl RoleLayout for Applications {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let HostLayout { s, map, groups, captures, tenants, .. } = layout;
        let Some(tenant) = s.tenants.get(t.index()) else { return Ok(()) };
        let (cores, capture, stlb) = (&groups[t].cores, captures[t].as_ref(), s.platform.core.stlb.as_ref());
        let line_instructions = s.platform.core.stores_per_line;
        let context = AppBuildContext { map, tenant: t, cores, seed: s.seed, capture, stlb, line_instructions };
        let app = App::build(&tenant.app, s.traffic_of(t).frame_sizes().0.to_u32(), context)
            .map_err(|why| format!("tenant[{}].app: {why}", t.index()))?;
        let buffer_lines = s.rings.buffer_size.0.div_ceil(LINE);
        let (largest, of) = match (&app, capture) {
            (App::Memcached(m), _) => (u64::from(m.largest_reply().max(m.largest_request())) * LINE, "application"),
            (_, Some(c)) if check::serves(tenant) => (c.longest().into(), "capture"),
            _ => (0, "capture"),
        };
        let recorded = u64::from(app.largest_recorded());
        let silent = recorded == 0 && matches!(app, App::Recorded(_));
        if silent && s.traffic_of(t).arrivals() == ArrivalsSpec::Closed {
            return Err(format!(
                "traffic.arrivals = \"closed\" waits for replies, and the recorded program of tenant[{}] sends none; choose \
                 \"poisson\" or \"fixed\"",
                t.index()
            ));
        }
        let (largest, of) = if recorded > largest { (recorded, "recording") } else { (largest, of) };
        if let Some(ring) = s.ring_of(t).filter(|r| largest > r.rings.buffer_size.0) {
            if largest > BUFFERS.1 {
                let replayed = s.traffic_of(t).pcap().filter(|_| of == "capture");
                let file = replayed.map_or(String::new(), |p| format!("traffic.pcap.file = \"{}\": ", p.file));
                let advice = match of {
                    "capture" => "; capture with the NIC's segmentation and receive offloads off (`ethtool -K`)",
                    "recording" => "; record the program with smaller messages",
                    _ => "",
                };
                return Err(format!(
                    "{file}the {of} of tenant[{}] has a message of {largest} bytes, and a receive buffer has {} at most{advice}",
                    t.index(),
                    BUFFERS.1
                ));
            }
            let room = s.frame_room(&ring);
            return Err(format!("{room} does not hold the {of}'s largest message of {largest} bytes"));
        }
        if let Some(c) = tenant.stack.ccnic().filter(|c| !tenant.has_rings() && largest > c.large_room()) {
            let room = c.quirks.large_buffer;
            return Err(format!(
                "ccnic.quirks.large_buffer = \"{room}\" does not hold the {of}'s largest message of {largest} bytes"
            ));
        }
        if !tenant.has_rings() && tenant.stack.ccnic().is_none() && largest.div_ceil(LINE) > buffer_lines {
            return Err(format!(
                "rings.buffer_size = \"{}\" does not hold the {of}'s largest message of {largest} bytes",
                s.rings.buffer_size
            ));
        }
        tenants[t].state.app = Some(app);
        Ok(())
    }
}
