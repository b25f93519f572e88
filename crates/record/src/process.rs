//! Knowledge of the kernel about a process: its mappings, its memory, its descriptors, and symbols of its program files.

use crate::indirect;
use crate::sys::Tid;
use crate::{Protocol, Sockets};
use hostnet_recording::PageKind;
use object::{Object, ObjectSymbol};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Function that the dynamic loader calls for debuggers, and exports.
const LOADER_STOP: &str = "_dl_debug_state";

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub executable: bool,
    pub path: String,
    pub kind: PageKind,
}

/// Where a function is.
pub(crate) enum Function {
    /// The address of its first instruction.
    At(u64),
    /// The address of the word that tells, and which the loader has not written yet.
    Awaited(u64),
}

/// A process that is recorded.
pub(crate) struct Process {
    pub pid: Tid,
    memory: File,
    mappings: Vec<Mapping>,
    /// Answer of [`Process::loader_stop`], which looks once.
    loader_stop: Option<Option<u64>>,
}

impl Process {
    pub(crate) fn open(pid: Tid) -> std::io::Result<Process> {
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        Ok(Process { pid, memory, mappings: Vec::new(), loader_stop: None })
    }

    /// Reads memory of the process, up to the first byte that cannot be read.
    pub(crate) fn read(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        let mut have = 0;
        while have < bytes {
            // Pieces within pages, as a read that runs into a hole fails as a whole.
            let at = address + have as u64;
            let piece = (bytes - have).min((4096 - at % 4096) as usize);
            match self.memory.read_at(&mut buffer[have..have + piece], at) {
                Ok(n) if n > 0 => have += n,
                _ => break,
            }
        }
        buffer.truncate(have);
        buffer
    }

    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.read(address, 8).try_into().ok()?))
    }

    /// Reads the mappings anew.
    pub(crate) fn refresh(&mut self) {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        self.mappings = mappings(&text);
    }

    /// The mapping of an address.
    pub(crate) fn mapping(&self, address: u64) -> Option<&Mapping> {
        let at = self.mappings.partition_point(|m| m.end <= address);
        self.mappings.get(at).filter(|m| m.start <= address)
    }

    /// Whether an address is one of code.
    pub(crate) fn executes(&mut self, address: u64) -> bool {
        if self.mapping(address).is_none() {
            self.refresh();
        }
        self.mapping(address).is_some_and(|m| m.executable)
    }

    /// Address of the function that the dynamic loader calls for debuggers when the list of loaded files has changed: after it
    /// has loaded the program's libraries and before their constructors, and at each dlopen(). None in a static program.
    pub(crate) fn loader_stop(&mut self) -> Option<u64> {
        if self.loader_stop.is_none() {
            self.refresh();
            self.loader_stop = Some(self.symbol(LOADER_STOP).map(|(address, _)| address));
        }
        self.loader_stop.flatten()
    }

    /// Whether a descriptor is a socket, and one of those that `only` names.
    pub(crate) fn is_socket(&self, descriptor: u64, only: Option<Sockets>) -> bool {
        let Ok(to) = std::fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid)) else { return false };
        let to = to.to_string_lossy();
        let Some(inode) = to.strip_prefix("socket:[").and_then(|t| t.strip_suffix(']')) else { return false };
        only.is_none_or(|only| self.is_among(inode, only))
    }

    /// Whether the kernel lists the socket `inode` among those of the protocol and the local port.
    fn is_among(&self, inode: &str, only: Sockets) -> bool {
        let lists = [(Protocol::Tcp, "tcp"), (Protocol::Tcp, "tcp6"), (Protocol::Udp, "udp"), (Protocol::Udp, "udp6")];
        lists.iter().filter(|(p, _)| only.protocol.is_none_or(|o| o == *p)).any(|(_, list)| {
            let text = std::fs::read_to_string(format!("/proc/{}/net/{list}", self.pid)).unwrap_or_default();
            let port = local_port(&text, inode);
            port.is_some_and(|p| only.port.is_none_or(|o| o == p))
        })
    }

    /// Address of a symbol in the program or in a library that is loaded, with its size.
    pub(crate) fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        self.files().find_map(|m| self.file_symbol(m, name))
    }

    /// The function of a name in the program or in a library that is loaded.
    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        self.files().find_map(|m| {
            let bytes = std::fs::read(self.file(&m.path)).ok()?;
            match indirect::resolver(&bytes, name) {
                Some(resolver) => self.implementation(m, resolver, name),
                None => self.file_symbol(m, name).map(|(address, _)| Function::At(address)),
            }
        })
    }

    /// The implementation of an indirect function, whose file is mapped from `of` on.
    fn implementation(&self, of: &Mapping, resolver: u64, name: &str) -> Option<Function> {
        let code = |address| self.mapping(address).is_some_and(|m| m.executable && m.path == of.path);
        let mut awaited = None;
        for m in self.files() {
            let Ok(bytes) = std::fs::read(self.file(&m.path)) else { continue };
            let Some(bias) = bias(&bytes, m) else { continue };
            for (address, initial) in indirect::words(&bytes, name, (m.path == of.path).then_some(resolver)) {
                let place = address.wrapping_add(bias);
                match self.word(place) {
                    Some(value) if value == initial || value == initial.wrapping_add(bias) => awaited = Some(place),
                    Some(value) if code(value) => return Some(Function::At(value)),
                    _ => {}
                }
            }
        }
        awaited.map(Function::Awaited)
    }

    /// The first mapping of each file that has code.
    fn files(&self) -> impl Iterator<Item = &Mapping> {
        let all = self.mappings.iter().enumerate().filter(|(_, m)| m.path.starts_with('/'));
        let first = all.filter(|(i, m)| self.mappings[..*i].iter().all(|n| n.path != m.path));
        first.map(|(_, m)| m).filter(|m| self.mappings.iter().any(|n| n.path == m.path && n.executable))
    }

    /// Address at which the program's own instruction at `address`, as a disassembler prints it, was loaded.
    pub(crate) fn own_address(&self, address: u64) -> Option<u64> {
        let program = std::fs::read_link(format!("/proc/{}/exe", self.pid)).ok()?;
        let program = program.to_string_lossy();
        let first = self.mappings.iter().find(|m| m.path == program)?;
        Some(address.wrapping_add(bias(&std::fs::read(self.file(&first.path)).ok()?, first)?))
    }

    /// A file of the process, in the file system that the process sees.
    fn file(&self, path: &str) -> PathBuf {
        let own = PathBuf::from(format!("/proc/{}/root{path}", self.pid));
        if own.exists() {
            own
        } else {
            path.into()
        }
    }

    fn file_symbol(&self, m: &Mapping, name: &str) -> Option<(u64, u64)> {
        let bytes = std::fs::read(self.file(&m.path)).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        // The loader has copies of functions of the C library for itself, which it does not export.
        let is_loader = file.dynamic_symbols().any(|s| s.name() == Ok(LOADER_STOP));
        let own = (!is_loader).then(|| file.symbols());
        let found = file
            .dynamic_symbols()
            .chain(own.into_iter().flatten())
            .find(|s| s.is_definition() && s.name().is_ok_and(|n| n == name || n.split('@').next() == Some(name)))?;
        Some((found.address().wrapping_add(bias(&bytes, m)?), found.size()))
    }
}

