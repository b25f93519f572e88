//! What the machine says of itself: /proc, /sys and SMBIOS.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A data or unified cache of the first CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// Level, from 1.
    pub level: u32,
    /// Capacity.
    pub bytes: u64,
    /// Associativity; 0 where it is not said.
    pub ways: u32,
    /// Number of logical CPUs that share the cache.
    pub shared_by: u32,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Logical CPUs of the node.
    pub cpus: Vec<u32>,
    /// Memory of the node.
    pub bytes: u64,
}

/// A memory module, from SMBIOS (readable by root).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dimm {
    /// Kind of memory, such as DDR5; "unknown" for others.
    pub kind: String,
    /// Capacity.
    pub bytes: u64,
    /// Transfers per microsecond as configured; 0 where it is not said.
    pub mts: u32,
    /// Ranks; 0 where it is not said.
    pub ranks: u32,
    /// Place of the module, as the mainboard names it.
    pub place: String,
}

/// An Ethernet device behind PCIe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nic {
    /// Address on the bus.
    pub address: String,
    /// Vendor and device numbers.
    pub id: String,
    /// Driver, if there is one.
    pub driver: Option<String>,
    /// Transfers per nanosecond and lane.
    pub gts: Option<f64>,
    /// Lanes.
    pub lanes: Option<u32>,
    /// Largest payload of a packet (MPS) in bytes; readable by root.
    pub max_payload: Option<u32>,
    /// Largest read request (MRRS) in bytes; readable by root.
    pub max_read_request: Option<u32>,
    /// Speed of the network in Mb/s.
    pub mbps: Option<u32>,
}

/// What the machine says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Architecture, as Rust names it.
    pub architecture: String,
    /// Maker of the processor.
    pub vendor: String,
    /// Name of the processor.
    pub cpu: String,
    /// Family of the processor.
    pub family: u32,
    /// Model of the processor.
    pub model: u32,
    /// Features of the processor, in the kernel's words.
    pub features: Vec<String>,
    /// Whether a hypervisor runs below.
    pub hypervisor: bool,
    /// Kernel.
    pub kernel: String,
    /// Logical CPUs that are online.
    pub cpus: u32,
    /// Hardware threads of a core.
    pub threads_per_core: u32,
    /// Sockets.
    pub sockets: u32,
    /// First logical CPU of each core.
    pub first_threads: Vec<u32>,
    /// Base clock in kHz, where the kernel says it.
    pub base_khz: Option<u64>,
    /// Data and unified caches of the first CPU.
    pub caches: Vec<Cache>,
    /// NUMA nodes.
    pub nodes: Vec<Node>,
    /// Memory.
    pub memory_bytes: u64,
    /// Memory that programs could still have.
    pub available_bytes: u64,
    /// Ways that resctrl can give away in the L3; absent where it is not mounted.
    pub l3_classes_ways: Option<u32>,
    /// Memory modules.
    pub dimms: Vec<Dimm>,
    /// Ethernet devices behind PCIe.
    pub nics: Vec<Nic>,
}

impl Machine {
    /// One CPU of each core of the first node that has an allowed CPU.
    pub fn first_threads(&self, allowed: &[u32]) -> Vec<u32> {
        let may = |c: &u32| allowed.contains(c);
        let node = self.nodes.iter().find(|n| n.cpus.iter().any(may));
        let here = |c: &u32| node.is_none_or(|n| n.cpus.contains(c));
        let found: Vec<u32> = self.first_threads.iter().copied().filter(|c| may(c) && here(c)).collect();
        if found.is_empty() {
            allowed.iter().copied().take(1).collect()
        } else {
            found
        }
    }
}

