//! Errors between two sides that do not trust each other.

use std::fmt;
use std::io;

/// Something the peer wrote that an honest peer never writes. The queue that met it stops
/// until the host resets the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// A signal word is neither free nor ready.
    Signal = 1,
    /// A head or tail register moved backwards or past the ring.
    Index = 2,
    /// An address is not inside a buffer.
    Address = 3,
    /// A length is zero or runs over the end of its buffer.
    Length = 4,
    /// A multi-segment packet has no end or crosses a line.
    Chain = 5,
    /// A buffer was handed over that this side already owns.
    Owner = 6,
    /// The other side reported a fault of its own.
    Peer = 7,
    /// An offload header leads outside its packet.
    Offload = 8,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Signal => "a ring signal is neither free nor ready",
            Fault::Index => "a ring register is outside the ring",
            Fault::Address => "a descriptor address is not inside a buffer",
            Fault::Length => "a descriptor length does not fit its buffer",
            Fault::Chain => "a multi-segment packet has no end",
            Fault::Owner => "a buffer was handed over twice",
            Fault::Peer => "the other side reported a fault",
            Fault::Offload => "an offload header leads outside its packet",
        })
    }
}

/// Errors of the control plane and of the burst calls.
#[derive(Debug)]
pub enum Error {
    /// A configuration value cannot work; the sentence names it and a valid choice.
    Config(String),
    /// The shared memory is corrupt; call `recover` on the host port.
    Fault(Fault),
    /// The caller broke the call's contract (for instance freed a buffer twice).
    Usage(&'static str),
    /// The peer did not answer, closed the connection or refused.
    Peer(String),
    /// The operating system refused.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(why) | Error::Peer(why) => f.write_str(why),
            Error::Fault(fault) => write!(f, "{fault}"),
            Error::Usage(why) => f.write_str(why),
            Error::Io(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::Io(e)
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(e: rustix::io::Errno) -> Self {
        Error::Io(e.into())
    }
}

impl From<Fault> for Error {
    fn from(e: Fault) -> Self {
        Error::Fault(e)
    }
}