/// Difference between the addresses of a loaded file and those in the file. `m` is the file's first mapping.
fn bias(bytes: &[u8], m: &Mapping) -> Option<u64> {
    use object::ObjectSegment;
    let file = object::File::parse(bytes).ok()?;
    let segment = file.segments().find(|s| {
        let (offset, size) = s.file_range();
        offset & !4095 <= m.offset && m.offset < offset + size.max(1)
    })?;
    let (offset, _) = segment.file_range();
    Some(m.start.wrapping_sub(m.offset).wrapping_sub(segment.address().wrapping_sub(offset)))
}

/// Local port of a socket in a list of the kernel's, such as `/proc/net/tcp`.
fn local_port(list: &str, inode: &str) -> Option<u16> {
    let line = list.lines().find(|l| l.split_whitespace().nth(9) == Some(inode))?;
    let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
    u16::from_str_radix(port, 16).ok()
}

fn mappings(text: &str) -> Vec<Mapping> {
    let mut out: Vec<Mapping> = Vec::new();
    let mut programs = HashMap::new();
    for line in text.lines() {
        let mut words = line.splitn(6, ' ');
        let (Some(range), Some(rights), Some(offset)) = (words.next(), words.next(), words.next()) else { continue };
        let path = words.nth(2).unwrap_or_default().trim_start().to_string();
        let number = |s: &str| u64::from_str_radix(s, 16).ok();
        let Some((Some(start), Some(end))) = range.split_once('-').map(|(a, b)| (number(a), number(b))) else {
            continue;
        };
        let executable = rights.contains('x');
        if executable && path.starts_with('/') {
            programs.insert(path.clone(), ());
        }
        let offset = number(offset).unwrap_or_default();
        out.push(Mapping { start, end, offset, executable, path, kind: PageKind::Mmap });
    }
    for i in 0..out.len() {
        // Variables without an initial value lie in anonymous memory behind the program's file.
        let follows = i > 0 && out[i].path.is_empty() && out[i - 1].end == out[i].start;
        out[i].kind = match &*out[i].path {
            "[heap]" => PageKind::Heap,
            "[stack]" => PageKind::Stack,
            "[vdso]" | "[vvar]" | "[vvar_vclock]" => PageKind::Global,
            path if programs.contains_key(path) => PageKind::Global,
            "" if follows && programs.contains_key(&out[i - 1].path) => PageKind::Global,
            _ => PageKind::Mmap,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists are those of proc_net_tcp.txt in the kernel's documentation, and of a socket on [::]:80.
    #[test]
    fn sockets_have_local_ports() {
        let list = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  46: 010310AC:9C4C 030310AC:1770 01 00000150:00000000 01:00000019 00000000  1000        0 54165785 4 cd1e6040 25 4 27 3 -1
   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0
";
        assert_eq!(local_port(list, "54165785"), Some(40012));
        assert_eq!(local_port(list, "77"), Some(80));
        assert_eq!(local_port(list, "1000"), None);
    }

    #[test]
    fn mappings_have_kinds() {
        let text = "\
00400000-00401000 r--p 00000000 08:01 1 /usr/bin/a program
00401000-00402000 r-xp 00001000 08:01 1 /usr/bin/a program
00403000-00404000 rw-p 00003000 08:01 1 /usr/bin/a program
00404000-00406000 rw-p 00000000 00:00 0 
01000000-01021000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000800000 rw-p 00000000 00:00 0 
7f0001000000-7f0001001000 rw-s 00000000 00:05 9 /dev/hugepages/rtemap_0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
";
        let all = mappings(text);
        use PageKind::{Global, Heap, Mmap, Stack};
        let kinds: Vec<PageKind> = all.iter().map(|m| m.kind).collect();
        assert_eq!(kinds, [Global, Global, Global, Global, Heap, Mmap, Mmap, Stack]);
        assert_eq!((&*all[1].path, all[1].executable, all[1].offset), ("/usr/bin/a program", true, 0x1000));
    }
}