/// Reads what the machine says of itself below `root`, which is `/` but in tests. What is not said is empty or absent.
pub fn read(root: &Path) -> Machine {
    let info = text(&root.join("proc/cpuinfo"));
    let field = |key: &str| {
        let line = info.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == key));
        line.and_then(|l| l.split_once(':')).map(|(_, v)| v.trim().to_string()).unwrap_or_default()
    };
    let features: Vec<String> = field("flags").split_whitespace().map(str::to_string).collect();
    let cpu_dir = root.join("sys/devices/system/cpu");
    let online = list(&text(&cpu_dir.join("online")));
    let topology = |cpu: u32, key: &str| text(&cpu_dir.join(format!("cpu{cpu}/topology/{key}")));
    let siblings = |cpu: u32| list(&topology(cpu, "thread_siblings_list"));
    let first_threads = online.iter().copied().filter(|c| siblings(*c).first().is_none_or(|f| f == c)).collect();
    let mut packages: Vec<String> = online.iter().map(|c| topology(*c, "physical_package_id")).collect();
    packages.sort();
    packages.dedup();
    let memory = text(&root.join("proc/meminfo"));
    let kib = |key: &str| {
        let line = memory.lines().find_map(|l| l.strip_prefix(key));
        line.and_then(|l| l.split_whitespace().next()).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    Machine {
        architecture: std::env::consts::ARCH.into(),
        vendor: field("vendor_id"),
        cpu: field("model name"),
        family: field("cpu family").parse().unwrap_or(0),
        model: field("model").parse().unwrap_or(0),
        hypervisor: features.iter().any(|f| f == "hypervisor"),
        features,
        kernel: text(&root.join("proc/sys/kernel/osrelease")),
        cpus: online.len() as u32,
        threads_per_core: online.first().map_or(1, |c| siblings(*c).len().max(1) as u32),
        sockets: packages.len().max(1) as u32,
        first_threads,
        base_khz: text(&cpu_dir.join("cpu0/cpufreq/base_frequency")).parse().ok(),
        caches: caches(&cpu_dir.join(format!("cpu{}/cache", online.first().unwrap_or(&0)))),
        nodes: nodes(&root.join("sys/devices/system/node")),
        memory_bytes: kib("MemTotal:"),
        available_bytes: kib("MemAvailable:"),
        l3_classes_ways: u64::from_str_radix(&text(&root.join("sys/fs/resctrl/info/L3/cbm_mask")), 16)
            .ok()
            .map(u64::count_ones),
        dimms: dimms(&root.join("sys/firmware/dmi/entries")),
        nics: nics(&root.join("sys/bus/pci/devices")),
    }
}

/// Contents of a file without the spaces around them; empty where it cannot be read.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

/// Entries of a directory, sorted; none where it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found
}

/// Numbers of a list such as `0-3,8`.
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// A size such as `48K`.
fn size(text: &str) -> u64 {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = match text.chars().last() {
        Some('K') => 1 << 10,
        Some('M') => 1 << 20,
        Some('G') => 1 << 30,
        _ => 1,
    };
    digits.parse::<u64>().unwrap_or(0) * unit
}

fn caches(dir: &Path) -> Vec<Cache> {
    let one = |dir: PathBuf| {
        let of = |key: &str| text(&dir.join(key));
        let cache = Cache {
            level: of("level").parse().ok()?,
            bytes: size(&of("size")),
            ways: of("ways_of_associativity").parse().unwrap_or(0),
            shared_by: list(&of("shared_cpu_list")).len().max(1) as u32,
        };
        (of("type") != "Instruction" && cache.bytes > 0).then_some(cache)
    };
    let mut found: Vec<Cache> = entries(dir).into_iter().filter_map(one).collect();
    found.sort_by_key(|c| c.level);
    found
}

fn nodes(dir: &Path) -> Vec<Node> {
    let one = |dir: PathBuf| {
        dir.file_name()?.to_str()?.strip_prefix("node")?.parse::<u32>().ok()?;
        let about = text(&dir.join("meminfo"));
        let total = about.lines().find_map(|l| l.split_once("MemTotal:"))?.1;
        let kib = total.split_whitespace().next()?.parse::<u64>().ok()?;
        Some(Node { cpus: list(&text(&dir.join("cpulist"))), bytes: kib * 1024 })
    };
    entries(dir).into_iter().filter_map(one).collect()
}

