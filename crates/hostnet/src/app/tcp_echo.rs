//! An RPC server over TCP as a service (TAS, EuroSys 2019), which returns each request to its client (CC-NIC, section
//! 5.7).
//!
//! The tenant's last core runs the application, and the other cores run TAS's fast path. The module `stack/tas`
//! contains their threads.

use super::{AppBuildContext, Application, Content};
use crate::kernel::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes before the data of a segment: Ethernet, IP, TCP and its timestamp option.
pub const HEADERS: u64 = 14 + 20 + 20 + 12;
/// Bytes of data that a segment holds (artifact: `TCP_MSS`).
pub const MSS: u64 = 1448;
/// Bytes of a flow's receive and transmit buffer (artifact: defaults of `tcp-rxbuf-len` and `tcp-txbuf-len`).
pub const SOCKET_BUFFER: u64 = 8192;
/// Largest number of threads of the fast path (artifact: `FLEXNIC_PL_APPST_CTX_MCS`).
pub const CONTEXTS: u32 = 16;

/// Interface through which an application uses TAS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// Sockets: `epoll_wait`, then for each socket with an RPC a `read` and a `write` of one RPC.
    #[default]
    Sockets,
    /// TAS's own low-level interface: a poll returns events, and the application copies all complete RPCs of an event
    /// from the receive buffer to the transmit buffer.
    LowLevel,
}

/// Instructions of the application's thread, including those of libTAS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallCosts {
    /// Instructions of a poll.
    pub poll: u32,
    /// Number of instructions for each context queue that the poll visits.
    pub queue: u32,
    /// Instructions of an event.
    pub event: u32,
    /// Number of instructions of an RPC.
    pub rpc: u32,
    /// Instructions of an entry that only announces an acknowledgement.
    pub acknowledged: u32,
}

impl Calls {
    /// Instructions counted in TAS's libraries (d3926ba, gcc -O3, x86-64-v3), in a harness that simulates the fast
    /// path.
    pub const fn costs(self) -> CallCosts {
        match self {
            Calls::Sockets => CallCosts { poll: 2889, queue: 56, event: 445, rpc: 214 + 262, acknowledged: 180 },
            Calls::LowLevel => CallCosts { poll: 244, queue: 56, event: 330 + 40, rpc: 111, acknowledged: 180 },
        }
    }
}

/// Parameters of the RPC server over TCP as a service.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpEchoSpec {
    /// Bytes of a request and of its reply (1 to 1448).
    pub rpc: Size,
    /// Number of TCP connections. RSS spreads them over the queues of the NIC.
    pub flows: u32,
    /// Number of requests that a connection has outstanding at any time. The default, 64, is the value of TAS's own
    /// client.
    #[serde(default = "pipelined")]
    pub pipelined: u32,
    /// Interface through which the application uses TAS: "sockets" (the default) or "low_level".
    #[serde(default)]
    pub calls: Calls,
    /// Instructions of the fast path.
    #[serde(default)]
    pub quirks: FastPathCosts,
}
fn pipelined() -> u32 {
    64
}

/// Instructions of TAS's fast path in addition to those of the NIC's driver. The defaults were counted in TAS (d3926ba,
/// gcc -O3, x86-64-v3), in a harness that simulates NIC and application, as the difference between bursts of one and of
/// sixteen packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FastPathCosts {
    /// Instructions of a turn in which the thread finds no work: NIC, queue manager, sixteen contexts, slow path. The
    /// default is 2004.
    pub turn: u32,
    /// Fixed instructions of a received burst. The default is 101.
    pub burst: u32,
    /// Instructions per segment with data: look-up, parsing, flow state, entry for the application, acknowledgement.
    /// The default is 654.
    pub data: u32,
    /// Instructions per segment without data, which only acknowledges. The default is 422.
    pub acknowledgement: u32,
    /// Instructions per entry of the application: flow state, and the flow's place in the queue manager, which limits
    /// the rate of flows (TAS's default). The default is 501.
    pub entry: u32,
    /// Instructions per sent segment. The default is 375.
    pub segment: u32,
}

impl Default for FastPathCosts {
    fn default() -> FastPathCosts {
        FastPathCosts { turn: 2004, burst: 101, data: 654, acknowledgement: 422, entry: 501, segment: 375 }
    }
}

/// RPC server over TCP as a service.
#[derive(Clone)]
pub struct TcpEcho;

impl Application for TcpEcho {
    type Spec = TcpEchoSpec;

    fn check(s: &TcpEchoSpec, cores: u32) -> Result<(), String> {
        let fast = cores.saturating_sub(1);
        if !(1..=CONTEXTS).contains(&fast) {
            return Err(format!(
                "{cores} cores are {fast} threads of the fast path and one of the application; TAS has 1 to {CONTEXTS} of the fast path"
            ));
        }
        if !(1..=1 << 16).contains(&s.flows) {
            return Err(format!("flows = {} is not within 1 to 65536", s.flows));
        }
        if !(1..=MSS).contains(&s.rpc.0) {
            return Err(format!("rpc = \"{}\" is not within 1 B to {MSS} B, the data of a segment", s.rpc));
        }
        let most = SOCKET_BUFFER / s.rpc.0;
        if !(1..=most).contains(&u64::from(s.pipelined)) {
            return Err(format!(
                "pipelined = {} is not within 1 to {most}, the RPCs of {} that a buffer of {SOCKET_BUFFER} B holds",
                s.pipelined, s.rpc
            ));
        }
        Ok(())
    }

    fn largest(_: &TcpEchoSpec, _drawn: Option<Size>) -> Option<Size> {
        Some(Size(HEADERS + MSS))
    }

    fn build(_: &TcpEchoSpec, _packet: u32, _context: AppBuildContext) -> Result<TcpEcho, String> {
        Ok(TcpEcho)
    }

    fn content(&mut self, _core: usize, _rng: &mut crate::kernel::RandomStream) -> Content {
        unreachable!("the client of TAS makes segments")
    }
}
