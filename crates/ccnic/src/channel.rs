//! The Unix socket over which a host process hands its region to a NIC process. The open
//! connection then stands for the peer's life: the kernel closes it when the process dies.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    recv, recvmsg, sendmsg, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::error::Error;
use crate::handshake::{self, Features, Hello};
use crate::raw::Region;

/// Time for a whole handshake, whatever the other side does meanwhile.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Most descriptors beside a message: the region's, and one socket for each of 64 queue pairs.
pub(crate) const MOST_FDS: usize = 65;

/// Waits until `stream` can be read, or the deadline is over.
fn readable(stream: &impl AsFd, deadline: Instant) -> Result<(), Error> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Peer(format!("the other side did not answer within {} s", PATIENCE.as_secs())));
        }
        let mut fds = [PollFd::new(stream, PollFlags::IN)];
        let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut fds, Some(&limit)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Connects, also to a server whose queue of connections is full for the moment.
fn dial(path: &Path, deadline: Instant) -> Result<UnixStream, Error> {
    let refused = |e: Errno| {
        let why = std::io::Error::from(e);
        let text = if e == Errno::ACCESS {
            let uid = rustix::process::geteuid().as_raw();
            format!(
                "user {uid} may not connect to socket {}: {why}; start its NIC with --allow-user {uid}, and let this user search its directory",
                path.display()
            )
        } else {
            format!("no NIC answers on socket {}: {why}", path.display())
        };
        Error::Io(std::io::Error::new(why.kind(), text))
    };
    let address = SocketAddrUnix::new(path).map_err(refused)?;
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&fd, &address) {
            Ok(()) => return Ok(fd.into()),
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(refused(e)),
        }
    }
}

/// Sends a message without waiting or fails: a message is shorter than any socket's buffer.
pub(crate) fn send_all(stream: &UnixStream, message: &[u8], fds: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), Error> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = sendmsg(stream, &[IoSlice::new(message)], &mut ancillary, flags)?;
    if sent == message.len() {
        Ok(())
    } else {
        Err(Error::Peer("the connection does not take a whole message".into()))
    }
}

/// Reads one message, and the descriptors beside it, as far as they have arrived; true when it is complete.
pub(crate) fn receive_some(stream: &UnixStream, message: &mut Vec<u8>, fds: &mut Vec<OwnedFd>) -> Result<bool, Error> {
    loop {
        let want = match handshake::expected(message)? {
            Some(n) if n == message.len() => return Ok(true),
            Some(n) => n,
            None => 12,
        };
        let mut bytes = [0u8; handshake::LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let room = &mut bytes[..want - message.len()];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = match recvmsg(stream, &mut [IoSliceMut::new(room)], &mut ancillary, flags) {
            Ok(got) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        for m in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = m {
                fds.extend(more);
            }
        }
        if got.bytes == 0 {
            return Err(Error::Peer("the connection was closed in the middle of a message".into()));
        }
        if fds.len() > MOST_FDS {
            return Err(Error::Peer(format!("the message brings more than {MOST_FDS} descriptors")));
        }
        message.extend_from_slice(&bytes[..got.bytes]);
    }
}

/// Host: connects to `path` and hands over the region and the NIC's ends of the bells.
pub(crate) fn offer(
    path: &Path,
    region: &Region,
    hello: &Hello,
    bells: Vec<OwnedFd>,
) -> Result<(UnixStream, Features), Error> {
    let Some(fd) = region.fd() else {
        return Err(Error::Usage("a private port cannot be handed to another process"));
    };
    let deadline = Instant::now() + PATIENCE;
    let stream = dial(path, deadline)?;
    let mut fds = vec![fd];
    fds.extend(bells.iter().map(AsFd::as_fd));
    let sent = send_all(&stream, &hello.to_bytes(), &fds);
    if !matches!(&sent, Err(Error::Io(e)) if e.kind() == std::io::ErrorKind::BrokenPipe) {
        sent?;
    } // else the NIC refused before it was asked, and its answer says why
    let (mut message, mut none) = (Vec::new(), Vec::new());
    loop {
        readable(&stream, deadline)?;
        if receive_some(&stream, &mut message, &mut none)? {
            let features = handshake::read_answer(&message, hello.features)?;
            return Ok((stream, features));
        }
    }
}

/// Asks the NIC that listens on `path` for its counters.
pub fn read_stats(path: impl AsRef<Path>) -> Result<String, Error> {
    let deadline = Instant::now() + PATIENCE;
    let stream = dial(path.as_ref(), deadline)?;
    send_all(&stream, &handshake::stats_request(), &[])?;
    let mut text = Vec::new();
    loop {
        readable(&stream, deadline)?;
        let mut bytes = [0u8; 4096];
        match recv(&stream, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok((_, n)) => text.extend_from_slice(&bytes[..n]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        if text.len() > 1 << 20 {
            return Err(Error::Peer("the NIC's counters have no end".into()));
        }
    }
}

/// True until the other end closes or its process dies.
pub(crate) fn is_open(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => !fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR),
        Err(e) => e == Errno::INTR,
    }
}
