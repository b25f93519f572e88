//! Pairs of threads that exchange lines: a ping-pong, or a writer and a reader. One thread of each pair is on the
//! tenant's node.

use crate::app::stream_transfer::Written;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::kernel::{Int, NodeId, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::memory::LINE;
use crate::stack::pingpong::{PingPongPairs, PingPongThread};
use crate::stack::role::Roles;
use crate::stack::transfer::{PairMemory, TransferPairs, TransferRole, TransferThread};
use crate::stack::Thread;

/// Builds the threads of `tenant`'s cores and then those of the peers, and adds what they share to `roles`; none when
/// its application does not work in pairs. `cores` are the tenant's cores, `peers` the others.
pub fn build(
    s: &Scenario,
    tenant: TenantId,
    map: &mut AddressMap,
    cores: &[ThreadId],
    peers: &[ThreadId],
    roles: &mut Roles,
) -> Vec<Thread> {
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
            roles.add(PingPongPairs::new(2 * n));
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
            roles.add(TransferPairs::new(2 * n));
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
                let role = if alone { TransferRole::Alone } else { TransferRole::Writer { nontemporal } };
                first.push(Thread::Transfer(TransferThread::new(role, memory)));
                if let Some(peer) = peers.get(i) {
                    let to = add(chunk, Sharing::of_thread(*peer), there);
                    second.push(Thread::Transfer(TransferThread::new(TransferRole::Reader { to }, memory)));
                }
            }
        }
        _ => {}
    }
    first.extend(second);
    first
}
