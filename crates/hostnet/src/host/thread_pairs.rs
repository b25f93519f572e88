//! Pairs of threads that exchange lines: a ping-pong, or a writer and a reader. One thread of each pair is on the
//! tenant's node.

use super::Host;
use crate::app::stream_transfer::Written;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::kernel::{Int, NodeId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::memory::LINE;
use crate::meter::Values;
use crate::stack::pingpong::PingPongThread;
use crate::stack::transfer::{PairMemory, Role, TransferThread};
use crate::stack::Thread;

/// Builds the threads of the tenant's cores and then the threads of the peers, and returns the threads with their
/// number of registers; None without such a tenant. `cores` holds the tenant's cores, `peers` the other cores.
pub fn build(
    s: &Scenario,
    map: &mut AddressMap,
    cores: &[ThreadId],
    peers: &[ThreadId],
) -> Option<(Vec<Thread>, usize)> {
    let tenant = s.paired_tenant()?;
    let (here, app) = (NodeId(s.tenant(tenant).node), &s.tenant(tenant).app);
    let mut add = |lines, sharing, home| {
        let r = map.add(lines, RegionKind::App, sharing, tenant);
        map.set_home(r, home);
        map.get(r).base
    };
    let n = cores.len();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    match app {
        AppSpec::Pingpong(p) => {
            let there = NodeId(p.peer_node);
            let home = |other: bool| if other { there } else { here };
            let (a, b) = p.layout.at_other();
            let a = add(n.to_u64(), Sharing::Shared, home(a));
            let b = if p.layout.together() { a } else { add(n.to_u64(), Sharing::Shared, home(b)) };
            for i in 0..n {
                let (own, other) = ((a + i.to_u64(), 2 * i), (b + i.to_u64(), 2 * i + 1));
                first.push(Thread::PingPong(PingPongThread::new(true, own, other)));
                second.push(Thread::PingPong(PingPongThread::new(false, other, own)));
            }
        }
        AppSpec::StreamTransfer(t) => {
            let there = NodeId(t.peer_node);
            let (lines, chunk) = (t.size().0 / LINE, t.chunk.0 / LINE);
            let (buffers, nontemporal) = match t.stores {
                Written::Cached => (here, false),
                Written::Nontemporal => (there, true),
                Written::None => (there, false),
            };
            let written = add(n.to_u64(), Sharing::Shared, here);
            let read = add(n.to_u64(), Sharing::Shared, there);
            for (i, core) in cores.iter().enumerate() {
                let alone = t.stores == Written::None;
                let sharing = if alone { Sharing::of_thread(*core) } else { Sharing::Shared };
                let memory = PairMemory {
                    buffer: add(lines, sharing, buffers),
                    chunk,
                    chunks: lines / chunk,
                    written: (written + i.to_u64(), 2 * i),
                    read: (read + i.to_u64(), 2 * i + 1),
                };
                let role = if alone { Role::Alone } else { Role::Writer { nontemporal } };
                first.push(Thread::Transfer(TransferThread::new(role, memory)));
                if let Some(peer) = peers.get(i) {
                    let to = add(chunk, Sharing::of_thread(*peer), there);
                    second.push(Thread::Transfer(TransferThread::new(Role::Reader { to }, memory)));
                }
            }
        }
        _ => unreachable!("only such applications have pairs"),
    }
    first.extend(second);
    Some((first, 2 * n))
}

impl Host {
    pub(super) fn pair_metrics(&self, v: &mut Values, us: f64) {
        let Some(tenant) = self.spec.paired_tenant() else { return };
        let done = self.tally.operations[tenant];
        match &self.spec.tenant(tenant).app {
            AppSpec::Pingpong(_) if done > 0 => {
                v.set("pingpong_ns", self.trips.value_at_quantile(0.5).to_f64() / 1e3);
                let remote: u64 = self.machine.mem.stats.remote.iter().map(|r| r.reads + r.rfos).sum();
                v.set("remote_requests", remote.to_f64() / done.to_f64());
            }
            AppSpec::StreamTransfer(_) => v.set("stream_gbps", (done * LINE * 8).to_f64() / us / 1e3),
            _ => {}
        }
    }
}
