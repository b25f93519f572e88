//! A NIC as a process of its own: waits for hosts on a Unix socket and serves each in a thread.

#[path = "shared/cpus.rs"]
mod cpus;
#[path = "shared/stdin.rs"]
mod stdin;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ccnic::overlay::{Overlay, Via};
use ccnic::{Caller, Error, NicPort, NicQueue, NicServer, Offer, Stats};
use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};

/// Serve CC-NIC queues to host processes.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Unix socket to listen on.
    #[arg(long)]
    socket: std::path::PathBuf,
    /// Print the counters of the NIC that listens on the socket, and end.
    #[arg(long)]
    stats: bool,
    /// Where the hosts' packets go.
    #[arg(long, value_enum, default_value = "loopback")]
    mode: Mode,
    /// Network interface of the overlay mode.
    #[arg(long, required_if_eq("mode", "overlay"))]
    iface: Option<String>,
    /// How the overlay mode exchanges frames with the interface [default: packet].
    #[arg(long, value_enum)]
    via: Option<Way>,
    /// CPU that the hosts' threads run on.
    #[arg(long)]
    cpu: Option<usize>,
    /// Exit after this many hosts were served (0: serve for ever).
    #[arg(long, default_value_t = 0)]
    hosts: u64,
    /// Hosts served at the same time.
    #[arg(long, default_value_t = 16, value_parser = at_least_one(usize::MAX))]
    at_once: usize,
    /// Largest region of a host that is mapped, in MiB.
    #[arg(long, default_value_t = 1024, value_parser = at_least_one(usize::MAX >> 20))]
    max_region: usize,
    /// Serve hosts of this user, too, beside one's own and root (may be repeated).
    #[arg(long)]
    allow_user: Vec<u32>,
    /// End, and remove the socket, when standard input is closed.
    #[arg(long)]
    with_stdin: bool,
}

/// Parses a number from 1 to `most`.
fn at_least_one(most: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most as u64)
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Every packet comes back on the queue it was sent on.
    Loopback,
    /// Packets go out of, and come in from, a network interface (needs CAP_NET_RAW).
    Overlay,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Packet socket, TPACKET_V3 (any interface).
    Packet,
    /// AF_XDP socket on the first queue, whose frames the kernel's stack then does not see.
    Xdp,
}

impl Args {
    fn via(&self) -> Via {
        match self.via {
            None | Some(Way::Packet) => Via::Packet,
            Some(Way::Xdp) => Via::Xdp,
        }
    }

    /// Checks what depends on more than one option, or on the machine.
    fn check(&self) -> Result<(), Error> {
        let given = [("--iface", self.iface.is_some()), ("--via", self.via.is_some())];
        if let (Mode::Loopback, Some((option, _))) = (self.mode, given.iter().find(|(_, given)| *given)) {
            return Err(Error::Config(format!(
                "{option} has no effect on --mode loopback; leave it out, or add --mode overlay"
            )));
        }
        self.cpu.map_or(Ok(()), |cpu| cpus::check("--cpu", cpu))
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if args.stats { ccnic::read_stats(&args.socket).map(|s| print!("{s}")) } else { run(args) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ccnic-nic: {e}");
            ExitCode::from(2)
        }
    }
}

/// The counters of a host: its own, and what the overlay dropped.
#[derive(Clone, Copy, Default)]
struct Counters {
    stats: Stats,
    rx_drops: u64,
    tx_drops: u64,
}

/// The counters of all hosts; those that are gone are added up under number 0.
#[derive(Default)]
struct Board {
    hosts: BTreeMap<u64, Counters>,
    refused: u64,
}

type Shared = Arc<Mutex<Board>>;

fn lock(board: &Shared) -> std::sync::MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "hosts {}", self.hosts.keys().filter(|k| **k > 0).count());
        let _ = writeln!(out, "refused {}", self.refused);
        for (id, c) in &self.hosts {
            let s = &c.stats;
            let name = if *id == 0 { "gone".into() } else { format!("host{id}") };
            for (key, value) in [
                ("tx", s.tx),
                ("tx_bytes", s.tx_bytes),
                ("rx", s.rx),
                ("rx_bytes", s.rx_bytes),
                ("faults", s.faults),
                ("resets", s.resets),
                ("misuse", s.misuse),
                ("starved", s.starved),
                ("oversize", s.oversize),
                ("drops", s.drops),
                ("sleeps", s.sleeps),
                ("wakes", s.wakes),
                ("overlay_rx_drops", c.rx_drops),
                ("overlay_tx_drops", c.tx_drops),
            ] {
                let _ = writeln!(out, "{name}.{key} {value}");
            }
        }
        out
    }
}

