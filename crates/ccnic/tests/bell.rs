//! Why a wake-up goes over a socket: what a hostile peer can do to an eventfd that it shares, and
//! cannot do to a socket.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

use rustix::event::{eventfd, EventfdFlags};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use rustix::io::{pwritev2, read, write, Errno, ReadWriteFlags};
use rustix::net::{
    recvmsg, send, sendmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Longer than a wake-up takes on a loaded machine.
const LONG: Duration = Duration::from_millis(500);

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("two sockets")
}

/// What another process has of a descriptor after a handshake: its own, of the same open file.
fn handed_over(fd: &OwnedFd) -> OwnedFd {
    let (from, to) = pair();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut out = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    assert!(out.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(&from, &[IoSlice::new(b"x")], &mut out, SendFlags::empty()).expect("room");
    let (mut space, mut byte) = ([MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))], [0]);
    let mut received = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&to, &mut [IoSliceMut::new(&mut byte)], &mut received, RecvFlags::CMSG_CLOEXEC).expect("sent");
    let fds = received.drain().find_map(|m| match m {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    fds.expect("one descriptor")
}

#[test]
fn a_peer_makes_the_writer_of_a_shared_eventfd_hang() {
    let ours = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).expect("an eventfd");
    let theirs = handed_over(&ours);
    // The flag belongs to the open file, which both have.
    fcntl_setfl(&theirs, fcntl_getfl(&theirs).expect("open") - OFlags::NONBLOCK).expect("open");
    assert!(!fcntl_getfl(&ours).expect("open").contains(OFlags::NONBLOCK));
    // So does the count: 2^64 - 2 is the highest, and one more waits.
    write(&theirs, &(u64::MAX - 1).to_ne_bytes()).expect("not full yet");
    // There is no way to ask for this one write not to wait.
    let one = 1u64.to_ne_bytes();
    let asked = pwritev2(&ours, &[IoSlice::new(&one)], u64::MAX, ReadWriteFlags::from_bits_retain(8));
    assert_eq!(asked, Err(Errno::OPNOTSUPP), "RWF_NOWAIT");
    std::thread::scope(|s| {
        let (done, ended) = channel();
        let ours = &ours;
        s.spawn(move || done.send(write(ours, &one)));
        assert_eq!(ended.recv_timeout(LONG), Err(RecvTimeoutError::Timeout), "the wake-up should hang");
        // Only who reads the count sets the writer free.
        read(&theirs, &mut [0u8; 8]).expect("full");
        assert_eq!(ended.recv_timeout(Duration::from_secs(10)), Ok(Ok(8)));
    });
}

#[test]
fn a_peer_that_reads_nothing_cannot_make_the_writer_of_a_socket_hang() {
    let (ours, end) = pair();
    let theirs = handed_over(&end);
    drop(end);
    let wake = || send(&ours, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    // The ends are two open files: the peer's flags are not ours, and ours do not matter.
    fcntl_setfl(&theirs, OFlags::NONBLOCK).expect("open");
    assert!(!fcntl_getfl(&ours).expect("open").contains(OFlags::NONBLOCK));
    let full = (0..1 << 20).map(|_| wake()).find(Result::is_err);
    assert_eq!(full, Some(Err(Errno::AGAIN)));
    // A peer that is gone is an error value, too.
    drop(theirs);
    assert!(matches!(wake(), Err(Errno::PIPE | Errno::CONNRESET)));
}
