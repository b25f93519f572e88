//! The host's side: owns the region, sends and receives, and repairs after a fault.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::buf::{Buf, RawBuf};
use crate::channel;
use crate::config::{Config, Home};
use crate::error::Error;
use crate::handshake::{Features, Hello};
use crate::layout::{self, RegionLayout};
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::nic::{attach, Link, NicPort};
use crate::queue::{Doors, HostQueue};
use crate::raw::Region;
use crate::reset;
use crate::rss::Rss;
use crate::side::{HostPool, Shared};

/// Time a live NIC has to stop its queues for a reset.
const QUIESCE: Duration = Duration::from_secs(2);

/// Host end of a port; the control plane. Owned by one thread (`Send`, not shared).
pub struct HostPort {
    shared: Arc<Shared>,
    /// Configuration that the next NIC gets.
    offered: Config,
    /// Receive-side scaling that the next NIC gets beside the configuration.
    rss: Rss,
    peer: Peer,
    /// Number of the last NIC; see [`reset`].
    term: u32,
    doors: Arc<Doors>,
    epoch: u64,
    resets: u64,
    /// True when a NIC has used the rings since they were cleared.
    used: bool,
    notice: Option<String>,
}

enum Peer {
    None,
    Local(Arc<Link>),
    Socket(UnixStream),
}

/// Numbers of buffers by owner, for tests and monitoring; exact while the peer is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Buffers of the port, objects excluded.
    pub total: usize,
    /// Buffers of the application.
    pub user: usize,
    /// Buffers in the host's recycle stacks.
    pub stacked: usize,
    /// Buffers in the pool's free rings.
    pub pooled: usize,
}

impl HostPort {
    /// Creates the region, in a memfd so that a NIC process can map it, and fills the pool.
    pub fn create(config: Config) -> Result<HostPort, Error> {
        config.check()?;
        let lay = RegionLayout::new(&config);
        let (region, notice) = Region::memfd(lay.bytes, config.huge)?;
        HostPort::build(region, config, lay, notice)
    }

    /// Creates a port over memory of this process, for in-process NICs only; otherwise like [`create`](Self::create).
    pub fn create_private(config: Config) -> Result<HostPort, Error> {
        config.check()?;
        let lay = RegionLayout::new(&config);
        HostPort::build(Region::heap(lay.bytes), config, lay, None)
    }

    fn build(region: Region, config: Config, lay: RegionLayout, notice: Option<String>) -> Result<HostPort, Error> {
        place(&region, &config, &lay)?;
        let mut port = HostPort {
            offered: config.clone(),
            rss: Rss::default(),
            doors: Doors::new(config.queues),
            shared: Shared::new(region, config, lay),
            peer: Peer::None,
            term: 0,
            epoch: 0,
            resets: 0,
            used: false,
            notice,
        };
        port.rebuild();
        Ok(port)
    }

    /// Resources that the kernel did not give the port, in one sentence: huge pages.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Features that this port and its NIC have agreed to use; none without a NIC. Costs a system call.
    pub fn features(&self) -> Features {
        if self.peer_alive() {
            Features(self.shared.agreed.load(Ordering::Relaxed))
        } else {
            Features::default()
        }
    }

    /// The configuration the port was created with.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The shared memory, for tests that play a hostile peer.
    pub fn region(&self) -> &Region {
        &self.shared.region
    }

    /// Opens queue pair `id`; the handle belongs to the thread that polls it. A queue that was
    /// closed (its handle dropped) can be opened again.
    pub fn queue(&mut self, id: u32) -> Result<HostQueue, Error> {
        HostQueue::open(&self.shared, &self.doors, id)
    }

    /// The shared pool's large buffers, for threads without a queue. A port with a single queue
    /// pair relies on a single thread: open the pool before that queue.
    pub fn pool(&mut self) -> Result<HostPool, Error> {
        if !self.shared.ledger.contended() {
            if self.doors.open_count() > 0 {
                return Err(Error::Usage("open the pool before the queue of a port with one queue pair"));
            }
            self.shared.ledger.contend();
        }
        Ok(HostPool(self.shared.clone()))
    }

    /// Sets the most bytes of a frame ([`Config::mtu`]), for this side and the next NIC.
    pub fn set_mtu(&mut self, mtu: u32) -> Result<(), Error> {
        if self.peer_alive() {
            return Err(Error::Usage("the port has a NIC; its MTU is fixed"));
        }
        let wanted = Config { mtu, ..self.offered.clone() };
        wanted.check()?;
        self.shared.frame.store(wanted.frame(), Ordering::Relaxed);
        self.offered = wanted;
        Ok(())
    }

    /// Sets how the next NIC spreads flows over the queues.
    pub fn set_rss(&mut self, rss: Rss) -> Result<(), Error> {
        if self.peer_alive() {
            return Err(Error::Usage("the port has a NIC; how it spreads flows is fixed"));
        }
        rss.check(self.offered.served())?;
        self.rss = rss;
        Ok(())
    }

