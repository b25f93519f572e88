//! The thread that runs each kind of application, and the values from the scenario with which its stack is built.

use crate::app::{AppSpec, WorkSource};
use crate::config::scenario::ArrivalsSpec as Kind;
use crate::config::Scenario;
use crate::kernel::{Int, RandomStream, TenantId};
use crate::stack::demand::Demand;
use crate::stack::free_running::FreeRunning;
use crate::stack::qp::QueuePair;
use crate::stack::tcp::TcpReceiver;
use crate::stack::Thread;
use crate::traffic::arrival::Arrivals;

/// Declares the applications whose cores run a thread of their own choice: kind, parameters, scenario, tenant and thread. The cores of
/// every other application run by its [`WorkSource`]: a free-running thread, or a queue pair.
macro_rules! threads_by_app {
    ($($app:ident($spec:pat, $scenario:pat, $tenant:pat) => $thread:expr,)*) => {
        /// The thread of each core of `tenant` that runs `app` in scenario `s`, where no stack of the tenant's own says
        /// otherwise.
        pub fn of_app(app: &AppSpec, s: &Scenario, tenant: TenantId) -> Thread {
            match app {
                $(AppSpec::$app($spec) => {
                    let ($scenario, $tenant) = (s, tenant);
                    $thread
                })*
                _ if app.work() == WorkSource::Own => Thread::FreeRunning(FreeRunning::default()),
                _ => queue_pair(s),
            }
        }
    };
}

threads_by_app! {
    TcpReceive(_, s, tenant) => tcp_receiver(s, tenant).map_or_else(|| queue_pair(s), |t| Thread::Tcp(Box::new(t))),
}

/// A queue pair with the platform's costs.
fn queue_pair(s: &Scenario) -> Thread {
    Thread::QueuePair(QueuePair::new(s.platform.queue_pair.clone(), s.placement.spent(), &s.platform.core))
}

/// The kernel's receiver of one TCP connection of `tenant`; None without an Ethernet NIC, and where the platform has no
/// costs of TCP.
pub fn tcp_receiver(s: &Scenario, tenant: TenantId) -> Option<TcpReceiver> {
    let (port, nic) = s.nic_of(tenant)?;
    let costs = s.platform.tcp.as_ref()?;
    Some(TcpReceiver::new(costs, port, nic, s.ring_of(tenant).is_some()))
}

/// Packets of `bytes` bytes in the mean that `tenant`'s traffic offers to `queue` of its `queues`: each has its own window, or
/// its share of the rate.
pub fn demand(s: &Scenario, tenant: TenantId, queue: usize, queues: usize, bytes: f64) -> Demand {
    let t = s.traffic_of(tenant);
    let rate = t.rate().map_or(0.0, |r| r.packets(bytes)) / queues.to_f64();
    let generates = |t: &TenantId| s.tenant(*t).loops() || s.tenant(*t).stack.ccnic().is_some();
    let before = s.tenant_ids().take(tenant.index()).filter(generates).count().to_u64();
    let arrivals = match t.arrivals() {
        Kind::Closed => return Demand::Closed { outstanding: t.outstanding() },
        Kind::Fixed => Arrivals::fixed(rate),
        _ => Arrivals::poisson(rate, RandomStream::new(s.seed, "ccnic arrivals", before << 32 | queue.to_u64())),
    };
    // The first packets of the queue pairs are spread over one gap.
    Demand::open(arrivals, queue.to_f64() / queues.to_f64() / rate)
}
