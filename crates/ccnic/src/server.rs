//! A NIC process's socket: who may connect, and how handshakes proceed side by side.

use std::fs::{File, Permissions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::FlockOperation;

use crate::channel::{receive_some, send_all, MOST_FDS, PATIENCE};
use crate::error::Error;
use crate::handshake::{self, Features, Hello, Request};
use crate::layout::{self, RegionLayout};
use crate::mem::Mem;
use crate::nic::{attach, Link, NicPort};
use crate::raw::Region;

/// Most handshakes under way at the same time; one more pushes the oldest out.
const MOST_PENDING: usize = 64;
/// Most descriptors that unfinished handshakes hold together; one more pushes the oldest holder out. A host sends its message in one
/// piece, so that it holds none while it waits.
const MOST_PARKED: usize = 2 * MOST_FDS;
/// Pause when the process has no descriptor left for another client.
const PAUSE: Duration = Duration::from_millis(100);

/// A NIC process waiting for hosts. Handshakes proceed side by side, so a silent client delays
/// nobody; each has five seconds in all.
pub struct NicServer {
    listener: UnixListener,
    path: PathBuf,
    lock: Lock,
    /// The socket in the file system that this server made, whatever has its name now.
    made: File,
    allowed: Vec<u32>,
    limit: usize,
    features: Features,
    pending: Mutex<Vec<Pending>>,
}

struct Pending {
    stream: UnixStream,
    message: Vec<u8>,
    fds: Vec<OwnedFd>,
    deadline: Instant,
}

/// A client's request, with its connection.
pub enum Caller {
    /// A host to be served: [`Offer::accept`] maps its region.
    Host(Box<Offer>),
    /// A request for the counters.
    Stats(StatsReply),
}

/// A host's offer. Accepting it maps memory, which takes time; do it in the host's own thread.
pub struct Offer {
    stream: UnixStream,
    fds: Vec<OwnedFd>,
    hello: Hello,
    limit: usize,
    features: Features,
}

/// The connection over which a request for counters is answered.
pub struct StatsReply(UnixStream);

impl StatsReply {
    /// Sends the counters, as far as the connection takes them at once.
    pub fn send(self, text: &str) -> Result<(), Error> {
        send_all(&self.0, text.as_bytes(), &[])
    }
}

impl Offer {
    /// The configuration that the host asks for.
    pub fn config(&self) -> &crate::Config {
        &self.hello.config
    }

    /// Maps the region and answers the host, or refuses it and says why.
    pub fn accept(mut self) -> Result<NicPort, Error> {
        match self.map() {
            Ok((region, bells)) => {
                let agreed = self.hello.features.and(self.features);
                send_all(&self.stream, &handshake::answer(Ok(agreed)), &[])?;
                let hello = Hello { features: agreed, ..self.hello };
                let link = Link::socket(self.stream, hello.term);
                Ok(NicPort::new(region, hello, link, bells))
            }
            Err(e) => {
                self.refuse(&e);
                Err(e)
            }
        }
    }

    /// Tells the host why it is not served.
    pub fn refuse(&self, why: &Error) {
        // The host may be gone already; the refusal is reported here either way.
        let _ = send_all(&self.stream, &handshake::answer(Err(&why.to_string())), &[]);
    }

    /// Maps the region and takes it for this NIC.
    fn map(&mut self) -> Result<(Region, Vec<OwnedFd>), Error> {
        let config = &self.hello.config;
        let bells = if self.hello.features.has(Features::EVENT) { config.queues as usize } else { 0 };
        if self.fds.len() != 1 + bells {
            return Err(Error::Peer(format!(
                "the host sent {} descriptors where its configuration needs {}",
                self.fds.len(),
                1 + bells
            )));
        }
        let bytes = RegionLayout::new(config).bytes;
        if bytes > self.limit {
            return Err(Error::Config(format!(
                "the configuration needs a region of {bytes} bytes and the NIC maps at most {}; \
                 lower buffers, or raise ccnic-nic --max-region",
                self.limit
            )));
        }
        let ends = self.fds.split_off(1);
        if let Some(fd) = ends.iter().find(|fd| rustix::net::sockopt::socket_type(fd).is_err()) {
            return Err(Error::Peer(format!("descriptor {fd:?} in a bell's place is not a socket")));
        }
        let fd = self.fds.pop().ok_or_else(|| Error::Peer("the host sent no region".into()))?;
        let region = Region::from_fd(fd, bytes, config.huge)?;
        if region.get(layout::W_MAGIC) != layout::MAGIC {
            return Err(Error::Peer("the region was not made by this version of the library".into()));
        }
        if !attach(&region, &self.hello) {
            return Err(Error::Peer("the host has turned to another NIC meanwhile".into()));
        }
        Ok((region, ends))
    }
}

impl NicServer {
    /// Listens on `path`. A socket that a dead process left there is replaced; anything else
    /// that has this name is left alone and reported.
    pub fn bind(path: impl AsRef<Path>) -> Result<NicServer, Error> {
        let path = path.as_ref().to_path_buf();
        let lock = Lock::take(&path)?;
        let refuse = |why: String| Error::Config(format!("socket {} {why}; choose another path", path.display()));
        match std::fs::symlink_metadata(&path) {
            Ok(m) if !m.file_type().is_socket() => return Err(refuse("would replace a file of another kind".into())),
            Ok(_) if UnixStream::connect(&path).is_ok() => return Err(refuse("is in use by another program".into())),
            Ok(_) => std::fs::remove_file(&path).map_err(|e| refuse(format!("cannot be replaced: {e}")))?,
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(|e| refuse(format!("cannot be created: {e}")))?;
        listener.set_nonblocking(true)?;
        let made = own_socket(&path).map_err(|e| refuse(format!("cannot be used: {e}")))?;
        Ok(NicServer {
            listener,
            made,
            path,
            lock,
            allowed: vec![0, rustix::process::geteuid().as_raw()],
            limit: 1 << 30,
            features: Features::ALL,
            pending: Mutex::new(Vec::new()),
        })
    }

    /// Serves hosts of this user, too, beside the NIC's own and root. Every user may then connect, and those that are not named are
    /// refused in one sentence.
    pub fn allow_user(&mut self, uid: u32) -> Result<(), Error> {
        if self.allowed.contains(&uid) {
            return Ok(());
        }
        self.allowed.push(uid);
        // By the descriptor, because another process may give the name to another file.
        let link = format!("/proc/self/fd/{}", self.made.as_raw_fd());
        std::fs::set_permissions(link, Permissions::from_mode(0o666))
            .map_err(|e| Error::Config(format!("socket {} cannot be opened to user {uid}: {e}", self.path.display())))
    }

    /// Sets the most bytes of a host's region (1 GiB).
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Sets what this NIC can do; all features if it is not called.
    pub fn set_features(&mut self, features: Features) {
        self.features = features.and(Features::ALL);
    }

    /// Waits for the next host and maps its region. A host that sends nonsense is refused
    /// and reported as an error; the server can accept again.
    pub fn accept(&self) -> Result<NicPort, Error> {
        loop {
            match self.next()? {
                Caller::Host(offer) => return offer.accept(),
                Caller::Stats(reply) => reply.send("")?,
            }
        }
    }

    /// Waits for the next caller whose handshake is complete. One that sends nonsense, is not
    /// allowed, or takes too long is reported as an error.
    pub fn next(&self) -> Result<Caller, Error> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            self.wait(&pending)?;
            self.admit(&mut pending)?;
            let now = Instant::now();
            for i in 0..pending.len() {
                let p = &mut pending[i];
                let outcome = receive_some(&p.stream, &mut p.message, &mut p.fds);
                if matches!(outcome, Ok(false)) && p.deadline > now {
                    if parked(&pending) > MOST_PARKED {
                        evict(&mut pending);
                        break;
                    }
                    continue;
                }
                let p = pending.remove(i);
                match outcome {
                    Ok(true) => return self.greet(p),
                    Ok(false) => {
                        return Err(Error::Peer(format!(
                            "a client did not complete its handshake within {} s",
                            PATIENCE.as_secs()
                        )))
                    }
                    // Somebody looked whether the socket is there.
                    Err(_) if p.message.is_empty() => break,
                    Err(e) => {
                        let _ = send_all(&p.stream, &handshake::answer(Err(&e.to_string())), &[]);
                        return Err(e);
                    }
                }
            }
        }
    }

    /// Takes the next client, if there is one.
    fn admit(&self, pending: &mut Vec<Pending>) -> Result<(), Error> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if is_exhausted(&e) => {
                // The listener stays readable, so that waiting for it would not wait.
                if pending.is_empty() {
                    std::thread::sleep(PAUSE);
                } else {
                    turn_away(pending.remove(0));
                }
                return Ok(());
            }
            // The client is gone again, or there was none.
            Err(_) => return Ok(()),
        };
        self.check_user(&stream)?;
        if pending.len() == MOST_PENDING {
            turn_away(pending.remove(0));
        }
        let deadline = Instant::now() + PATIENCE;
        pending.push(Pending { stream, message: Vec::new(), fds: Vec::new(), deadline });
        Ok(())
    }

    /// Sleeps until something arrives or a deadline is over.
    fn wait(&self, pending: &[Pending]) -> Result<(), Error> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(pending.iter().map(|p| PollFd::new(&p.stream, PollFlags::IN)));
        let limit = pending.iter().map(|p| p.deadline.saturating_duration_since(Instant::now())).min();
        let limit = limit.map(|d| Timespec { tv_sec: d.as_secs() as i64, tv_nsec: d.subsec_nanos().into() });
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn check_user(&self, stream: &UnixStream) -> Result<(), Error> {
        let uid = rustix::net::sockopt::socket_peercred(stream.as_fd())?.uid.as_raw();
        if self.allowed.contains(&uid) {
            return Ok(());
        }
        let e = Error::Peer(format!("user {uid} may not use this NIC; start it with --allow-user {uid}"));
        let _ = send_all(stream, &handshake::answer(Err(&e.to_string())), &[]);
        Err(e)
    }

    fn greet(&self, p: Pending) -> Result<Caller, Error> {
        match handshake::request(&p.message) {
            Ok(Request::Stats) => Ok(Caller::Stats(StatsReply(p.stream))),
            Ok(Request::Hello(hello)) => Ok(Caller::Host(Box::new(Offer {
                stream: p.stream,
                fds: p.fds,
                hello: *hello,
                limit: self.limit,
                features: self.features,
            }))),
            Err(e) => {
                let _ = send_all(&p.stream, &handshake::answer(Err(&e.to_string())), &[]);
                Err(e)
            }
        }
    }
}

