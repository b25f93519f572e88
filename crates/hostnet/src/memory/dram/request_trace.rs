//! Traces of the requests to DRAM, in formats that other simulators read.

use crate::kernel::{LineAddr, Time};
use crate::memory::LINE;
use std::io::{self, Write};

/// Format of a trace of requests to DRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestTraceFormat {
    /// One line for each request: `LD` or `ST`, and the address (Ramulator 2, frontend `LoadStoreTrace`).
    Ramulator2,
    /// One line for each request: the address, `READ` or `WRITE`, and the cycle of the DRAM clock (DRAMsim3, trace CPU).
    Dramsim3,
}

impl RequestTraceFormat {
    /// Names of the formats in commands, with the formats.
    pub const NAMES: [(&'static str, RequestTraceFormat); 2] =
        [("ramulator2", RequestTraceFormat::Ramulator2), ("dramsim3", RequestTraceFormat::Dramsim3)];
}

/// A request that a memory controller has accepted.
#[derive(Clone, Copy, Debug)]
struct TracedRequest {
    at: Time,
    line: LineAddr,
    write: bool,
}

/// Requests that the memory controllers have accepted since the start of a measured window, in order of time.
#[derive(Clone, Debug, Default)]
pub struct RequestTrace {
    /// Clock period of the DRAM.
    clock: Time,
    since: Time,
    requests: Vec<TracedRequest>,
}

impl RequestTrace {
    /// An empty trace of DRAM whose clock period is `clock`.
    pub fn new(clock: Time) -> RequestTrace {
        RequestTrace { clock, ..RequestTrace::default() }
    }

    /// Forgets the requests so far, at the start of a measured window.
    pub fn restart(&mut self, now: Time) {
        self.since = now;
        self.requests.clear();
    }

    /// Keeps a request that a controller accepts at `at`.
    #[cold]
    pub(super) fn keep(&mut self, at: Time, line: LineAddr, write: bool) {
        self.requests.push(TracedRequest { at, line, write });
    }

    /// Writes the requests of the first `window` of time. Cycles count from the start of the window.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn write(&self, out: &mut dyn Write, format: RequestTraceFormat, window: Time) -> io::Result<()> {
        for r in self.requests.iter().take_while(|r| r.at < self.since + window) {
            let address = r.line.0 * LINE;
            match format {
                RequestTraceFormat::Ramulator2 => {
                    writeln!(out, "{} {address:#x}", if r.write { "ST" } else { "LD" })?;
                }
                RequestTraceFormat::Dramsim3 => {
                    let (what, cycle) = (if r.write { "WRITE" } else { "READ" }, (r.at - self.since).0 / self.clock.0);
                    writeln!(out, "{address:#x} {what} {cycle}")?;
                }
            }
        }
        Ok(())
    }
}
