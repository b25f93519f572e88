//! Configuration of a port; every feature of the interface is a switch here.

use crate::desc::MAX_SEGMENTS;
use crate::error::Error;

/// How descriptors share cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Layout {
    /// Up to four descriptors per 64-byte line with one signal.
    Grouped = 0,
    /// Four independent descriptors per line, each with its own signal (E810 format).
    Packed = 1,
    /// One descriptor per line.
    Padded = 2,
}

/// How the consumer learns of new descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Signal {
    /// A flag in the descriptor line itself.
    Inline = 0,
    /// Tail and head registers, each on its own line.
    Register = 1,
}

/// Where the pages of an object are placed on a machine with several NUMA nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Home {
    /// On the node of the side that writes the descriptors.
    Writer = 0,
    /// On the node of the side that reads the descriptors.
    Reader = 1,
    /// On the host's node.
    Host = 2,
    /// On the NIC's node.
    Nic = 3,
}

/// Configuration of a port. `Default` is CC-NIC with every feature on;
/// [`Config::unoptimised`] is the E810-style interface.
///
/// ```
/// use ccnic::{Config, Layout};
/// let config = Config { layout: Layout::Padded, ..Config::default() };
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Queue pairs, 1 to 64; each belongs to one thread on either side.
    pub queues: u32,
    /// Descriptors per ring, a power of two, 16 to 65536.
    pub slots: u32,
    /// Descriptor layout of both rings.
    pub layout: Layout,
    /// Signalling of both rings.
    pub signal: Signal,
    /// The NIC allocates and frees buffers itself; otherwise the host posts blank RX buffers
    /// and sweeps TX completions, as for a PCIe NIC.
    pub shared_pool: bool,
    /// Recently freed buffers are reused first, from per-queue stacks on both sides.
    pub recycle: bool,
    /// Successive allocations from the pool are never adjacent in memory.
    pub nonseq: bool,
    /// Packets up to `small_bytes` use small buffers when the size is known.
    pub small: bool,
    /// Payload stores bypass the caches (ablation).
    pub nt_stores: bool,
    /// Large buffers before the split into small ones, 64 to 2^20; without a shared pool at least 16 per queue are left.
    pub buffers: u32,
    /// Bytes of a large buffer, a power of two, 1024 to 32768.
    pub large_bytes: u32,
    /// Bytes of a small buffer, a power of two, 64 to 1024; with [`small`](Self::small) no more than the payload of a
    /// large buffer.
    pub small_bytes: u32,
    /// Share of the large buffers that is split into small ones, in percent, 0 to 90.
    pub small_percent: u32,
    /// Objects outside the pool that TX segments may point to (see `HostPort::object`).
    pub objects: u32,
    /// Bytes per object, a power of two, 64 to 32768.
    pub object_bytes: u32,
    /// Buffers a recycle stack holds before its coldest half goes to the pool.
    pub stack: u32,
    /// Buffers moved from the pool to a stack in one step, 1 to 256.
    pub bulk: u32,
    /// Consumed RX lines the host keeps before it clears them.
    pub rx_lazy: u32,
    /// Consumed TX lines the NIC keeps before it clears them.
    pub tx_lazy: u32,
    /// Back the region with transparent 2 MiB pages, where the kernel can give them; see
    /// [`HostPort::notice`](crate::HostPort::notice).
    pub huge: bool,
    /// NUMA node of the host threads, if pages are to be placed.
    pub host_node: Option<u32>,
    /// NUMA node of the NIC threads, if pages are to be placed.
    pub nic_node: Option<u32>,
    /// Placement of the rings.
    pub ring_home: Home,
    /// Placement of the buffers.
    pub pool_home: Home,
    /// Queue pairs the NIC serves, from the first on; 0: all of them.
    pub served: u32,
    /// Bytes free in front of the payload of large buffers, a multiple of 64, so that
    /// applications can prepend headers.
    pub headroom: u32,
    /// Most payload bytes of a large buffer, at least 64; 0: all behind the headroom. What is left over
    /// staggers payload starts by whole lines, so that they do not all share a cache set.
    pub payload: u32,
    /// Most bytes of a frame, in either direction; 0: what four large buffers hold. Packets to
    /// be segmented by the NIC (see [`Offload`](crate::Offload)) may be longer.
    pub mtu: u32,
    /// Microseconds for which a side polls in vain before it sleeps until the other side wakes
    /// it (*event mode*); 0: it polls for ever.
    pub poll_us: u32,
    /// Packets may carry [`Offload`](crate::Offload) headers, where the NIC agrees. 0: none; 1:
    /// checksums left to the other side, and packets that the NIC is to segment; 2: also packets
    /// that the NIC has merged.
    pub offload: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            queues: 1,
            slots: 1024,
            layout: Layout::Grouped,
            signal: Signal::Inline,
            shared_pool: true,
            recycle: true,
            nonseq: true,
            small: true,
            nt_stores: false,
            buffers: 2048,
            large_bytes: 4096,
            small_bytes: 128,
            small_percent: 25,
            objects: 0,
            object_bytes: 4096,
            stack: 512,
            bulk: 32,
            rx_lazy: 8,
            tx_lazy: 1,
            huge: false,
            host_node: None,
            nic_node: None,
            ring_home: Home::Writer,
            pool_home: Home::Host,
            served: 0,
            headroom: 0,
            payload: 0,
            mtu: 0,
            poll_us: 0,
            offload: 0,
        }
    }
}