/// Descriptors that unfinished handshakes hold.
fn parked(pending: &[Pending]) -> usize {
    pending.iter().map(|p| p.fds.len()).sum()
}

/// Turns away the client that has held descriptors for the longest time.
fn evict(pending: &mut Vec<Pending>) {
    if let Some(i) = pending.iter().position(|p| !p.fds.is_empty()) {
        turn_away(pending.remove(i));
    }
}

/// Parts from a client in the middle of its handshake, in favour of another.
fn turn_away(p: Pending) {
    let why = "too many handshakes are unfinished; connect again";
    // It may be gone already.
    let _ = send_all(&p.stream, &handshake::answer(Err(why)), &[]);
}

/// True when this process, or the system, has no descriptor or memory for another connection.
fn is_exhausted(e: &std::io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl Drop for NicServer {
    fn drop(&mut self) {
        let named = std::fs::symlink_metadata(&self.path);
        if named.is_ok_and(|n| self.made.metadata().is_ok_and(|m| (m.dev(), m.ino()) == (n.dev(), n.ino()))) {
            let _ = std::fs::remove_file(&self.path);
        }
        self.lock.release();
    }
}

/// A handle of the socket `path` in the file system, which this process has just made.
fn own_socket(path: &Path) -> std::io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let m = file.metadata()?;
    if m.file_type().is_socket() && m.uid() == rustix::process::geteuid().as_raw() {
        Ok(file)
    } else {
        Err(std::io::Error::other("another file has its name"))
    }
}

/// The right to a socket's name: a locked file beside it, which goes with the server.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(socket: &Path) -> Result<Lock, Error> {
        let mut name = socket.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let refuse =
            |e: &dyn std::fmt::Display| Error::Config(format!("lock file {} cannot be used: {e}", path.display()));
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&path)
                .map_err(|e| refuse(&e))?;
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(Error::Config(format!(
                    "socket {} is in use by another NIC; choose another path",
                    socket.display()
                )));
            }
            // The last holder may have removed the name between the two calls.
            let (ours, named) = (file.metadata()?, std::fs::symlink_metadata(&path));
            if named.is_ok_and(|m| (m.dev(), m.ino()) == (ours.dev(), ours.ino())) {
                return Ok(Lock { path, _file: file });
            }
        }
    }

    /// Removes the name while the lock is still held.
    fn release(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