    /// Sets how many queue pairs, from the first on, the next NIC serves ([`Config::served`]). Queues of the RSS table that it does not
    /// serve are taken modulo this number; the table itself stays for a NIC that serves them.
    pub fn set_served(&mut self, queues: u32) -> Result<(), Error> {
        if self.peer_alive() {
            return Err(Error::Usage("the port has a NIC; the queues it serves are fixed"));
        }
        let wanted = Config { served: queues, ..self.offered.clone() };
        wanted.check()?;
        self.offered = wanted;
        Ok(())
    }

    /// Parts from a NIC process: stops its queues and closes the connection, so that it
    /// cannot start again. Call [`recover`](Self::recover) before the next NIC. (A NIC in
    /// this process is gone when its [`NicPort`] is dropped.)
    pub fn disconnect(&mut self) {
        if !matches!(self.peer, Peer::Socket(_)) {
            return;
        }
        self.epoch += 1;
        // One that does not stop loses the connection all the same.
        let _ = self.stop(self.epoch);
        self.dismiss();
    }

    /// Cuts the NIC off: it never starts again, even if it only slept.
    fn dismiss(&mut self) {
        match &self.peer {
            Peer::None => {}
            Peer::Local(link) => link.revoke(),
            // A child of this process may have the connection open, too. The NIC may have closed it already.
            Peer::Socket(stream) => drop(stream.shutdown(std::net::Shutdown::Both)),
        }
        self.peer = Peer::None;
        self.agree(Features::default());
    }

    fn agree(&mut self, features: Features) {
        self.shared.agreed.store(features.0, Ordering::Relaxed);
    }

    /// Opens a NIC in this process. A port has one NIC at a time.
    pub fn local_nic(&mut self) -> Result<NicPort, Error> {
        self.vacant()?;
        let ends = self.bells()?;
        let offer = self.offer();
        let link = Link::local(offer.term);
        self.agree(offer.features);
        attach(&self.shared.region, &offer);
        let nic = NicPort::new(self.shared.region.clone(), offer, link.clone(), ends);
        self.peer = Peer::Local(link);
        self.used = true;
        Ok(nic)
    }

    /// Hands the region to the NIC process that listens on `path`.
    pub fn connect(&mut self, path: impl AsRef<std::path::Path>) -> Result<(), Error> {
        self.vacant()?;
        let ends = self.bells()?;
        let offer = self.offer();
        match channel::offer(path.as_ref(), &self.shared.region, &offer, ends) {
            Ok((stream, features)) => {
                self.peer = Peer::Socket(stream);
                self.agree(features);
                self.used = true;
                Ok(())
            }
            Err(e) => {
                self.withdraw();
                Err(e)
            }
        }
    }

    /// Makes the offer to the next NIC, in its message and in the control words.
    fn offer(&mut self) -> Hello {
        self.term = reset::next_term(self.term);
        for q in 0..self.shared.config.queues as usize {
            reset::offer(&self.shared.region, q, self.term);
        }
        Hello {
            config: self.offered.clone(),
            rss: self.rss.within(self.offered.served()),
            features: Features::offer(&self.offered),
            term: self.term,
        }
    }

    /// Takes the offer back. A NIC that has not attached itself never will; one that has may have used the rings.
    fn withdraw(&mut self) {
        self.used |= !reset::withdraw(&self.shared.region, 0, self.term);
        self.term = reset::next_term(self.term);
    }

    /// Creates new wake-up sockets and returns the NIC's ends, in event mode.
    fn bells(&mut self) -> Result<Vec<OwnedFd>, Error> {
        if self.offered.poll_us == 0 {
            return Ok(Vec::new());
        }
        self.shared.bells.cast()
    }

    fn vacant(&self) -> Result<(), Error> {
        if self.peer_alive() {
            return Err(Error::Usage("the port already has a NIC"));
        }
        if self.used {
            return Err(Error::Usage("call recover before a new NIC takes over from the last one"));
        }
        Ok(())
    }

    /// False once the NIC exited, was killed, or was never there. Costs a system call.
    pub fn peer_alive(&self) -> bool {
        match &self.peer {
            Peer::None => false,
            Peer::Local(link) => link.alive(),
            Peer::Socket(stream) => channel::is_open(stream),
        }
    }

    /// Times the port was reset.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Takes object `id` (see [`Config::objects`]) for use as a TX segment. The NIC never
    /// frees objects; each send or free drops one reference, and when the last is gone the
    /// object can be taken again.
    pub fn object(&self, id: u32) -> Result<Buf, Error> {
        let shared = &self.shared;
        if id >= shared.config.objects {
            return Err(Error::Config(format!("object {id} does not exist; the port has {}", shared.config.objects)));
        }
        let index = shared.layout.pooled() as u32 + id;
        if !shared.ledger.shift(0, index, Owner::Away, Owner::User) {
            return Err(Error::Usage("the object is in use"));
        }
        Ok(Buf(RawBuf { addr: shared.layout.addr(index), index, len: 0, flags: 0 }))
    }