impl Config {
    /// The E810-style interface over the same memory: packed descriptors, head and tail
    /// registers, one size of buffer in a pool that only the host touches.
    pub fn unoptimised() -> Config {
        Config {
            layout: Layout::Packed,
            signal: Signal::Register,
            shared_pool: false,
            recycle: false,
            nonseq: false,
            small: false,
            ..Config::default()
        }
    }

    /// Checks every value; the error is one sentence with the key, the value and the range.
    pub fn check(&self) -> Result<(), Error> {
        range("queues", self.queues, 1, 64)?;
        range("slots", self.slots, 16, 65536)?;
        power("slots", self.slots)?;
        range("buffers", self.buffers, 64, 1 << 20)?;
        range("large_bytes", self.large_bytes, 1024, 32768)?;
        power("large_bytes", self.large_bytes)?;
        range("small_bytes", self.small_bytes, 64, 1024)?;
        power("small_bytes", self.small_bytes)?;
        range("small_percent", self.small_percent, 0, 90)?;
        range("objects", self.objects, 0, 1 << 20)?;
        range("object_bytes", self.object_bytes, 64, 32768)?;
        power("object_bytes", self.object_bytes)?;
        range("stack", self.stack, 1, 1 << 16)?;
        range("bulk", self.bulk, 1, 256)?;
        range("rx_lazy", self.rx_lazy, 1, self.slots)?;
        range("tx_lazy", self.tx_lazy, 1, self.slots)?;
        range("served", self.served, 0, self.queues)?;
        range("headroom", self.headroom, 0, self.large_bytes / 2)?;
        if self.headroom % 64 != 0 {
            let nearest = (self.headroom + 32) / 64 * 64;
            return Err(Error::Config(format!(
                "headroom = {} is not a multiple of 64; the nearest valid value is {nearest}",
                self.headroom
            )));
        }
        if self.payload != 0 {
            range("payload", self.payload, 64, self.large_bytes - self.headroom)?;
        }
        // Small packets go into large buffers where small ones run out.
        if self.small && self.small_bytes > self.capacity() {
            return Err(Error::Config(format!(
                "small_bytes = {} is more than the {} payload bytes of a large buffer; the nearest valid value is {}",
                self.small_bytes,
                self.capacity(),
                1 << self.capacity().ilog2()
            )));
        }
        let (each, least) = (Config::HOST_ONLY, Config::HOST_ONLY * self.queues);
        if !self.shared_pool && self.large() < least {
            let nearest = (least..).find(|&buffers| Config { buffers, ..self.clone() }.large() >= least);
            return Err(Error::Config(format!(
                "buffers = {} leaves fewer than {each} large buffers for each of {} queues; the nearest valid value is {}",
                self.buffers,
                self.queues,
                nearest.unwrap_or(least)
            )));
        }
        if !self.shared_pool && self.tx_lazy > self.most_tx_lazy() {
            return Err(Error::Config(format!(
                "tx_lazy = {} lets the NIC keep all buffers that a queue has to send; the nearest valid value is {}",
                self.tx_lazy,
                self.most_tx_lazy()
            )));
        }
        if matches!(self.pool_home, Home::Writer | Home::Reader) {
            return Err(Error::Config(format!(
                "pool_home = {} is neither {} (the host) nor {} (the NIC), as both sides write buffers",
                self.pool_home as u32,
                Home::Host as u32,
                Home::Nic as u32
            )));
        }
        if self.mtu != 0 {
            range("mtu", self.mtu, 64, self.capacity() * MAX_SEGMENTS as u32)?;
        }
        range("offload", self.offload, 0, 2)?;
        range("poll_us", self.poll_us, 0, 1_000_000)
    }

    /// Most bytes of a frame.
    pub fn frame(&self) -> u32 {
        if self.mtu == 0 {
            self.capacity() * MAX_SEGMENTS as u32
        } else {
            self.mtu
        }
    }

    /// Queue pairs that a NIC has to open and poll.
    pub fn served(&self) -> u32 {
        if self.served == 0 {
            self.queues
        } else {
            self.served
        }
    }

    /// Most payload bytes of one large buffer; longer packets take several.
    pub fn capacity(&self) -> u32 {
        if self.payload == 0 {
            self.large_bytes - self.headroom
        } else {
            self.payload
        }
    }

    /// Number of large buffers that are split.
    pub(crate) fn split(&self) -> u32 {
        if self.small {
            (u64::from(self.buffers) * u64::from(self.small_percent) / 100) as u32
        } else {
            0
        }
    }

    /// Large buffers, those that are not split.
    pub(crate) fn large(&self) -> u32 {
        self.buffers - self.split()
    }

