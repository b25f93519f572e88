//! Handing the region from the host process to the NIC process over a Unix socket.
//!
//! The host sends one message, the configuration and the memfd, and the NIC answers with one
//! byte (zero: accepted) and, if it refuses, a sentence. The open connection then stands for
//! the peer's life: the kernel closes it when the process dies.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::config::Config;
use crate::error::Error;
use crate::layout::RegionLayout;
use crate::nic::NicPort;
use crate::raw::Region;

const HELLO: u32 = 0x3143_4343;
const BYTES: usize = 4 * (Config::WORDS + 1);
const PATIENCE: Duration = Duration::from_secs(5);

/// Host: connects to `path` and hands over the region.
pub(crate) fn offer(path: &Path, region: &Region, config: &Config) -> Result<UnixStream, Error> {
    let Some(fd) = region.fd() else {
        return Err(Error::Usage("a private port cannot be handed to another process"));
    };
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut message = Vec::with_capacity(BYTES);
    message.extend_from_slice(&HELLO.to_le_bytes());
    config.to_words().iter().for_each(|w| message.extend_from_slice(&w.to_le_bytes()));
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(&stream, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer[0] != 0 {
        let mut why = String::new();
        stream.take(512).read_to_string(&mut why)?;
        return Err(Error::Peer(format!("the NIC refused the port: {why}")));
    }
    Ok(stream)
}

/// True until the other end closes or its process dies.
pub(crate) fn is_open(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => !fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR),
        Err(e) => e == rustix::io::Errno::INTR,
    }
}

/// A NIC process waiting for hosts, one after another.
pub struct NicServer {
    listener: UnixListener,
    path: PathBuf,
}

impl NicServer {
    /// Listens on `path`, replacing a socket that a dead process left there.
    pub fn bind(path: impl AsRef<Path>) -> Result<NicServer, Error> {
        let path = path.as_ref().to_path_buf();
        if UnixStream::connect(&path).is_ok() {
            return Err(Error::Config(format!(
                "socket {} is in use by another NIC; choose another path",
                path.display()
            )));
        }
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .map_err(|e| Error::Config(format!("socket {} cannot be created: {e}", path.display())))?;
        Ok(NicServer { listener, path })
    }

    /// Waits for the next host and maps its region. A host that sends nonsense is refused
    /// and reported as an error; the server can accept again.
    pub fn accept(&self) -> Result<NicPort, Error> {
        let (mut stream, _) = self.listener.accept()?;
        match take(&stream) {
            Ok((region, config)) => {
                stream.write_all(&[0])?;
                Ok(NicPort::new(region, config, Some(stream)))
            }
            Err(e) => {
                // The host may be gone already; the refusal is reported here either way.
                let _ = stream.write_all(format!("\u{1}{e}").as_bytes());
                Err(e)
            }
        }
    }
}

impl Drop for NicServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn take(stream: &UnixStream) -> Result<(Region, Config), Error> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut message = [0u8; BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream, &mut [IoSliceMut::new(&mut message)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let fd: Option<OwnedFd> = ancillary.drain().find_map(|m| match m {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let word = |i: usize| u32::from_le_bytes(message[4 * i..4 * i + 4].try_into().expect("four bytes"));
    if got.bytes != BYTES || word(0) != HELLO {
        return Err(Error::Peer("the host's greeting is not one of this library version".into()));
    }
    let fd = fd.ok_or_else(|| Error::Peer("the host sent no region".into()))?;
    let config = Config::from_words(&std::array::from_fn(|i| word(i + 1)))?;
    let bytes = RegionLayout::new(&config).bytes;
    let region = Region::from_fd(fd.as_fd().try_clone_to_owned()?, bytes)?;
    Ok((region, config))
}
