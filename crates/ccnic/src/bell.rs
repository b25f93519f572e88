//! Wake-ups between the two sides in event mode: each queue pair has a pair of connected sockets.
//!
//! *Choice*: not an eventfd. A peer shares the eventfd's flags and count: it can make the
//! descriptor blocking, fill it, and so stop the thread that wants to wake it. A socket is told
//! per call not to block, and reports the death of the other end.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::{recv, send, socketpair, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::error::Error;

/// Longest sleep before a polling loop looks around: at stop flags, and in case a peer does not wake it.
pub(crate) const NAP: Duration = Duration::from_millis(100);

/// Ends of the socket pairs on one side, by queue.
pub(crate) struct Bells(Vec<Mutex<Option<Arc<OwnedFd>>>>);

impl Bells {
    pub fn new(queues: u32) -> Bells {
        Bells((0..queues).map(|_| Mutex::new(None)).collect())
    }

    /// Creates a socket pair for each queue, keeps one end of each, and returns the other ends.
    pub fn cast(&self) -> Result<Vec<OwnedFd>, Error> {
        self.0
            .iter()
            .map(|place| {
                let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ours));
                Ok(theirs)
            })
            .collect()
    }

    /// Takes over the socket ends that were received from the other side.
    pub fn hang(&self, ends: Vec<OwnedFd>) {
        for (place, end) in self.0.iter().zip(ends) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(end));
        }
    }

    pub fn get(&self, queue: usize) -> Option<Arc<OwnedFd>> {
        self.0[queue].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wakes the other side without ever blocking; a full socket means that the other side is awake or about to be.
    #[cold]
    pub fn ring(&self, queue: usize) {
        if let Some(end) = self.get(queue) {
            let _ = send(&*end, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

/// Sleeps until one of the descriptors is readable or its other end is gone, at most `most`.
pub(crate) fn sleep(ends: &[impl std::os::fd::AsFd], most: Duration) -> Result<(), Error> {
    let mut fds: Vec<PollFd<'_>> = ends.iter().map(|e| PollFd::new(e, PollFlags::IN | PollFlags::RDHUP)).collect();
    let limit = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
    match poll(&mut fds, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Reads the wake-ups that have arrived, so that the next sleep does not end immediately.
pub(crate) fn hush(end: &OwnedFd) {
    let mut bytes = [0u8; 64];
    let _ = recv(end, &mut bytes, RecvFlags::DONTWAIT);
}
