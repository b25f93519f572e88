//! Recorder of real programs: for each packet, the instructions that a program retires and the memory that it accesses.
//!
//! [`record`] runs a program, or attaches to one, under `ptrace`. The program runs natively until a packet's work begins,
//! is stepped to its end, and runs natively again. `docs/use/record.md` says what is recorded and how.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod burst;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod flow;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod indirect;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instruction;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod predictor;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod process;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "the only module that calls ptrace")]
mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;

use hostnet_recording::{Error, Recording};
use std::path::PathBuf;
use std::time::Duration;

/// Program, boundaries and length of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub target: Target,
    /// Where the work of packets begins and ends.
    pub between: Between,
    /// Number of packets after which the recording ends.
    pub packets: u32,
    /// Number of packets that are handled before the recording begins.
    pub skip: u32,
    /// Instructions after which the work on a burst is let go natively, and not recorded.
    pub longest: u64,
    /// Time after which the recording ends with the packets that it has.
    pub time: Duration,
    /// Version of the program, as the recording shall state it.
    pub version: String,
    /// Name and version of the caller, as the recording shall state it.
    pub recorder: String,
}

/// The program to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program that is started, and ended when the recording has its packets.
    Run {
        /// The program: a path, or a name that is looked for as the shell does.
        program: PathBuf,
        /// Arguments of the program.
        arguments: Vec<String>,
    },
    /// A process that runs already, and goes on afterwards.
    Attach(i32),
}

/// Where the work of packets begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Between {
    /// At the receive and transmit functions of DPDK's drivers.
    Dpdk,
    /// At system calls that receive from and send to sockets, and those that wait for events.
    Sockets {
        /// Sockets whose messages are packets; all sockets if there is none.
        only: Option<Sockets>,
    },
    /// At addresses.
    Addresses {
        /// Symbol, or address as a disassembler prints it (`0x401136`), at which the work begins.
        enter: String,
        /// Symbol or address at which the work ends. Without it the work ends when the function that was entered
        /// returns.
        leave: Option<String>,
        /// Address and length of the frame when the work begins, if they are known.
        frame: Option<(Value, Value)>,
    },
}

/// Protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP over IPv4 or IPv6.
    Tcp,
    /// UDP over IPv4 or IPv6.
    Udp,
}

/// Sockets of a protocol, of a local port, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// The protocol; any protocol without it.
    pub protocol: Option<Protocol>,
    /// The local port, which is the server's; any port without it.
    pub port: Option<u16>,
}

impl Sockets {
    /// Reads `udp`, `tcp`, a port, or both as in `udp:11211`.
    ///
    /// # Errors
    /// Returns one sentence for other text.
    pub fn parse(text: &str) -> Result<Sockets, Error> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (Some(name), Some(port)),
            None if text.starts_with(|c: char| c.is_ascii_digit()) => (None, Some(text)),
            None => (Some(text), None),
        };
        let protocol = match name {
            Some("tcp") => Some(Some(Protocol::Tcp)),
            Some("udp") => Some(Some(Protocol::Udp)),
            None => Some(None),
            Some(_) => None,
        };
        let port = port.map(|p| p.parse().ok().filter(|p| *p > 0));
        match (protocol, port) {
            (Some(protocol), None) => Ok(Sockets { protocol, port: None }),
            (Some(protocol), Some(Some(port))) => Ok(Sockets { protocol, port: Some(port) }),
            _ => {
                Err(Error(format!("{text:?} names no sockets; write tcp, udp, a local port, or both as in udp:11211.")))
            }
        }
    }
}

/// A number that is known when a packet's work begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Contents of a general register: 0 to 15 for RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    Register(usize),
    /// A fixed number.
    Number(u64),
}

const NAMES: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

impl Value {
    /// Reads the name of a register or a decimal number.
    ///
    /// # Errors
    /// Returns one sentence for other text.
    pub fn parse(text: &str) -> Result<Value, Error> {
        let register = NAMES.iter().position(|n| *n == text).map(Value::Register);
        register.or_else(|| text.parse().ok().map(Value::Number)).ok_or_else(|| {
            Error(format!("{text:?} is neither a number nor a register, such as rdi for the first argument."))
        })
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn value(self, r: &instruction::Registers) -> u64 {
        match self {
            Value::Register(n) => r.general[n],
            Value::Number(n) => n,
        }
    }
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Packets recorded.
    pub packets: u32,
    /// Packets skipped.
    pub skipped: u32,
}

/// Answer to a [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The recording goes on.
    Continue,
    /// The recording ends with the packets that it has.
    Finish,
    /// The recording ends, and what it has is not needed.
    Abandon,
}