/// Memory modules: structures of type 17 (System Management BIOS Reference Specification, DSP0134, 7.18).
fn dimms(dir: &Path) -> Vec<Dimm> {
    let of_kind = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("17-"));
    entries(dir).iter().filter(|p| of_kind(p)).filter_map(|p| dimm(&fs::read(p.join("raw")).ok()?)).collect()
}

fn dimm(raw: &[u8]) -> Option<Dimm> {
    let word = |at: usize| Some(u16::from_le_bytes([*raw.get(at)?, *raw.get(at + 1)?]));
    let length = usize::from(*raw.get(1)?);
    let bytes = match word(0x0c)? {
        0 | 0xffff => return None,
        0x7fff => u64::from(word(0x1c)?) | u64::from(word(0x1e)?) << 16,
        kib if kib & 0x8000 != 0 => return None,
        mib => mib.into(),
    } << 20;
    let kind = match raw.get(0x12)? {
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1e => "LPDDR4",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => "unknown",
    };
    let within = |at: usize| at + 2 <= length;
    let speed = if within(0x20) { word(0x20) } else { word(0x15) };
    let ranks = if length > 0x1b { u32::from(*raw.get(0x1b)? & 0x0f) } else { 0 };
    let strings: Vec<&[u8]> = raw.get(length..)?.split(|b| *b == 0).collect();
    let index = usize::from(*raw.get(0x10)?);
    let place = index.checked_sub(1).and_then(|i| strings.get(i)).map(|s| String::from_utf8_lossy(s).into_owned());
    Some(Dimm { kind: kind.into(), bytes, mts: speed.unwrap_or(0).into(), ranks, place: place.unwrap_or_default() })
}

fn nics(dir: &Path) -> Vec<Nic> {
    let one = |dir: PathBuf| {
        let of = |key: &str| text(&dir.join(key));
        // Class 0200: an Ethernet controller.
        if !of("class").starts_with("0x0200") {
            return None;
        }
        let config = fs::read(dir.join("config")).unwrap_or_default();
        let (max_payload, max_read_request) = pcie_limits(&config).unzip();
        let port = entries(&dir.join("net")).into_iter().next();
        Some(Nic {
            address: dir.file_name()?.to_string_lossy().into_owned(),
            id: format!("{}:{}", of("vendor").trim_start_matches("0x"), of("device").trim_start_matches("0x")),
            driver: fs::read_link(dir.join("driver"))
                .ok()
                .and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned())),
            gts: of("current_link_speed").split_whitespace().next().and_then(|v| v.parse().ok()),
            lanes: of("current_link_width").parse().ok().filter(|n| *n > 0),
            max_payload,
            max_read_request,
            mbps: port.and_then(|p| text(&p.join("speed")).parse().ok()),
        })
    };
    entries(dir).into_iter().filter_map(one).collect()
}

