//! A NIC as a whole: its tie to the host, and the loops that poll its queues.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::NicQueue;
use crate::channel;
use crate::config::Config;
use crate::error::Error;
use crate::handshake::{Features, Hello};
use crate::layout::RegionLayout;
use crate::raw::Region;
use crate::reset;
use crate::rss::Rss;
use crate::side::{Opened, Shared};

/// Idle polls between looks at the stop flag and the host's socket.
const IDLE: u32 = 1024;
/// Polls that find something between looks at the stop flag and the host's socket.
const BUSY: u32 = 1 << 16;
/// Idle polls between looks at the clock, in event mode.
const GLANCE: u32 = 32;

/// A NIC's connection to its host; once it is cut, the NIC never starts again.
pub(crate) struct Link {
    revoked: AtomicBool,
    stream: Option<UnixStream>,
    /// The NIC's number among those of the region; see [`reset`].
    pub term: u32,
}

impl Link {
    /// The connection of a NIC in the host's process.
    pub fn local(term: u32) -> Arc<Link> {
        Arc::new(Link { revoked: AtomicBool::new(false), stream: None, term })
    }

    pub fn socket(stream: UnixStream, term: u32) -> Arc<Link> {
        Arc::new(Link { revoked: AtomicBool::new(false), stream: Some(stream), term })
    }

    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        if let Some(stream) = &self.stream {
            // The other end may have closed it already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    pub fn alive(&self) -> bool {
        !self.revoked.load(Ordering::Acquire) && self.stream.as_ref().is_none_or(channel::is_open)
    }
}

/// NIC end of a port; dropping it tells the host that the NIC is gone, and stops its queues.
pub struct NicPort {
    shared: Arc<Shared>,
    link: Arc<Link>,
    rss: Rss,
    features: Features,
    opened: Opened,
}

impl NicPort {
    /// The NIC of a region to which it has [attached](attach) itself.
    pub(crate) fn new(region: Region, hello: Hello, link: Arc<Link>, bells: Vec<OwnedFd>) -> NicPort {
        let Hello { config, rss, features, .. } = hello;
        let lay = RegionLayout::new(&config);
        let opened = Opened::new(config.queues);
        let shared = Shared::new(region, config, lay);
        shared.bells.hang(bells);
        NicPort { shared, link, rss, features, opened }
    }

    /// The configuration the host chose.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The shared memory, for tests that play a hostile peer.
    pub fn region(&self) -> &Region {
        &self.shared.region
    }

    /// Receive-side scaling: how the host wants flows to be spread over its queues.
    pub fn rss(&self) -> &Rss {
        &self.rss
    }

    /// Features that host and NIC have agreed to use.
    pub fn features(&self) -> Features {
        self.features
    }

    /// False once the host closed its end, died, or parted from this NIC.
    pub fn host_alive(&self) -> bool {
        self.link.alive()
    }

    /// Opens queue pair `id`, once; the handle belongs to the thread that polls it. A reset
    /// waits for all open queues, so poll every one.
    pub fn queue(&mut self, id: u32) -> Result<NicQueue, Error> {
        let id = self.opened.take(id)?;
        reset::open(&self.shared.region, id, self.link.term);
        Ok(NicQueue::new(self.shared.clone(), self.link.clone(), id))
    }

    /// Loops packets of `queues` back until `stop` is set or the host is gone. Faults are
    /// reported to the host, whose reset restarts the queues.
    pub fn serve_loopback(&self, queues: &mut [NicQueue], stop: &AtomicBool) {
        self.serve_loopback_with(queues, stop, |_| {});
    }

    /// Loops packets back like [`serve_loopback`](Self::serve_loopback); `watch` sees the queues now and then, while
    /// they are idle or every few thousand rounds.
    pub fn serve_loopback_with(&self, queues: &mut [NicQueue], stop: &AtomicBool, mut watch: impl FnMut(&[NicQueue])) {
        let mut idle = Idle::new(self.config().poll_us);
        loop {
            let mut moved = 0;
            for q in queues.iter_mut() {
                // A fault is already counted and signalled; only the host can clear it.
                moved += q.loopback(32).unwrap_or(0);
            }
            match idle.after(moved > 0) {
                Next::Go => {}
                Next::Look | Next::Sleep if stop.load(Ordering::Relaxed) || !self.host_alive() => return,
                Next::Look => watch(queues),
                Next::Sleep => {
                    watch(queues);
                    // An error here is one of the system's; polling goes on without sleep.
                    let _ = NicQueue::sleep(queues, None);
                }
            }
        }
    }
}

/// Takes the region for the NIC that `hello` asks for; false if its host has turned to another NIC.
pub(crate) fn attach(region: &Region, hello: &Hello) -> bool {
    // The first queue decides, also where the host withdraws its offer at this moment.
    let taken = reset::attach(region, 0, hello.term);
    for q in 1..hello.config.queues as usize {
        reset::attach(region, q, hello.term);
    }
    taken
}

impl Drop for NicPort {
    fn drop(&mut self) {
        self.link.revoke();
    }
}

/// Next step of a polling loop after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Begin another round.
    Go,
    /// Look at the stop flag and at the host's connection.
    Look,
    /// Sleep, after the loop was idle for long enough.
    Sleep,
}

/// Counts rounds and idle time of a polling loop.
pub(crate) struct Idle {
    polls: Duration,
    rounds: u32,
    since: Option<Instant>,
}

impl Idle {
    pub fn new(poll_us: u32) -> Idle {
        Idle { polls: Duration::from_micros(poll_us.into()), rounds: 0, since: None }
    }

    #[inline]
    pub fn after(&mut self, moved: bool) -> Next {
        self.rounds = self.rounds.wrapping_add(1);
        if moved {
            self.since = None;
            // A busy queue, too, is looked after at times.
            return if self.rounds % BUSY == 0 { Next::Look } else { Next::Go };
        }
        std::hint::spin_loop();
        self.idle()
    }

    fn idle(&mut self) -> Next {
        if !self.polls.is_zero() && self.rounds % GLANCE == 0 {
            let now = Instant::now();
            if now - *self.since.get_or_insert(now) >= self.polls {
                self.since = None;
                return Next::Sleep;
            }
        }
        if self.rounds % IDLE != 0 {
            return Next::Go;
        }
        std::thread::yield_now();
        Next::Look
    }
}
