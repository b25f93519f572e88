//! The thread that runs each kind of application, and the values that its stack is built from, taken from the scenario.

use crate::app::{AppSpec, WorkSource};
use crate::config::scenario::ArrivalsSpec as Kind;
use crate::config::Scenario;
use crate::kernel::{Int, RandomStream};
use crate::stack::demand::Demand;
use crate::stack::free_running::FreeRunning;
use crate::stack::qp::QueuePair;
use crate::stack::tcp::TcpReceiver;
use crate::stack::Thread;
use crate::traffic::arrival::Arrivals;

/// Declares the applications whose cores run a thread of their own choice: kind, parameters, scenario and thread. The cores of
/// every other application run by its [`WorkSource`]: a free-running thread, or a queue pair.
macro_rules! threads_by_app {
    ($($app:ident($spec:pat, $scenario:pat) => $thread:expr,)*) => {
        /// The thread of each core that runs `app` in scenario `s`, where no stack of the tenant's own says otherwise.
        pub fn of_app(app: &AppSpec, s: &Scenario) -> Thread {
            match app {
                $(AppSpec::$app($spec) => {
                    let $scenario = s;
                    $thread
                })*
                _ if app.work() == WorkSource::Own => Thread::FreeRunning(FreeRunning),
                _ => queue_pair(s),
            }
        }
    };
}

threads_by_app! {
    TcpReceive(_, s) => tcp_receiver(s).map_or_else(|| queue_pair(s), |t| Thread::Tcp(Box::new(t))),
}

/// A queue pair with the platform's costs.
fn queue_pair(s: &Scenario) -> Thread {
    Thread::QueuePair(QueuePair::new(s.platform.queue_pair.clone(), s.placement.spent(), &s.platform.core))
}

/// The kernel's receiver of one TCP connection; None without an Ethernet NIC, and where the platform has no costs of TCP.
pub fn tcp_receiver(s: &Scenario) -> Option<TcpReceiver> {
    let (port, nic) = s.ethernets().next()?;
    let costs = s.platform.tcp.as_ref()?;
    Some(TcpReceiver::new(costs, port, nic, s.ringed().is_some()))
}

/// Packets of `bytes` bytes that the scenario's traffic offers to `queue` of `queues`: each has its own window, or its share of
/// the rate.
pub fn demand(s: &Scenario, queue: usize, queues: usize, bytes: u64) -> Demand {
    let t = &s.traffic;
    let rate = t.rate.map_or(0.0, |r| r.packets(bytes.to_f64())) / queues.to_f64();
    let arrivals = match t.arrivals {
        Kind::Closed => return Demand::Closed { outstanding: t.outstanding },
        Kind::Fixed => Arrivals::fixed(rate),
        _ => Arrivals::poisson(rate, RandomStream::new(s.seed, "ccnic arrivals", queue.to_u64())),
    };
    // Queue pairs take turns within a gap.
    Demand::open(arrivals, queue.to_f64() / queues.to_f64() / rate)
}
