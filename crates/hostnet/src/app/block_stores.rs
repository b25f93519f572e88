//! Application that stores whole lines, block by block, with a fence after each block (CC-NIC, section 2.2 and Fig. 2).

use super::{AppBuildContext, Application, WorkSource};
use crate::core::{Mapped, Op, Program};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory that a block is stored to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoredTo {
    /// Memory of the device on the first port, mapped write-combining.
    WcDevice,
    /// The machine's own memory, mapped write-combining.
    WcMemory,
    /// The machine's own memory, with ordinary stores.
    WbMemory,
}

/// Parameters of the application that stores blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockStoresSpec {
    /// Memory that a block is stored to.
    pub target: StoredTo,
    /// Bytes that are stored between two fences: whole lines of 64 B, up to 64 KiB.
    pub block: Size,
    /// Size of the buffer that a core writes repeatedly: whole blocks, up to 1 GiB. The default is 128 KiB.
    #[serde(default = "buffer")]
    pub buffer: Size,
    /// Instructions per line in addition to its store. The default is 4.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn buffer() -> Size {
    Size(128 << 10)
}
fn instructions() -> u32 {
    4
}

/// Largest block in bytes: 1024 lines.
const MOST: u64 = 64 << 10;

/// Application that stores whole lines, block by block.
#[derive(Clone)]
pub struct BlockStores {
    spec: BlockStoresSpec,
    /// First line of each core's buffer, and the offset of the next line.
    cores: Vec<(LineAddr, u64)>,
}

impl Application for BlockStores {
    type Spec = BlockStoresSpec;
    const WORK: WorkSource = WorkSource::Own;

    fn check(s: &BlockStoresSpec, _cores: u32) -> Result<(), String> {
        if s.block.0 == 0 || s.block.0 % LINE != 0 || s.block.0 > MOST {
            return Err(format!("block = \"{}\" is not whole lines of 64 B, up to 64 KiB", s.block));
        }
        if s.buffer.0 == 0 || s.buffer.0 % s.block.0 != 0 || s.buffer.0 > 1 << 30 {
            return Err(format!("buffer = \"{}\" is not whole blocks of \"{}\", up to 1 GiB", s.buffer, s.block));
        }
        Ok(())
    }

    fn build(s: &BlockStoresSpec, _packet: u32, mut context: AppBuildContext) -> Result<BlockStores, String> {
        let cores = context.per_core(s.buffer.0 / LINE).into_iter().map(|base| (base, 0)).collect();
        Ok(BlockStores { spec: s.clone(), cores })
    }

    /// Appends the stores of one block; each line counts as one operation.
    fn free_run(&mut self, core: usize, _: &mut RandomStream, p: &mut Program) -> Option<u32> {
        let (base, at) = &mut self.cores[core];
        let lines = (self.spec.block.0 / LINE).to_u32();
        for line in (*base + *at).span(lines) {
            p.push(match self.spec.target {
                StoredTo::WcDevice => Op::Combine { line, bytes: LINE.to_u8(), to: Mapped::Device },
                StoredTo::WcMemory => Op::Combine { line, bytes: LINE.to_u8(), to: Mapped::Memory },
                StoredTo::WbMemory => Op::Store { line, lines: 1 },
            });
            p.compute(self.spec.instructions);
        }
        p.push(Op::Fence);
        *at = (*at + u64::from(lines)) % (self.spec.buffer.0 / LINE);
        Some(lines)
    }
}
