//! A real program, replayed: each packet runs the instructions and the memory accesses that `hostnet record` has
//! recorded for a packet.
//!
//! ```text
//!   recording --compile--> a template for each list of steps --serve--> ops
//!     frame           -->  receive buffer, as far as the simulated frame reaches
//!     reply           -->  transmit buffer
//!     pages           -->  region of the core, or region that the tenant's cores share (times the footprint)
//!     metadata        -->  instructions only: the driver accesses its own
//! ```

pub(super) mod compile;

use super::{AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::region::{RegionKind, Sharing};
use crate::memory::{Sweep, LINE};
use compile::{Act, Compiler, Layout, TemplateStep, PLACES};
use hostnet_recording::{Boundary, Outcome, Recording};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Bytes of the Ethernet, IPv4 and UDP headers in front of a message.
const HEADERS: u32 = 14 + 20 + 8;

/// Largest footprint.
const LARGEST_FOOTPRINT: u32 = 1024;

/// Order in which recorded packets are replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayOrder {
    /// The recorded order; cores begin at different packets.
    #[default]
    Recorded,
    /// Packets are drawn at random.
    Random,
    /// Packets are drawn among the recorded ones whose length is nearest to that of the frame.
    Size,
    /// All packets of a flow replay the same recorded packet. Successive flows have successive recorded packets.
    Flow,
}

/// Cores that share the program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramMemory {
    /// The tenant's cores share all memory except stacks and, in a recording of several threads, the pages that one
    /// thread accessed alone.
    #[default]
    Shared,
    /// Each core has its own copy of all memory.
    Own,
}

/// Size of the program's tables in relation to the recorded size, such as `x8`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Footprint(u32);

impl Default for Footprint {
    fn default() -> Footprint {
        Footprint(1)
    }
}

impl TryFrom<String> for Footprint {
    type Error = String;
    fn try_from(s: String) -> Result<Footprint, String> {
        let n = s.strip_prefix('x').and_then(|n| n.parse().ok()).filter(|n| (1..=LARGEST_FOOTPRINT).contains(n));
        n.map(Footprint).ok_or_else(|| format!("expected \"x1\" to \"x{LARGEST_FOOTPRINT}\", not \"{s}\""))
    }
}

