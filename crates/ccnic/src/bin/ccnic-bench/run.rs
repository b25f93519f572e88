//! One measurement: a host thread against a loopback NIC on another CPU.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ccnic::{timestamp, Buf, Config, Error, HostPort, HostQueue};

use super::histogram::Histogram;

/// Time without a packet after which a run looks whether the NIC is still there.
const GLANCE: Duration = Duration::from_millis(10);
/// Time without a packet after which a run gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Parameters of one measurement.
#[derive(Clone, Debug)]
pub struct Spec {
    pub config: Config,
    pub size: usize,
    pub tx_batch: usize,
    pub rx_batch: usize,
    /// Most packets in flight.
    pub window: u64,
    /// Offered rate in million packets per second; none: as fast as the window allows.
    pub rate: Option<f64>,
    pub warmup: Duration,
    pub measure: Duration,
    /// Stop after this many packets instead of after `measure`.
    pub packets: Option<u64>,
    pub host_cpu: usize,
    pub nic_cpu: usize,
    /// Run the NIC as a process of its own.
    pub process: bool,
    /// Adds a hostile third process that the same NIC process serves.
    pub scribbler: bool,
}

/// Results of one measurement.
#[derive(Clone, Debug, Default)]
pub struct Point {
    pub packets: u64,
    pub mpps: f64,
    pub gbps: f64,
    pub lat_min_ns: f64,
    pub lat_p50_ns: f64,
    pub lat_p99_ns: f64,
    /// Ring units published by the host per packet.
    pub units_per_packet: f64,
    /// Buffers the host moved to and from the shared pool per packet.
    pub pool_per_packet: f64,
}

/// Counter ticks per nanosecond, measured once.
pub fn ticks_per_ns() -> f64 {
    static RATE: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        let (start, t0) = (Instant::now(), timestamp());
        std::thread::sleep(Duration::from_millis(50));
        (timestamp() - t0) as f64 / start.elapsed().as_nanos() as f64
    })
}

/// The NIC of one measurement, ended on drop.
enum Nic<'a> {
    Thread(&'a AtomicBool),
    /// A NIC process, its socket, and a hostile host that it serves too.
    Process(Child, PathBuf, Option<Child>),
}

impl Drop for Nic<'_> {
    fn drop(&mut self) {
        match self {
            Nic::Thread(stop) => stop.store(true, Ordering::Relaxed),
            Nic::Process(child, socket, third) => {
                // They may have ended by themselves.
                for c in third.iter_mut().chain([child]) {
                    let _ = c.kill();
                    let _ = c.wait();
                }
                let _ = std::fs::remove_file(socket.with_extension("sock.lock"));
                let _ = std::fs::remove_file(socket);
            }
        }
    }
}

pub fn run(spec: &Spec) -> Result<Point, Error> {
    ccnic::pin_to_cpu(spec.host_cpu)?;
    let mut port = HostPort::create(spec.config.clone())?;
    if let Some(why) = port.notice() {
        eprintln!("ccnic-bench: {why}");
    }
    let mut queue = port.queue(0)?;
    if spec.process {
        let _nic = spawn(&mut port, spec)?;
        return Load::new(spec).drive(&mut queue, || port.peer_alive());
    }
    let mut nic = port.local_nic()?;
    let mut queues = vec![nic.queue(0)?];
    let stop = AtomicBool::new(false);
    // The NIC thread starts on this CPU and must have left it before this one spins.
    let moved = Barrier::new(2);
    std::thread::scope(|scope| {
        let _nic = Nic::Thread(&stop);
        scope.spawn(|| {
            ccnic::pin_to_cpu(spec.nic_cpu).expect("the CPU was there at the start");
            moved.wait();
            nic.serve_loopback(&mut queues, &stop);
        });
        moved.wait();
        Load::new(spec).drive(&mut queue, || port.peer_alive())
    })
}