    /// Least large buffers per queue without a shared pool: as many to send as to receive, for two packets of the most
    /// segments each.
    const HOST_ONLY: u32 = 4 * MAX_SEGMENTS as u32;

    /// Most blank RX buffers that the host posts per queue: its share of the large buffers without those to send.
    pub(crate) fn blanks(&self) -> usize {
        (self.large() / self.queues) as usize - self.to_send()
    }

    /// Large buffers that a queue keeps to send where the host posts blanks: 256, or half its share where that is small.
    pub(crate) fn to_send(&self) -> usize {
        256.min(self.large() / self.queues / 2) as usize
    }

    /// Largest `tx_lazy` without a shared pool: the lines that the NIC keeps leave buffers for one more packet of the most segments.
    fn most_tx_lazy(&self) -> u32 {
        const MOST: u32 = MAX_SEGMENTS as u32;
        let share = self.large() / self.queues;
        let to_send = share - (self.blanks() as u32).min(self.slots - MOST);
        let group = if self.layout == Layout::Grouped { MOST } else { 1 };
        let most = (to_send - MOST) / group + 1;
        // A ring that is three quarters consumed is cleared in any case.
        if most >= self.slots / group / 4 * 3 {
            self.slots
        } else {
            most
        }
    }

    pub(crate) const WORDS: usize = 30;

    /// The message form, one little-endian word per field.
    pub(crate) fn to_words(&self) -> [u32; Config::WORDS] {
        let node = |n: Option<u32>| n.map_or(u32::MAX, |n| n);
        [
            self.queues,
            self.slots,
            self.layout as u32,
            self.signal as u32,
            self.shared_pool.into(),
            self.recycle.into(),
            self.nonseq.into(),
            self.small.into(),
            self.nt_stores.into(),
            self.buffers,
            self.large_bytes,
            self.small_bytes,
            self.small_percent,
            self.objects,
            self.object_bytes,
            self.stack,
            self.bulk,
            self.rx_lazy,
            self.tx_lazy,
            self.huge.into(),
            node(self.host_node),
            node(self.nic_node),
            self.ring_home as u32,
            self.pool_home as u32,
            self.served,
            self.headroom,
            self.payload,
            self.mtu,
            self.poll_us,
            self.offload,
        ]
    }

    /// Reads the message form. Words that are missing keep their defaults; words this version
    /// does not know must be zero. Every value is checked.
    pub(crate) fn from_words(given: &[u32]) -> Result<Config, Error> {
        if let Some(word) = given.iter().skip(Config::WORDS).find(|w| **w != 0) {
            return Err(Error::Config(format!(
                "the configuration has a setting ({word}) that this version does not know; set it to 0 or update"
            )));
        }
        let mut w = Config::default().to_words();
        for (to, from) in w.iter_mut().zip(given) {
            *to = *from;
        }
        let flag = |v: u32| v != 0;
        let node = |v: u32| (v != u32::MAX).then_some(v);
        let config = Config {
            queues: w[0],
            slots: w[1],
            layout: match w[2] {
                0 => Layout::Grouped,
                1 => Layout::Packed,
                2 => Layout::Padded,
                v => return Err(unknown("layout", v)),
            },
            signal: match w[3] {
                0 => Signal::Inline,
                1 => Signal::Register,
                v => return Err(unknown("signal", v)),
            },
            shared_pool: flag(w[4]),
            recycle: flag(w[5]),
            nonseq: flag(w[6]),
            small: flag(w[7]),
            nt_stores: flag(w[8]),
            buffers: w[9],
            large_bytes: w[10],
            small_bytes: w[11],
            small_percent: w[12],
            objects: w[13],
            object_bytes: w[14],
            stack: w[15],
            bulk: w[16],
            rx_lazy: w[17],
            tx_lazy: w[18],
            huge: flag(w[19]),
            host_node: node(w[20]),
            nic_node: node(w[21]),
            ring_home: home(w[22])?,
            pool_home: home(w[23])?,
            served: w[24],
            headroom: w[25],
            payload: w[26],
            mtu: w[27],
            poll_us: w[28],
            offload: w[29],
        };
        config.check()?;
        Ok(config)
    }
}

fn home(v: u32) -> Result<Home, Error> {
    match v {
        0 => Ok(Home::Writer),
        1 => Ok(Home::Reader),
        2 => Ok(Home::Host),
        3 => Ok(Home::Nic),
        v => Err(unknown("home", v)),
    }
}

fn unknown(key: &str, value: u32) -> Error {
    Error::Config(format!("{key}: the code {value} is unknown; use a value of the header of this version"))
}

fn range(key: &str, value: u32, low: u32, high: u32) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::Config(format!(
        "{key} = {value} is outside {low}..={high}; the nearest valid value is {}",
        value.clamp(low, high)
    )))
}

fn power(key: &str, value: u32) -> Result<(), Error> {
    if value.is_power_of_two() {
        return Ok(());
    }
    let above = value.next_power_of_two();
    let nearest = if above - value <= value - above / 2 { above } else { above / 2 };
    Err(Error::Config(format!("{key} = {value} is not a power of two; the nearest valid value is {nearest}")))
}