impl From<Footprint> for String {
    fn from(f: Footprint) -> String {
        f.to_string()
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Parameters of a recorded program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedSpec {
    /// Recording that `hostnet record` has written. The file is looked for beside the scenario and in the folders of
    /// platforms.
    pub file: String,
    /// Order in which recorded packets are replayed: "recorded" (the default), "random", "size" or "flow".
    #[serde(default)]
    pub order: ReplayOrder,
    /// Cores that share the program's memory: "shared" (all cores of the tenant, the default) or "own" (none).
    #[serde(default)]
    pub memory: ProgramMemory,
    /// Size of the program's tables in relation to the recorded size: "x1" (the default) to "x1024". Each packet uses
    /// one of the copies, drawn at random. Lines that more than half of the recorded packets access have one copy.
    #[serde(default)]
    pub footprint: Footprint,
}

/// A recorded packet: its template and its fate.
#[derive(Clone, Copy, Debug)]
struct Replayed {
    /// Index of the template.
    template: u32,
    outcome: Outcome,
    /// Bytes of the frame as received.
    received: u32,
}

/// Packets that a core replays, in recorded order, and the same packets by their lengths.
#[derive(Debug, Default)]
struct Playlist {
    packets: Vec<Replayed>,
    /// Each length that occurs, ascending, with the indices of its packets.
    by_length: Vec<(u32, Vec<u32>)>,
}

impl Playlist {
    fn new(packets: Vec<Replayed>) -> Playlist {
        let mut order: Vec<u32> = (0..packets.len().to_u32()).collect();
        order.sort_by_key(|i| packets[i.to_usize()].received);
        let mut by_length: Vec<(u32, Vec<u32>)> = Vec::new();
        for i in order {
            let length = packets[i.to_usize()].received;
            match by_length.last_mut().filter(|(l, _)| *l == length) {
                Some((_, group)) => group.push(i),
                None => by_length.push((length, vec![i])),
            }
        }
        Playlist { packets, by_length }
    }

    /// Packets whose length is nearest to `bytes`; of two equally near lengths, the shorter one.
    fn nearest(&self, bytes: u32) -> &[u32] {
        let above = self.by_length.partition_point(|(l, _)| *l < bytes);
        let near = [above.checked_sub(1), Some(above)].into_iter().flatten().filter_map(|i| self.by_length.get(i));
        near.min_by_key(|(l, _)| l.abs_diff(bytes)).map_or(&[], |(_, group)| group.as_slice())
    }
}

/// State of one core.
#[derive(Clone, Debug)]
struct Player {
    playlist: Arc<Playlist>,
    next: usize,
    rng: RandomStream,
    /// First lines of the memory that the core alone accesses, and of the memory that it shares.
    own: LineAddr,
    shared: LineAddr,
}

/// A recorded program on all cores of a tenant.
#[derive(Clone)]
pub struct Recorded {
    templates: Arc<[Box<[TemplateStep]>]>,
    players: Vec<Player>,
    order: ReplayOrder,
    /// Number of copies of the tables, and lines of a copy that a core has of its own, and of a shared copy.
    copies: u64,
    copy_lines: (u64, u64),
    /// Bytes in front of a recorded message in its frame.
    headers: u32,
    content: Content,
    largest: u32,
}

impl Application for Recorded {
    type Spec = RecordedSpec;

    fn input(s: &mut RecordedSpec) -> Option<&mut String> {
        Some(&mut s.file)
    }

    fn build(s: &RecordedSpec, packet: u32, context: AppBuildContext) -> Result<Recorded, String> {
        let recording = Recording::read(&s.file).map_err(|e| e.0.trim_end_matches('.').to_string())?;
        Recorded::new(s, &recording, packet, context)
    }

    #[inline]
    fn content(&mut self, _core: usize, _rng: &mut RandomStream) -> Content {
        self.content
    }

    fn largest_recorded(&self) -> u32 {
        self.largest
    }

    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        let player = &mut self.players[core];
        let packet = player.choose(self.order, c);
        let copy = if self.copies > 1 { player.rng.below(self.copies) } else { 0 };
        let (answer, lines) = self.answer(c, packet);
        let player = &self.players[core];
        let bytes = c.wire_bytes.saturating_sub(self.headers).max(1);
        let ends = [super::lines(bytes.into()).min(c.lines).into(), lines.into()];
        let bases = [
            rx,
            tx,
            player.own,
            player.shared,
            player.own + copy * self.copy_lines.0,
            player.shared + copy * self.copy_lines.1,
        ];
        run(&self.templates[packet.template.to_usize()], ends, &bases, p);
        (answer, lines)
    }
}

impl Player {
    /// The recorded packet for a packet of content `c`.
    #[inline]
    fn choose(&mut self, order: ReplayOrder, c: &Content) -> Replayed {
        let packets = &self.playlist.packets;
        match order {
            ReplayOrder::Recorded => {
                let i = self.next;
                self.next = if i + 1 == packets.len() { 0 } else { i + 1 };
                packets[i]
            }
            ReplayOrder::Random => packets[self.rng.below(packets.len().to_u64()).to_usize()],
            ReplayOrder::Size => {
                let near = self.playlist.nearest(c.wire_bytes);
                packets[near[self.rng.below(near.len().to_u64()).to_usize()].to_usize()]
            }
            ReplayOrder::Flow => packets[c.flow.to_usize() % packets.len()],
        }
    }
}

/// Appends the ops of a template. `ends` holds the lines of the frame and of the reply, beyond which there are no
/// accesses; `bases` holds the first line of each place.
#[inline]
pub(super) fn run(steps: &[TemplateStep], ends: [u32; 2], bases: &[LineAddr; PLACES], p: &mut Program) {
    p.ops.reserve(2 * steps.len());
    for s in steps {
        let mut lines = u32::from(s.lines);
        if let Some(end) = ends.get(s.place.index()) {
            if s.line >= *end {
                continue;
            }
            lines = lines.min(end - s.line);
        }
        p.compute(s.instructions);
        let line = bases[s.place.index()] + u64::from(s.line);
        p.push(match s.act {
            Act::Nothing => continue,
            Act::Load => Op::Load { line, lines },
            Act::Anchor => Op::Anchor { line },
            Act::DependentLoad => Op::DependentLoad { line, lines },
            Act::Chase => Op::Chase { line, delay: 0 },
            Act::Store => Op::Store { line, lines },
            Act::DependentStore => Op::DependentStore { line, lines },
            Act::Atomic => Op::Atomic { line },
            Act::Prefetch => Op::Prefetch { line, lines },
            Act::DependentPrefetch => Op::DependentPrefetch { line },
            Act::PrefetchOwn => Op::PrefetchOwn { line, lines },
            Act::StreamStore => Op::StoreStream { line, lines },
            Act::Flush => Op::Maintain { line, lines, op: Sweep::Flush },
            Act::Fence => Op::Fence,
            Act::Await => Op::Await,
            Act::Keep(slot) => Op::Keep { slot },
            Act::Recall(slot) => Op::Recall { slot },
        });
    }
}

impl Recorded {
    /// The application that replays `recording` for packets of `packet` bytes.
    ///
    /// # Errors
    /// Returns one clause that says what the recording lacks.
    fn new(
        s: &RecordedSpec,
        recording: &Recording,
        packet: u32,
        mut context: AppBuildContext,
    ) -> Result<Recorded, String> {
        let file = &s.file;
        let headers = if recording.about.boundary == Boundary::Sockets { HEADERS } else { 0 };
        let layout = Layout::new(recording, s.memory == ProgramMemory::Own, s.footprint.0);
        if s.footprint.0 > 1 && !layout.has_tables() {
            return Err(format!(
                "footprint = \"{}\" has no effect: more than half of the packets of {file} access each line of the program's \
                 memory; record packets that access different parts of its tables",
                s.footprint
            ));
        }
        let mut compiler = Compiler::new(&layout, context.line_instructions);
        let mut playlists: Vec<Vec<Replayed>> = recording.threads.iter().map(|_| Vec::new()).collect();
        for p in &recording.packets {
            let received = p.received.saturating_add(headers);
            let template = compiler.template(p);
            playlists[p.thread.to_usize()].push(Replayed { template, outcome: p.outcome, received });
        }
        playlists.retain(|p| !p.is_empty());
        if playlists.is_empty() {
            return Err(format!("{file} holds no packet; record one that the program serves"));
        }
        let largest = recording.packets.iter().map(|p| match p.outcome {
            Outcome::Consumed => 0,
            Outcome::Forwarded(bytes) | Outcome::Replied(bytes) => bytes.saturating_add(headers),
        });
        let largest = largest.max().unwrap_or(0);
        let playlists: Vec<_> = playlists.into_iter().map(|p| Arc::new(Playlist::new(p))).collect();
        let (own_lines, shared_lines) = layout.lines();
        let copies = u64::from(s.footprint.0);
        let shared = context.map.add(shared_lines * copies, RegionKind::App, Sharing::Shared, context.tenant);
        let shared = context.map.get(shared).base;
        let players = context.per_core(own_lines * copies).into_iter().enumerate().map(|(core, own)| {
            let playlist = playlists[core % playlists.len()].clone();
            let of_thread = context.cores.len().div_ceil(playlists.len());
            let next = core / playlists.len() * playlist.packets.len() / of_thread;
            Player { playlist, next, rng: RandomStream::new(context.seed, "recorded", core.to_u64()), own, shared }
        });
        Ok(Recorded {
            players: players.collect(),
            templates: compiler.finish().into(),
            order: s.order,
            copies,
            copy_lines: (own_lines, shared_lines),
            headers,
            content: Content { lines: super::lines(packet.into()), wire_bytes: packet, ..Content::default() },
            largest,
        })
    }

    /// Answer to a packet of content `c` that replays `packet`, and the lines that are sent. A forwarded frame grows or
    /// shrinks by as much as the recorded one.
    #[inline]
    fn answer(&self, c: &Content, packet: Replayed) -> (ServeOutcome, u16) {
        let lines = |bytes: u32| super::lines(bytes.into());
        match packet.outcome {
            Outcome::Consumed => (ServeOutcome::Consumed, 0),
            Outcome::Forwarded(bytes) => {
                let bytes = bytes + self.headers;
                let sent = (c.wire_bytes + bytes).saturating_sub(packet.received);
                (ServeOutcome::Forward, lines(sent).min(c.lines.max(lines(bytes))))
            }
            Outcome::Replied(bytes) => (ServeOutcome::Reply, lines(bytes + self.headers)),
        }
    }
}

/// Number of lines of a page of the program.
const PAGE_LINES: u64 = hostnet_recording::PAGE / LINE;