/// Largest payload and read request: Device Control of the PCI Express capability (PCI Express Base Specification,
/// 7.5.3.4).
fn pcie_limits(config: &[u8]) -> Option<(u32, u32)> {
    let byte = |at: usize| config.get(at).copied().map(usize::from);
    let mut at = byte(0x34)?;
    for _ in 0..48 {
        match (at, byte(at)?) {
            (0, _) => return None,
            (_, 0x10) => {
                let control = byte(at + 8)? | byte(at + 9)? << 8;
                return Some((128 << (control >> 5 & 7), 128 << (control >> 12 & 7)));
            }
            _ => at = byte(at + 1)?,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_sizes_are_those_of_the_kernel() {
        assert_eq!(list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(list(""), [0; 0]);
        assert_eq!([size("48K"), size("2M"), size("")], [48 << 10, 2 << 20, 0]);
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = std::env::temp_dir().join(format!("hostnet-machine-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/cpuinfo", "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Xeon\nflags\t\t: fpu hypervisor\n");
        put("proc/meminfo", "MemTotal:  1024 kB\nMemAvailable:  512 kB\n");
        put("sys/devices/system/cpu/online", "0-3");
        for cpu in 0..4 {
            put(
                &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
                &format!("{},{}", cpu % 2, cpu % 2 + 2),
            );
            put(&format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), "0");
        }
        for (i, (level, kind, size, ways)) in
            [(1, "Data", "48K", 12), (1, "Instruction", "32K", 8), (3, "Unified", "6M", 12)].into_iter().enumerate()
        {
            let dir = format!("sys/devices/system/cpu/cpu0/cache/index{i}");
            put(&format!("{dir}/level"), &level.to_string());
            put(&format!("{dir}/type"), kind);
            put(&format!("{dir}/size"), size);
            put(&format!("{dir}/ways_of_associativity"), &ways.to_string());
            put(&format!("{dir}/shared_cpu_list"), "0-3");
        }
        put("sys/devices/system/node/node0/cpulist", "0-3");
        put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1024 kB");
        put("sys/fs/resctrl/info/L3/cbm_mask", "fff");
        let m = read(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((m.vendor.as_str(), m.family, m.model, m.hypervisor), ("GenuineIntel", 6, 106, true));
        assert_eq!((m.cpus, m.threads_per_core, m.sockets, m.first_threads.clone()), (4, 2, 1, vec![0, 1]));
        assert_eq!((m.memory_bytes, m.available_bytes, m.l3_classes_ways), (1 << 20, 1 << 19, Some(12)));
        let sizes: Vec<(u32, u64, u32)> = m.caches.iter().map(|c| (c.level, c.bytes, c.ways)).collect();
        assert_eq!(sizes, [(1, 48 << 10, 12), (3, 6 << 20, 12)], "data and unified caches only");
        assert_eq!(m.nodes, [Node { cpus: vec![0, 1, 2, 3], bytes: 1 << 20 }]);
        assert_eq!(m.first_threads(&[1, 3]), [1]);
        assert_eq!(m.first_threads(&[2]), [2], "the second thread where the first is not allowed");
    }

    #[test]
    fn a_module_is_read_as_the_standard_lays_it_out() {
        let mut raw = vec![0; 0x28];
        (raw[0], raw[1], raw[0x10], raw[0x12], raw[0x1b]) = (17, 0x28, 1, 0x22, 2);
        raw[0x0c..0x0e].copy_from_slice(&0x7fffu16.to_le_bytes());
        raw[0x1c..0x20].copy_from_slice(&65536u32.to_le_bytes());
        raw[0x15..0x17].copy_from_slice(&5600u16.to_le_bytes());
        raw[0x20..0x22].copy_from_slice(&4800u16.to_le_bytes());
        raw.extend(b"A1\0\0");
        let expected = Dimm { kind: "DDR5".into(), bytes: 64 << 30, mts: 4800, ranks: 2, place: "A1".into() };
        assert_eq!(dimm(&raw), Some(expected));
        raw[0x0c..0x0e].copy_from_slice(&[0, 0]);
        assert_eq!(dimm(&raw), None, "an empty socket");
    }

    #[test]
    fn limits_of_a_link_are_found_along_the_list_of_capabilities() {
        let mut config = vec![0; 256];
        (config[0x34], config[0x40], config[0x41], config[0x60]) = (0x40, 0x05, 0x60, 0x10);
        // Device Control: payload 1 (256 B), read request 2 (512 B).
        config[0x68..0x6a].copy_from_slice(&0x2020u16.to_le_bytes());
        assert_eq!(pcie_limits(&config), Some((256, 512)));
        assert_eq!(pcie_limits(&config[..64]), None, "what is not root's");
    }
}
