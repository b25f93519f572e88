//! Receiver of a long TCP flow (iperf3), which calls `recv` repeatedly with one buffer and ignores the content.
//! `stack::tcp` is the kernel's path that copies into the buffer.

use super::{AppBuildContext, Application, WorkSource};
use crate::kernel::units::Size;
use crate::kernel::LineAddr;
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the receiver of long TCP flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpReceiveSpec {
    /// Bytes that a `recv` asks for, which is also the size of each core's buffer. The default is 128 KiB.
    #[serde(default = "read")]
    pub read: Size,
    /// Instructions between two buffers: iperf3 calls `select`. The default, 3300, takes half a microsecond on a core
    /// of 3.3 GHz with two instructions per cycle, as lmbench measures for a few TCP sockets.
    #[serde(default = "gap_instructions")]
    pub gap_instructions: u32,
}
fn read() -> Size {
    Size(128 << 10)
}
fn gap_instructions() -> u32 {
    3300
}

impl TcpReceiveSpec {
    /// Checks the buffer's size and the number of flows.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self, cores: u32) -> Result<(), String> {
        if self.read.0 == 0 || self.read.0 % LINE != 0 || self.read.0 > 1 << 30 {
            return Err(format!("read = \"{}\" is not a multiple of 64 B up to 1 GiB", self.read));
        }
        if cores > 64 {
            return Err(format!("{cores} cores are more than the 64 flows supported"));
        }
        Ok(())
    }
}

/// Receiver of long TCP flows, one on each core.
#[derive(Clone)]
pub struct TcpReceive {
    buffers: Vec<LineAddr>,
    lines: u64,
    /// Instructions of the application between two calls of `recv`.
    pub gap_instructions: u32,
}

impl Application for TcpReceive {
    type Spec = TcpReceiveSpec;
    const WORK: WorkSource = WorkSource::Kernel;

    fn check(s: &TcpReceiveSpec, cores: u32) -> Result<(), String> {
        s.check(cores)
    }

    fn build(s: &TcpReceiveSpec, _packet: u32, mut context: AppBuildContext) -> Result<TcpReceive, String> {
        let lines = s.read.0 / LINE;
        Ok(TcpReceive { buffers: context.per_core(lines), lines, gap_instructions: s.gap_instructions })
    }
}

impl TcpReceive {
    /// First line and number of lines of the buffer of core number `core`.
    pub fn buffer(&self, core: usize) -> (LineAddr, u64) {
        (self.buffers[core], self.lines)
    }
}
