//! The clients of TAS: each connection always has the same number of requests outstanding, and the clients run the TCP
//! of TAS. Clients take no simulated time.

use super::MSS;
use crate::app::tcp_echo::TcpEchoSpec;
use crate::kernel::{Int, Time};
use std::collections::VecDeque;

/// A segment of a flow. A segment without bytes is an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TasSegment {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the first byte within its direction of the flow.
    pub at: u64,
    /// Number of bytes of data; 0 for an acknowledgement.
    pub bytes: u64,
}

impl TasSegment {
    /// Packet key that encodes the segment: 12 bits hold the bytes of any segment.
    pub fn key(self) -> u64 {
        self.at << 12 | self.bytes
    }
    /// The segment of flow `flow` that the packet key `key` encodes.
    pub fn of(flow: u32, key: u64) -> TasSegment {
        TasSegment { flow, at: key >> 12, bytes: key & 0xfff }
    }
}

/// State of one connection at its client; byte counts begin with the first byte.
#[derive(Clone, Default)]
struct Connection {
    asked: u64,
    sent: u64,
    back: u64,
    /// Number of reply bytes that the server has sent.
    replied: u64,
    /// Times of the requests without a reply.
    made: VecDeque<Time>,
}

/// Clients of TAS, which send requests and receive replies.
#[derive(Clone)]
pub struct TasClient {
    rpc: u64,
    pipelined: u32,
    connections: Vec<Connection>,
    /// Segments that are to be sent.
    ready: VecDeque<TasSegment>,
    /// Segments of the server in flight.
    coming: VecDeque<TasSegment>,
    /// Number of requests made since the beginning.
    pub requests: u64,
    /// Number of requests answered since the beginning.
    pub replies: u64,
}

impl TasClient {
    /// The clients of the server that `s` describes.
    pub fn new(s: &TcpEchoSpec) -> TasClient {
        TasClient {
            rpc: s.rpc.0,
            pipelined: s.pipelined,
            connections: vec![Connection::default(); s.flows.to_usize()],
            ready: VecDeque::new(),
            coming: VecDeque::new(),
            requests: 0,
            replies: 0,
        }
    }

    /// Makes the first requests of all connections; returns the number of segments that are ready.
    pub fn begin(&mut self, now: Time) -> usize {
        (0..self.connections.len().to_u32()).for_each(|flow| self.make_requests(flow, self.pipelined.into(), now));
        self.ready.len()
    }

    /// Takes the next segment to be sent.
    pub fn take(&mut self) -> Option<TasSegment> {
        self.ready.pop_front()
    }

    /// Makes `n` requests of a connection; unsent bytes are combined into as few segments as can hold them.
    fn make_requests(&mut self, flow: u32, n: u64, now: Time) {
        let c = &mut self.connections[flow.to_usize()];
        c.made.extend((0..n).map(|_| now));
        c.asked += n * self.rpc;
        self.requests += n;
        while c.sent < c.asked {
            let bytes = (c.asked - c.sent).min(MSS);
            self.ready.push_back(TasSegment { flow, at: c.sent, bytes });
            c.sent += bytes;
        }
    }

    /// Records a data segment that the server has sent; returns the times of the requests whose replies the segment
    /// completes.
    pub fn on_segment_sent(&mut self, s: TasSegment) -> Vec<Time> {
        let c = &mut self.connections[s.flow.to_usize()];
        let before = c.replied / self.rpc;
        c.replied += s.bytes;
        let n = c.replied / self.rpc - before;
        self.replies += n;
        self.coming.push_back(s);
        c.made.drain(..n.to_usize()).collect()
    }

    /// Delivers the server's oldest segment in flight to its client, which acknowledges it and makes a request for each
    /// reply that is complete. Returns the number of segments that have become ready.
    ///
    /// # Errors
    /// Returns one sentence when the segment's bytes are not the next ones.
    pub fn on_segment_arrival(&mut self, now: Time) -> Result<usize, String> {
        let Some(s) = self.coming.pop_front() else { return Ok(0) };
        let c = &mut self.connections[s.flow.to_usize()];
        if s.at != c.back {
            return Err(format!("flow {}: byte {} came where byte {} was next", s.flow, s.at, c.back));
        }
        let before = c.back / self.rpc;
        c.back += s.bytes;
        let n = c.back / self.rpc - before;
        let waiting = self.ready.len();
        self.ready.push_back(TasSegment { bytes: 0, ..s });
        self.make_requests(s.flow, n, now);
        Ok(self.ready.len() - waiting)
    }

    /// Checks the clients' request counts.
    ///
    /// # Errors
    /// Returns one sentence when a connection does not have the right number of outstanding requests.
    pub fn check(&self) -> Result<(), String> {
        for (flow, c) in self.connections.iter().enumerate() {
            // Replies that have been sent and have not arrived have no new request yet.
            let open = c.asked / self.rpc - c.back / self.rpc;
            if c.asked > 0 && open != u64::from(self.pipelined) {
                return Err(format!("flow {flow} has {open} requests without a reply, not {}", self.pipelined));
            }
        }
        let open: usize = self.connections.iter().map(|c| c.made.len()).sum();
        if self.requests != self.replies + open.to_u64() {
            return Err(format!("{} requests are not {} replies and {open} without one", self.requests, self.replies));
        }
        Ok(())
    }
}