fn run(args: Args) -> Result<(), Error> {
    args.check()?;
    let mut server = NicServer::bind(&args.socket)?;
    if args.with_stdin {
        let (socket, mut lock) = (args.socket.clone(), args.socket.clone().into_os_string());
        lock.push(".lock");
        stdin::end_with(move || {
            // Both are this server's, which holds the lock; the program ends either way.
            let _ = std::fs::remove_file(socket);
            let _ = std::fs::remove_file(lock);
        })?;
    }
    server.set_limit(args.max_region << 20);
    args.allow_user.iter().try_for_each(|&uid| server.allow_user(uid))?;
    if args.mode == Mode::Overlay {
        server.set_features(Overlay::features(args.via()));
    }
    let board = Shared::default();
    let args = Arc::new(args);
    let mut workers = Vec::new();
    let mut tally = Tally::new();
    while tally.wants_more(args.hosts) {
        let offer = match server.next() {
            Ok(Caller::Host(offer)) => offer,
            Ok(Caller::Stats(reply)) => {
                // Whoever asked may be gone.
                let _ = reply.send(&lock(&board).text());
                continue;
            }
            // One bad host must not end the service for the next.
            Err(e) => {
                lock(&board).refused += 1;
                eprintln!("ccnic-nic: {e}");
                continue;
            }
        };
        workers.retain(|w: &std::thread::JoinHandle<()>| !w.is_finished());
        if workers.len() >= args.at_once {
            let e = Error::Peer(format!("the NIC serves {} hosts already (--at-once)", workers.len()));
            offer.refuse(&e);
            lock(&board).refused += 1;
            eprintln!("ccnic-nic: {e}");
            continue;
        }
        let (id, news) = tally.begin();
        let (args, board) = (args.clone(), board.clone());
        let worker = std::thread::Builder::new().name(format!("host{id}"));
        workers.push(worker.spawn(move || work(&args, &board, id, *offer, &news))?);
    }
    drop(server);
    for w in workers {
        // A panic was printed by the thread itself.
        let _ = w.join();
    }
    Ok(())
}

/// Counts the hosts that have come, and those of them that are served.
struct Tally {
    begun: u64,
    decided: u64,
    served: u64,
    sender: Sender<bool>,
    news: Receiver<bool>,
}

impl Tally {
    fn new() -> Tally {
        let (sender, news) = mpsc::channel();
        Tally { begun: 0, decided: 0, served: 0, sender, news }
    }

    /// Number of the next host, and where its thread says whether it is served.
    fn begin(&mut self) -> (u64, Sender<bool>) {
        self.begun += 1;
        (self.begun, self.sender.clone())
    }

    /// True until `most` hosts were served (0: always). Waits for what threads have to say while they may be enough.
    fn wants_more(&mut self, most: u64) -> bool {
        loop {
            let may_be_enough = most > 0 && self.served < most && self.served + self.begun - self.decided >= most;
            let said = if may_be_enough { self.news.recv().ok() } else { self.news.try_recv().ok() };
            match said {
                Some(served) => self.decide(served),
                None => return most == 0 || self.served < most,
            }
        }
    }

    fn decide(&mut self, served: bool) {
        self.decided += 1;
        self.served += u64::from(served);
    }
}

/// One host, from its offer to its end.
fn work(args: &Args, board: &Shared, id: u64, offer: Offer, news: &Sender<bool>) {
    lock(board).hosts.insert(id, Counters::default());
    let accepted = args.cpu.map_or(Ok(()), ccnic::pin_to_cpu).and_then(|()| accept(args, offer));
    // Nobody counts any more when the program ends.
    let _ = news.send(accepted.is_ok());
    let outcome = accepted.and_then(|(port, overlay)| serve(board, id, port, overlay));
    if let Err(e) = outcome {
        lock(board).refused += 1;
        eprintln!("ccnic-nic: {e}");
    }
    let mut all = lock(board);
    if let Some(last) = all.hosts.remove(&id) {
        let gone = all.hosts.entry(0).or_default();
        gone.stats += last.stats;
        gone.rx_drops += last.rx_drops;
        gone.tx_drops += last.tx_drops;
    }
}

/// Opens what the host's packets go to, and maps the host's region.
fn accept(args: &Args, offer: Offer) -> Result<(NicPort, Option<Overlay>), Error> {
    let overlay = match (args.mode, &args.iface) {
        (Mode::Overlay, Some(iface)) => match Overlay::open(iface, args.via()) {
            Ok(overlay) => Some(overlay),
            Err(e) => {
                offer.refuse(&e);
                return Err(e);
            }
        },
        _ => None,
    };
    Ok((offer.accept()?, overlay))
}

fn serve(board: &Shared, id: u64, mut port: NicPort, mut overlay: Option<Overlay>) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let mut queues = Vec::new();
    for q in 0..port.config().served() {
        queues.push(port.queue(q)?);
    }
    let mut next = Instant::now();
    let mut publish = |overlay: Option<&Overlay>, queues: &[NicQueue], now: bool| {
        if !now && Instant::now() < next {
            return;
        }
        next = Instant::now() + Duration::from_millis(50);
        let mut c = Counters::default();
        queues.iter().for_each(|q| c.stats += q.stats());
        if let Some(o) = overlay {
            (c.rx_drops, c.tx_drops) = (o.rx_drops, o.tx_drops);
        }
        lock(board).hosts.insert(id, c);
    };
    let outcome = match &mut overlay {
        Some(o) => o.serve_with(&port, &mut queues, &stop, |o, queues| publish(Some(o), queues, false)),
        None => {
            port.serve_loopback_with(&mut queues, &stop, |queues| publish(None, queues, false));
            Ok(())
        }
    };
    publish(overlay.as_ref(), &queues, true);
    outcome
}
