//! The clients: each connection always has so many requests without a reply, and their TCP is TAS's, too. They cost no time.

use super::MSS;
use crate::app::tcp_echo::TcpEchoSpec;
use crate::kernel::{Int, Time};
use std::collections::VecDeque;

/// A segment: bytes from the `at`-th one of its direction on. One without bytes acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    pub flow: u32,
    pub at: u64,
    pub bytes: u64,
}

impl Segment {
    /// As a packet's key has it: 12 bits hold the bytes of any segment.
    pub fn key(self) -> u64 {
        self.at << 12 | self.bytes
    }
    pub fn of(flow: u32, key: u64) -> Segment {
        Segment { flow, at: key >> 12, bytes: key & 0xfff }
    }
}

/// One connection as its client has it, in bytes from the first one.
#[derive(Clone, Default)]
struct Connection {
    asked: u64,
    sent: u64,
    back: u64,
    /// Bytes of replies that the server has sent, and when the requests were made that have none.
    replied: u64,
    made: VecDeque<Time>,
}

#[derive(Clone)]
pub struct Client {
    rpc: u64,
    pipelined: u32,
    connections: Vec<Connection>,
    /// Segments that are to be sent, and those of the server that are on their way.
    ready: VecDeque<Segment>,
    coming: VecDeque<Segment>,
    /// Requests made, and answered, since the beginning.
    pub requests: u64,
    pub replies: u64,
}

impl Client {
    pub fn new(s: &TcpEchoSpec) -> Client {
        Client {
            rpc: s.rpc.0,
            pipelined: s.pipelined,
            connections: vec![Connection::default(); s.flows.to_usize()],
            ready: VecDeque::new(),
            coming: VecDeque::new(),
            requests: 0,
            replies: 0,
        }
    }

    /// All connections make their first requests; returns how many segments are ready.
    pub fn begin(&mut self, now: Time) -> usize {
        (0..self.connections.len().to_u32()).for_each(|flow| self.ask(flow, self.pipelined.into(), now));
        self.ready.len()
    }

    /// The next segment to be sent.
    pub fn take(&mut self) -> Option<Segment> {
        self.ready.pop_front()
    }

    /// `n` requests of a connection: what waits goes in as few segments as hold it.
    fn ask(&mut self, flow: u32, n: u64, now: Time) {
        let c = &mut self.connections[flow.to_usize()];
        c.made.extend((0..n).map(|_| now));
        c.asked += n * self.rpc;
        self.requests += n;
        while c.sent < c.asked {
            let bytes = (c.asked - c.sent).min(MSS);
            self.ready.push_back(Segment { flow, at: c.sent, bytes });
            c.sent += bytes;
        }
    }

    /// The server has sent a segment with data; returns when the requests were made that it ends the replies of.
    pub fn leaves(&mut self, s: Segment) -> Vec<Time> {
        let c = &mut self.connections[s.flow.to_usize()];
        let before = c.replied / self.rpc;
        c.replied += s.bytes;
        let n = c.replied / self.rpc - before;
        self.replies += n;
        self.coming.push_back(s);
        c.made.drain(..n.to_usize()).collect()
    }

    /// The oldest of these is back: it is acknowledged, and a request follows each reply that is whole. Returns how many segments
    /// are ready for it.
    ///
    /// # Errors
    /// One sentence when its bytes are not those that come next.
    pub fn back(&mut self, now: Time) -> Result<usize, String> {
        let Some(s) = self.coming.pop_front() else { return Ok(0) };
        let c = &mut self.connections[s.flow.to_usize()];
        if s.at != c.back {
            return Err(format!("flow {}: byte {} came where byte {} was next", s.flow, s.at, c.back));
        }
        let before = c.back / self.rpc;
        c.back += s.bytes;
        let n = c.back / self.rpc - before;
        let waiting = self.ready.len();
        self.ready.push_back(Segment { bytes: 0, ..s });
        self.ask(s.flow, n, now);
        Ok(self.ready.len() - waiting)
    }

    /// # Errors
    /// One sentence when a connection has not as many requests without a reply as it should.
    pub fn check(&self) -> Result<(), String> {
        for (flow, c) in self.connections.iter().enumerate() {
            // Replies that have been sent and are not back have no request after them yet.
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
