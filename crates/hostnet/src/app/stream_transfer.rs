//! Streams from writers to readers, in pairs (CC-NIC, section 3.3). `stack/transfer.rs` does the work.

use super::{AppBuildContext, Application, WorkSource};
use crate::kernel::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of stores that write the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// Ordinary stores; the buffer is in the writer's memory.
    #[default]
    Cached,
    /// Stores that bypass the caches; the buffer is in the reader's memory.
    Nontemporal,
    /// No stores: the tenant's threads read the other node's memory as fast as possible.
    None,
}

/// Parameters of the streams from writers to readers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamTransferSpec {
    /// Kind of stores that write the buffer: "cached" (the default), "nontemporal" or "none".
    #[serde(default)]
    pub stores: Written,
    /// Number of bytes that a writer writes before it notifies the reader: whole lines, at least 4 KiB. The default is
    /// 1 MiB.
    #[serde(default = "chunk")]
    pub chunk: Size,
    /// Size of a pair's buffer, which is contiguous in physical memory: whole chunks. The default is 4 MiB. With `stores = "none"` the default is 256 MiB,
    /// which exceeds all caches.
    #[serde(default)]
    pub buffer: Option<Size>,
    /// Node of the readers, or of the memory that is read with `stores = "none"`. The default is 0.
    #[serde(default)]
    pub peer_node: u8,
}
fn chunk() -> Size {
    Size(1 << 20)
}

impl StreamTransferSpec {
    /// Size of a pair's buffer.
    pub fn size(&self) -> Size {
        self.buffer.unwrap_or(Size(if self.stores == Written::None { 256 << 20 } else { 4 << 20 }))
    }
}

/// Application whose threads stream data from writers to readers, in pairs.
#[derive(Clone)]
pub struct StreamTransfer;

impl Application for StreamTransfer {
    type Spec = StreamTransferSpec;
    const WORK: WorkSource = WorkSource::Own;

    fn check(s: &StreamTransferSpec, _cores: u32) -> Result<(), String> {
        if s.chunk.0 < 4096 || s.chunk.0 % 64 != 0 {
            return Err(format!("chunk = \"{}\" is not whole lines of 64 B, at least 4 KiB of them", s.chunk));
        }
        let size = s.size();
        if size.0 < s.chunk.0 || size.0 % s.chunk.0 != 0 || size.0 > 1 << 30 {
            return Err(format!("buffer = \"{size}\" is not whole chunks of \"{}\", up to 1 GiB", s.chunk));
        }
        Ok(())
    }

    fn build(_: &StreamTransferSpec, _packet: u32, _context: AppBuildContext) -> Result<StreamTransfer, String> {
        Ok(StreamTransfer)
    }
}