    /// Resets the port after a fault or after the NIC died: stops the NIC's queues, takes
    /// back every buffer that the host does not hold, clears the rings, and lets the NIC
    /// (or the next one) start afresh. Takes all open queues, whose packets in flight are
    /// lost; buffers of the application stay valid. A live NIC that does not stop within
    /// two seconds is disconnected and reported as `Error::Peer`; the port is then ready for
    /// another one.
    pub fn recover(&mut self, queues: &mut [&mut HostQueue]) -> Result<(), Error> {
        if queues.len() != self.doors.open_count() || queues.iter().any(|q| !Arc::ptr_eq(&q.side.shared, &self.shared))
        {
            return Err(Error::Usage("recover needs every open queue of the port"));
        }
        let stopped = self.stop(self.epoch + 1);
        if !stopped || !self.peer_alive() {
            self.dismiss();
        }
        for queue in queues.iter_mut() {
            queue.restart();
        }
        self.doors.clear(&self.shared);
        self.rebuild();
        self.resets += 1;
        self.used = self.peer_alive();
        if stopped {
            Ok(())
        } else {
            Err(Error::Peer("the NIC did not stop for a reset and was disconnected".into()))
        }
    }

    /// Asks the NIC to stop for `epoch`; false if it lives and has not stopped in time.
    fn stop(&self, epoch: u64) -> bool {
        let deadline = Instant::now() + QUIESCE;
        let region = &self.shared.region;
        let queues = self.offered.served() as usize;
        (0..queues).for_each(|q| reset::repair(region, q, self.term));
        reset::ask(region, epoch);
        for q in 0..queues {
            if reset::must_wake(region, layout::w_nic_sleeps(q)) {
                self.shared.bells.ring(q);
            }
        }
        while self.peer_alive() {
            if (0..queues).all(|q| reset::stopped(region, q, self.term, epoch)) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Clears rings and pools, refills the pools, and starts the next epoch. Only while
    /// neither side uses them.
    fn rebuild(&mut self) {
        let Shared { region, config, layout: lay, ledger, .. } = &*self.shared;
        // A NIC that wrote over the magic number must not keep the next one away.
        region.put(layout::W_MAGIC, layout::MAGIC);
        region.zero(lay.rings_start, lay.control_bytes - lay.rings_start);
        for (class, pool) in lay.pools.iter().enumerate() {
            let span = &lay.spans[class];
            let free: Vec<u64> = layout::fill_order(span.count(), span.size(), config.nonseq)
                .map(|i| span.first() + i)
                .filter(|&i| ledger.owner(0, i) == Owner::Away)
                .map(|i| lay.addr(i))
                .collect();
            pool.put(region, free.into_iter());
        }
        for q in 0..config.queues as usize {
            region.put(layout::w_fault(q), 0);
            region.put(layout::w_nic_drops(q), 0);
        }
        region.put(layout::W_HUNGER, 0);
        self.epoch += 1;
        reset::go(region, self.epoch);
        for q in 0..config.queues as usize {
            // A NIC that sleeps learns of the reset.
            if reset::must_wake(region, layout::w_nic_sleeps(q)) {
                self.shared.bells.ring(q);
            }
        }
    }

    /// Counts the buffers by owner, given all open queues.
    pub fn audit(&self, queues: &[&HostQueue]) -> Audit {
        let lay = &self.shared.layout;
        let user = (0..lay.pooled() as u32).filter(|&i| self.shared.ledger.owner(0, i) == Owner::User).count();
        Audit {
            total: lay.pooled(),
            user,
            stacked: queues.iter().map(|q| q.side.stacked()).sum(),
            pooled: lay.pools.iter().map(|p| p.len(&self.shared.region) as usize).sum(),
        }
    }
}

impl Drop for HostPort {
    /// A NIC of this process learns that its host is gone.
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// Binds rings and buffers to their NUMA nodes, where nodes are given.
fn place(region: &Region, config: &Config, lay: &RegionLayout) -> Result<(), Error> {
    let node = |home: Home, host_writes: bool| match (home, host_writes) {
        (Home::Host, _) | (Home::Writer, true) | (Home::Reader, false) => config.host_node,
        _ => config.nic_node,
    };
    for q in &lay.queues {
        for (shape, host_writes) in [(&q.tx, true), (&q.rx, false)] {
            if let Some(n) = node(config.ring_home, host_writes) {
                region.bind_node(shape.base * 8, shape.units * shape.unit_words * 8, n)?;
            }
        }
    }
    if let Some(n) = node(config.pool_home, true) {
        region.bind_node(lay.control_bytes, lay.bytes - lay.control_bytes, n)?;
    }
    Ok(())
}