fn spawn(port: &mut HostPort, spec: &Spec) -> Result<Nic<'static>, Error> {
    let this = std::env::current_exe()?;
    // In MiB: the NIC's default, or what a wide window needs.
    let region = port.region().len().div_ceil(1 << 20).max(1024);
    let program = this.parent().unwrap_or(Path::new(".")).join("ccnic-nic");
    let socket = std::env::temp_dir().join(format!("ccnic-bench-{}.sock", std::process::id()));
    // It ends with this process, whatever ends that, and out of reach of the terminal's signals, so that it removes its socket.
    let child = Command::new(&program)
        .args(["--with-stdin", "--cpu", &spec.nic_cpu.to_string(), "--max-region", &region.to_string(), "--socket"])
        .arg(&socket)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| Error::Config(format!("{} cannot be started: {e}; build it first", program.display())))?;
    let mut nic = Nic::Process(child, socket.clone(), None);
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match port.connect(&socket) {
            Ok(()) => break,
            Err(e) if Instant::now() > deadline => return Err(e),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    if let (Nic::Process(_, _, third), true) = (&mut nic, spec.scribbler) {
        *third = Some(
            Command::new(&this)
                .args(["scribble", "--with-stdin", "--socket"])
                .arg(&socket)
                .stdin(Stdio::piped())
                .process_group(0)
                .spawn()?,
        );
    }
    Ok(nic)
}

struct Load<'a> {
    spec: &'a Spec,
    template: Vec<u8>,
    /// Sum of the template's words with number and time zero.
    base: u64,
    segment: usize,
    segments: usize,
    sent: u64,
    got: u64,
    partial: (usize, u64, u64),
    histogram: Histogram,
    bufs: Vec<Buf>,
    back: Vec<Buf>,
}

