//! Costs and savings of event mode: CPU time while idle, the wake-up itself, and round trips after a pause.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ccnic::{timestamp, Config, Error, HostPort, HostQueue};
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags};
use rustix::net::{recv, send, socketpair, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::run::ticks_per_ns;

/// Polling times before a sleep, in microseconds; 0 never sleeps.
const POLLS: [u32; 3] = [0, 50, 1000];

/// CPU time that this process has used so far.
fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Round-trip time of one packet in ns, the host waiting as its configuration says.
fn round_trip(queue: &mut HostQueue) -> Result<f64, Error> {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 1, 64);
    bufs.iter_mut().for_each(|b| queue.write(b, &[1; 64]));
    let start = Instant::now();
    queue.tx(&mut bufs)?;
    while queue.rx(&mut bufs, 4)? == 0 {
        queue.wait(Duration::from_secs(1))?;
    }
    let ns = start.elapsed().as_nanos() as f64;
    queue.free(&mut bufs);
    Ok(ns)
}

/// A pair of descriptors: one thread sleeps on the one until another thread writes to the other.
struct Bell {
    name: &'static str,
    rings: OwnedFd,
    sleeps: OwnedFd,
}

/// The socket pair that event mode uses, and the eventfd that would serve sides that trust each other.
fn bells() -> Result<[Bell; 2], Error> {
    let (rings, sleeps) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let count = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let same = count.try_clone()?;
    Ok([Bell { name: "socket", rings, sleeps }, Bell { name: "eventfd", rings: count, sleeps: same }])
}

/// Median time in ns from the call that wakes a thread asleep on another CPU until that thread runs.
fn wake_up(cpus: (usize, usize), bell: &Bell) -> Result<f64, Error> {
    const WAKES: usize = 200;
    let (rung, heard, moved) = (AtomicU64::new(0), AtomicU64::new(0), Barrier::new(2));
    let socket = bell.name == "socket";
    ccnic::pin_to_cpu(cpus.0)?;
    let mut ticks = std::thread::scope(|scope| -> Result<Vec<u64>, Error> {
        let sleeper = scope.spawn(|| -> Result<Vec<u64>, Error> {
            ccnic::pin_to_cpu(cpus.1).expect("the CPU was there at the start");
            moved.wait();
            let mut ticks = Vec::with_capacity(WAKES);
            while ticks.len() < WAKES {
                poll(&mut [PollFd::new(&bell.sleeps, PollFlags::IN)], None)?;
                ticks.push(timestamp().wrapping_sub(rung.load(Ordering::Acquire)));
                if socket {
                    recv(&bell.sleeps, &mut [0u8; 64], RecvFlags::DONTWAIT)?;
                } else {
                    rustix::io::read(&bell.sleeps, &mut [0u8; 8])?;
                }
                heard.fetch_add(1, Ordering::Release);
            }
            Ok(ticks)
        });
        moved.wait();
        for n in 0..WAKES {
            std::thread::sleep(Duration::from_millis(1));
            while heard.load(Ordering::Acquire) < n as u64 {
                std::thread::yield_now();
            }
            rung.store(timestamp(), Ordering::Release);
            if socket {
                send(&bell.rings, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
            } else {
                rustix::io::write(&bell.rings, &1u64.to_ne_bytes())?;
            }
        }
        sleeper.join().expect("the sleeper returns its errors")
    })?;
    ticks.sort_unstable();
    Ok(ticks[WAKES / 2] as f64 / ticks_per_ns())
}

/// Rows on standard output: the share of a CPU that an idle NIC thread uses, and round trips
/// after pauses that let both sides fall asleep.
pub fn measure(cpus: (usize, usize), reps: u64, ms: u64) -> Result<(), Error> {
    println!("experiment,variant,size_bytes,rep,value,unit");
    for rep in 0..reps {
        for bell in bells()? {
            println!("wake_up,{},0,{rep},{:.0},ns", bell.name, wake_up(cpus, &bell)?);
        }
        for poll_us in POLLS {
            let variant = if poll_us == 0 { "polling".to_string() } else { format!("poll_{poll_us}us") };
            let mut port = HostPort::create(Config { poll_us, ..Config::default() })?;
            let mut queue = port.queue(0)?;
            let mut nic = port.local_nic()?;
            let mut far = vec![nic.queue(0)?];
            let stop = AtomicBool::new(false);
            ccnic::pin_to_cpu(cpus.0)?;
            std::thread::scope(|scope| -> Result<(), Error> {
                scope.spawn(|| {
                    ccnic::pin_to_cpu(cpus.1).expect("the CPU was there at the start");
                    nic.serve_loopback(&mut far, &stop);
                });
                let mut run = || -> Result<(), Error> {
                    round_trip(&mut queue)?;
                    let (before, start) = (cpu_time(), Instant::now());
                    std::thread::sleep(Duration::from_millis(ms));
                    let share = (cpu_time() - before).as_secs_f64() / start.elapsed().as_secs_f64();
                    println!("idle_cpu,{variant},64,{rep},{:.2},percent", 100.0 * share);
                    let mut times = Vec::new();
                    for _ in 0..50 {
                        std::thread::sleep(Duration::from_millis(3));
                        times.push(round_trip(&mut queue)?);
                    }
                    times.sort_by(f64::total_cmp);
                    println!("round_trip_after_pause,{variant},64,{rep},{:.0},ns", times[times.len() / 2]);
                    Ok(())
                };
                let outcome = run();
                stop.store(true, Ordering::Relaxed);
                outcome
            })?;
        }
    }
    Ok(())
}