/// Records a program. `progress` is called about ten times a second while the program does something that is watched.
/// SIGINT, SIGTERM and SIGHUP end the recording and let the program go.
///
/// # Errors
/// Returns one sentence if the program cannot be recorded, or handled no packet.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn record(o: &Options, progress: &mut dyn FnMut(Progress) -> Told) -> Result<Recording, Error> {
    use hostnet_recording::{About, Boundary};
    let begun = std::time::SystemTime::now();
    let o = &Options { target: found(&o.target)?, ..o.clone() };
    let command = command(&o.target);
    let builder = trace::record(o, progress)?;
    let (threads, pages, packets) = builder.finish(o.packets as usize);
    let program = match &o.target {
        Target::Run { program, .. } => program.clone(),
        Target::Attach(_) => PathBuf::from(command.first().cloned().unwrap_or_default()),
    };
    let about = About {
        program: program.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
        version: o.version.clone(),
        command,
        date: date(begun.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs()),
        machine: machine(),
        recorder: o.recorder.clone(),
        boundary: match o.between {
            Between::Dpdk => Boundary::Dpdk,
            Between::Sockets { .. } => Boundary::Sockets,
            Between::Addresses { .. } => Boundary::Addresses,
        },
    };
    Ok(Recording { about, threads, pages, packets })
}

/// Refuses: programs are recorded on Linux and x86-64 only.
///
/// # Errors
/// Returns one sentence.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn record(_: &Options, _: &mut dyn FnMut(Progress) -> Told) -> Result<Recording, Error> {
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    Err(Error(format!(
        "programs are recorded on Linux and x86-64 only, and this is {system} on {processor}; recordings are replayed anywhere."
    )))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn command(target: &Target) -> Vec<String> {
    match target {
        Target::Run { program, arguments } => {
            std::iter::once(program.to_string_lossy().into_owned()).chain(arguments.iter().cloned()).collect()
        }
        Target::Attach(pid) => {
            let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.split_terminator('\0').map(str::to_string).collect()
        }
    }
}

/// The target with a program that exists and can be executed.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn found(target: &Target) -> Result<Target, Error> {
    use std::os::unix::fs::PermissionsExt;
    let Target::Run { program, arguments } = target else { return Ok(target.clone()) };
    let named = |what: &str| Error(format!("{}: {what}.", program.display()));
    let path = if program.components().count() > 1 {
        program.clone()
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&folders).map(|f| f.join(program)).find(|p| p.is_file());
        in_path
            .ok_or_else(|| named("is not in the directories of PATH; write ./NAME for a program of this directory"))?
    };
    let about = std::fs::metadata(&path).map_err(|_| named("does not exist"))?;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return Err(named("is no program that can be executed"));
    }
    Ok(Target::Run { program: path, arguments: arguments.clone() })
}

/// A time in UTC: seconds since 1970 in the proleptic Gregorian calendar.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn date(seconds: u64) -> String {
    let (day, second) = ((seconds / 86400) as i64, seconds % 86400);
    // Years that begin in March: the leap day is the last day of a year.
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (year + era * 400 + i64::from(month > 9), if month < 10 { month + 3 } else { month - 9 });
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map_or("", |m| m.1);
    format!("{model}, Linux {} x86_64", read("/proc/sys/kernel/osrelease").trim())
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Expected values are those of `date -u -d @SECONDS`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_795_729_048), "2026-11-26T21:37:28Z");
    }

    #[test]
    fn sockets_are_named_by_protocol_and_port() {
        let parsed = |text| Sockets::parse(text).map(|s| (s.protocol, s.port)).map_err(|e| e.0);
        assert_eq!(parsed("udp"), Ok((Some(Protocol::Udp), None)));
        assert_eq!(parsed("6379"), Ok((None, Some(6379))));
        assert_eq!(parsed("tcp:80"), Ok((Some(Protocol::Tcp), Some(80))));
        for wrong in ["", "sctp", "udp:", "udp:0", "tcp:65536", ":80"] {
            assert!(parsed(wrong).unwrap_err().ends_with("as in udp:11211."), "{wrong}");
        }
    }

    #[test]
    fn programs_that_do_not_exist_are_named() {
        let run = |p: &str| found(&Target::Run { program: p.into(), arguments: vec![] }).unwrap_err().0;
        assert!(run("/no/such").starts_with("/no/such: does not exist"));
        assert!(run("no-such-program").contains("is not in the directories of PATH"));
        assert!(run("/etc/passwd").contains("is no program"));
    }
}
