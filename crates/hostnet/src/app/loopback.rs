//! Sends packets that it writes, and reads what comes back (CC-NIC, section 5.1). The threads of `stack/ccnic` do the work.

use super::{Application, Site, Work};
use crate::kernel::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of a packet the host touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Touched {
    /// Every line.
    #[default]
    Payload,
    /// The first line.
    Header,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopbackSpec {
    /// Size of a packet.
    pub bytes: Size,
    /// What of it the host writes and reads.
    #[serde(default)]
    pub touch: Touched,
}

#[derive(Clone)]
pub struct Loopback;

impl Application for Loopback {
    type Spec = LoopbackSpec;
    const WORK: Work = Work::Own;

    fn check(s: &LoopbackSpec, _cores: u32) -> Result<(), String> {
        if (1..=32_768).contains(&s.bytes.0) {
            return Ok(());
        }
        Err(format!("bytes = \"{}\" is not within 1 B to 32 KiB", s.bytes))
    }

    fn build(_: &LoopbackSpec, _packet: u32, _site: Site) -> Result<Loopback, String> {
        Ok(Loopback)
    }
}
