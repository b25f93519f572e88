//! A NIC as a process of its own: waits for hosts on a Unix socket and serves one at a time.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use ccnic::overlay::{Overlay, Via};
use ccnic::{Error, NicPort, NicServer};
use clap::{Parser, ValueEnum};

/// Serve CC-NIC queues to host processes.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Unix socket to listen on.
    #[arg(long)]
    socket: std::path::PathBuf,
    /// What happens to packets.
    #[arg(long, value_enum, default_value = "loopback")]
    mode: Mode,
    /// Network interface of the overlay mode.
    #[arg(long, required_if_eq("mode", "overlay"))]
    iface: Option<String>,
    /// How the overlay mode exchanges frames with the interface.
    #[arg(long, value_enum, default_value = "packet")]
    via: Way,
    /// CPU to run on.
    #[arg(long)]
    cpu: Option<usize>,
    /// Exit after this many hosts (0: serve for ever).
    #[arg(long, default_value_t = 0)]
    hosts: u64,
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

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ccnic-nic: {e}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<(), Error> {
    if let Some(cpu) = args.cpu {
        ccnic::pin_to_cpu(cpu)?;
    }
    let server = NicServer::bind(&args.socket)?;
    let mut served = 0;
    while args.hosts == 0 || served < args.hosts {
        match server.accept() {
            Ok(port) => serve(args, port)?,
            // One bad host must not end the service for the next.
            Err(e) => eprintln!("ccnic-nic: {e}"),
        }
        served += 1;
    }
    Ok(())
}

fn serve(args: &Args, mut port: NicPort) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let mut queues = Vec::new();
    for id in 0..port.config().served() {
        queues.push(port.queue(id)?);
    }
    match (args.mode, &args.iface) {
        (Mode::Overlay, Some(iface)) => {
            let via = match args.via {
                Way::Packet => Via::Packet,
                Way::Xdp => Via::Xdp,
            };
            let mut overlay = Overlay::open(iface, via)?;
            overlay.serve(&port, &mut queues, &stop)
        }
        _ => {
            port.serve_loopback(&mut queues, &stop);
            Ok(())
        }
    }
}