impl<'a> Load<'a> {
    fn new(spec: &'a Spec) -> Load<'a> {
        let mut template: Vec<u8> = (0..spec.size).map(|i| (i * 31 + 7) as u8).collect();
        template[..16].fill(0);
        let base = template
            .chunks(8)
            .map(|c| {
                let mut w = [0; 8];
                w[..c.len()].copy_from_slice(c);
                u64::from_le_bytes(w)
            })
            .fold(0, u64::wrapping_add);
        let segment = spec.config.capacity() as usize;
        Load {
            spec,
            segments: spec.size.div_ceil(segment),
            template,
            base,
            segment,
            sent: 0,
            got: 0,
            partial: (0, 0, 0),
            histogram: Histogram::new(),
            bufs: Vec::with_capacity(1024),
            back: Vec::with_capacity(1024),
        }
    }

    fn drive(mut self, queue: &mut HostQueue, nic_alive: impl Fn() -> bool) -> Result<Point, Error> {
        let per_ns = ticks_per_ns();
        let begin = timestamp();
        let ticks = |time: Duration| (time.as_nanos() as f64 * per_ns) as u64;
        let (glance, patience) = (ticks(GLANCE), ticks(PATIENCE));
        let (mut heard, mut looked) = (begin, begin);
        let warm = begin + ticks(self.spec.warmup);
        let gap = self.spec.rate.map(|mpps| per_ns * 1000.0 / mpps);
        let mut start = (begin, 0, queue.stats());
        let mut end = warm + ticks(self.spec.measure);
        let mut warmed = false;
        let event = self.spec.config.poll_us > 0;
        loop {
            let now = timestamp();
            if !warmed && now >= warm {
                warmed = true;
                start = (now, self.got, queue.stats());
                self.histogram = Histogram::new();
                end = now + (end - warm);
            }
            let done = match self.spec.packets {
                Some(n) => self.got >= n,
                None => warmed && now >= end,
            };
            if done {
                return self.point(queue, start, now);
            }
            let allowed = gap.map_or(u64::MAX, |g| ((now - begin) as f64 / g) as u64);
            self.send(queue, allowed, now)?;
            if self.receive(queue)? {
                (heard, looked) = (now, now);
                continue;
            }
            if now.saturating_sub(looked) > glance {
                looked = now;
                if !nic_alive() {
                    return Err(Error::Peer(format!("the NIC ended after {} packets", self.got)));
                }
                if now.saturating_sub(heard) > patience {
                    return Err(Error::Peer(format!(
                        "no packet came back for {} s after {} of the {} that were sent",
                        PATIENCE.as_secs(),
                        self.got,
                        self.sent
                    )));
                }
            }
            // Beside other work, in event mode, a host whose window is full gives its CPU away.
            if event && self.sent - self.got == self.spec.window {
                queue.wait(Duration::from_millis(100))?;
            }
        }
    }

    #[inline]
    fn send(&mut self, queue: &mut HostQueue, allowed: u64, now: u64) -> Result<(), Error> {
        let open = self.spec.window - (self.sent - self.got);
        let due = allowed.saturating_sub(self.sent);
        let mut packets = open.min(due).min(self.spec.tx_batch as u64) as usize;
        if let Some(n) = self.spec.packets {
            packets = packets.min((n - self.sent) as usize);
        }
        if packets == 0 {
            return Ok(());
        }
        let hint = if self.segments == 1 { self.spec.size } else { 0 };
        let want = packets * self.segments;
        let got = queue.alloc(&mut self.bufs, want, hint);
        let whole = got - got % self.segments;
        for (number, packet) in (self.sent..).zip(self.bufs[..whole].chunks_mut(self.segments)) {
            self.template[..8].copy_from_slice(&number.to_le_bytes());
            self.template[8..16].copy_from_slice(&now.to_le_bytes());
            let last = packet.len() - 1;
            for (i, (b, part)) in packet.iter_mut().zip(self.template.chunks(self.segment)).enumerate() {
                queue.write(b, part);
                if last > 0 {
                    b.set_more(i < last);
                }
            }
        }
        let mut rest = self.bufs.split_off(whole);
        let sent = queue.tx(&mut self.bufs)?;
        self.sent += (sent / self.segments) as u64;
        self.bufs.append(&mut rest);
        if !self.bufs.is_empty() {
            queue.free(&mut self.bufs);
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, queue: &mut HostQueue) -> Result<bool, Error> {
        if queue.rx(&mut self.back, self.spec.rx_batch)? == 0 {
            return Ok(false);
        }
        let now = timestamp();
        for b in &self.back {
            let (bytes, sum, time) = &mut self.partial;
            if *bytes == 0 {
                let mut head = [0; 16];
                queue.read(b, &mut head);
                *time = u64::from_le_bytes(head[8..].try_into().expect("eight bytes"));
            }
            *bytes += b.len();
            *sum = sum.wrapping_add(queue.checksum(b));
            if !b.more() {
                let expect = self.base.wrapping_add(self.got).wrapping_add(*time);
                if *bytes != self.spec.size || *sum != expect {
                    return Err(Error::Peer(format!(
                        "packet {} came back altered, or in the place of a lost one: {bytes} of {} bytes, sum {sum:#x}, \
                         expected {expect:#x}",
                        self.got, self.spec.size
                    )));
                }
                self.histogram.add(now.wrapping_sub(*time));
                self.got += 1;
                self.partial = (0, 0, 0);
            }
        }
        queue.free(&mut self.back);
        Ok(true)
    }

    fn point(&self, queue: &HostQueue, start: (u64, u64, ccnic::Stats), now: u64) -> Result<Point, Error> {
        let Some(least) = self.histogram.min() else {
            return Err(Error::Peer(format!(
                "none of {} packets of {} bytes came back within {} ms; raise --ms",
                self.sent,
                self.spec.size,
                self.spec.measure.as_millis()
            )));
        };
        let per_ns = ticks_per_ns();
        let ns = (now - start.0) as f64 / per_ns;
        let packets = self.got - start.1;
        let (a, b) = (start.2, queue.stats());
        let per = |x: u64| x as f64 / packets.max(1) as f64;
        Ok(Point {
            packets,
            mpps: packets as f64 * 1000.0 / ns,
            gbps: packets as f64 * self.spec.size as f64 * 8.0 / ns,
            lat_min_ns: least as f64 / per_ns,
            lat_p50_ns: self.histogram.quantile(0.5) / per_ns,
            lat_p99_ns: self.histogram.quantile(0.99) / per_ns,
            units_per_packet: per(b.units - a.units),
            pool_per_packet: per(b.pool_takes + b.pool_puts - a.pool_takes - a.pool_puts),
        })
    }
}
