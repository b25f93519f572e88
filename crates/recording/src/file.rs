//! Files of recordings: a head of fixed size, and a body that is compressed as a whole.

use crate::bytes::{Reader, Writer};
use crate::{
    About, Access, AccessKind, Boundary, Counts, Error, Outcome, Packet, Page, PageKind, Place, Recording, Sources,
    Step, Thread, PAGE, SOURCES,
};
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// First bytes of each file. The last two notice a transfer as text.
pub const MAGIC: [u8; 8] = *b"hnrec\0\r\n";

/// Version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// Bytes of the head: magic, version, checksum, length of the compressed body, length of the body.
const HEAD: usize = 24;

/// Largest body that is read, so that a hostile file cannot fill the memory.
const LARGEST_BODY: usize = 32 << 20;

/// Largest distance of an access from the first byte of its frame.
const LARGEST_OFFSET: i32 = 1 << 20;

/// Lists of steps, each once, with the number of each list by its content.
type Sequences<'a> = (Vec<(&'a [Step], Counts)>, HashMap<(&'a [Step], Counts), u64>);

const BOUNDARIES: [Boundary; 3] = [Boundary::Dpdk, Boundary::Sockets, Boundary::Addresses];
const PAGE_KINDS: [PageKind; 4] = [PageKind::Heap, PageKind::Global, PageKind::Stack, PageKind::Mmap];
const ACCESS_KINDS: [AccessKind; 7] = [
    AccessKind::Load,
    AccessKind::Store,
    AccessKind::Atomic,
    AccessKind::Prefetch,
    AccessKind::PrefetchOwn,
    AccessKind::StreamStore,
    AccessKind::Flush,
];

fn index<T: PartialEq>(list: &[T], value: &T) -> u64 {
    list.iter().position(|v| v == value).unwrap_or_default() as u64
}

impl Recording {
    /// Reads the file `path`.
    ///
    /// # Errors
    /// Returns one sentence if the file cannot be read, is no recording, is cut or damaged, or is of a newer version.
    pub fn read(path: impl AsRef<Path>) -> Result<Recording, Error> {
        let path = path.as_ref();
        let named = |what: String| Error(format!("{}: {what}.", path.display()));
        let bytes = std::fs::read(path).map_err(|e| named(format!("cannot be read ({})", reason(&e))))?;
        Recording::from_bytes(&bytes).map_err(|e| named(e.0))
    }

    /// Writes the file `path`. An existing file is replaced once the new one is complete.
    ///
    /// # Errors
    /// Returns one sentence if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let bytes = self.to_bytes().map_err(|e| Error(format!("{}: {e}.", path.display())))?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let written = std::fs::File::create(&part)
            .and_then(|mut f| f.write_all(&bytes).and_then(|()| f.sync_all()))
            .and_then(|()| std::fs::rename(&part, path));
        written.map_err(|e| {
            // The reason for the failure matters more than a part of a file that cannot be removed.
            let _ = std::fs::remove_file(&part);
            Error(format!("{}: cannot be written ({}).", path.display(), reason(&e)))
        })
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// Returns one clause if the recording is larger than a file may be.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let body = self.body();
        if body.len() > LARGEST_BODY {
            return Err(Error("the recording is larger than 32 MiB; record fewer packets".into()));
        }
        let packed = compress_to_vec(&body, 9);
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(crc32fast::hash(&packed).to_le_bytes());
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend((body.len() as u32).to_le_bytes());
        out.extend(packed);
        Ok(out)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Returns one clause that says why the bytes are no recording.
    pub fn from_bytes(bytes: &[u8]) -> Result<Recording, Error> {
        let no = |what: &str| Error(what.to_string());
        if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
            return Err(no("is not a recording of hostnet record"));
        }
        let word = |i: usize| bytes.get(i..i + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let cut = || no("is cut: it ends before the recording does");
        let version = word(8).ok_or_else(cut)?;
        if version == 0 || version > VERSION {
            let advice = if version > VERSION { "use a newer hostnet" } else { "record the program anew" };
            return Err(Error(format!(
                "is of version {version} of the format, and this hostnet reads version {VERSION}; {advice}"
            )));
        }
        let (Some(sum), Some(packed), Some(body)) = (word(12), word(16), word(20)) else { return Err(cut()) };
        let damaged = || no("is damaged: its contents do not match its checksum");
        match bytes.len().cmp(&(HEAD + packed as usize)) {
            std::cmp::Ordering::Less => return Err(cut()),
            std::cmp::Ordering::Greater => return Err(no("is damaged: bytes follow the recording's end")),
            std::cmp::Ordering::Equal => {}
        }
        if body as usize > LARGEST_BODY {
            return Err(no("is larger than the 32 MiB that a recording may have"));
        }
        if crc32fast::hash(&bytes[HEAD..]) != sum {
            return Err(damaged());
        }
        let body = decompress_to_vec_with_limit(&bytes[HEAD..], body as usize).map_err(|_| damaged())?;
        parse(&body).ok_or_else(|| no("is damaged: its contents contradict each other"))
    }

    fn body(&self) -> Vec<u8> {
        let mut w = Writer::default();
        let a = &self.about;
        for s in [&a.program, &a.version, &a.date, &a.machine, &a.recorder] {
            w.text(s);
        }
        w.number(index(&BOUNDARIES, &a.boundary));
        w.number(a.command.len() as u64);
        a.command.iter().for_each(|s| w.text(s));
        w.number(self.threads.len() as u64);
        self.threads.iter().for_each(|t| w.text(&t.name));
        w.number(self.pages.len() as u64);
        for p in &self.pages {
            w.number(p.thread.map_or(0, |t| u64::from(t) + 1) << 2 | index(&PAGE_KINDS, &p.kind));
        }
        let (sequences, numbers) = self.sequences();
        w.number(sequences.len() as u64);
        let mut columns: [Writer; COLUMNS] = Default::default();
        for (steps, rest) in sequences {
            w.number(steps.len() as u64);
            put_sequence(&mut columns, steps, rest);
        }
        columns.iter().for_each(|c| w.block(&c.0));
        w.number(self.packets.len() as u64);
        for p in &self.packets {
            w.number(p.thread.into());
            w.number(p.burst.into());
            w.number(p.received.into());
            w.number(numbers[&(&*p.steps, p.rest)]);
            w.number(match p.outcome {
                Outcome::Consumed => 0,
                Outcome::Forwarded(bytes) => u64::from(bytes) << 1 | 1,
                Outcome::Replied(bytes) => (u64::from(bytes) + 1) << 1,
            });
        }
        w.0
    }

    /// Each list of steps once, in the order of its first packet.
    fn sequences(&self) -> Sequences<'_> {
        let (mut list, mut numbers) = (Vec::new(), HashMap::new());
        for p in &self.packets {
            numbers.entry((&*p.steps, p.rest)).or_insert_with(|| {
                list.push((&*p.steps, p.rest));
                list.len() as u64 - 1
            });
        }
        (list, numbers)
    }
}

fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

// Columns: the steps' parts, each kept together so that the compressor finds repetitions.
const WHAT: usize = 0; // kind, region, and which of the following are there
const INSTRUCTIONS: usize = 1;
const OTHERS: usize = 2; // branches, taken, mispredicted, fences, system calls
const BYTES: usize = 3;
const PAGES: usize = 4;
const OFFSETS: usize = 5;
const FROM: usize = 6;
const COLUMNS: usize = 7;

const HAS_OTHERS: u64 = 1 << 6;
const HAS_SOURCES: u64 = 1 << 7;

fn put_others(w: &mut Writer, c: &Counts) {
    for n in [c.branches, c.taken, c.mispredicted, c.fences, c.system_calls] {
        w.number(n.into());
    }
}

fn put_sequence(columns: &mut [Writer; COLUMNS], steps: &[Step], rest: Counts) {
    let mut page_before = 0;
    for s in steps {
        let a = &s.access;
        let others = Counts { instructions: 0, ..s.before } != Counts::default();
        let sources = !(a.address_from.is_empty() && s.branches_from.is_empty());
        let (region, offset) = match a.place {
            Place::Frame(offset) => (0, i64::from(offset)),
            Place::Metadata(offset) => (1, offset.into()),
            Place::Reply(offset) => (2, offset.into()),
            Place::ReplyMetadata(offset) => (3, offset.into()),
            Place::Memory { page, offset } => {
                columns[PAGES].signed(i64::from(page) - page_before);
                page_before = page.into();
                (4, offset.into())
            }
        };
        let mut what = index(&ACCESS_KINDS, &a.kind) | region << 3;
        what |= if others { HAS_OTHERS } else { 0 } | if sources { HAS_SOURCES } else { 0 };
        columns[WHAT].0.push(what as u8);
        columns[INSTRUCTIONS].number(s.before.instructions.into());
        if others {
            put_others(&mut columns[OTHERS], &s.before);
        }
        columns[BYTES].number(a.bytes.into());
        columns[OFFSETS].signed(offset);
        if sources {
            for from in [&a.address_from, &s.branches_from] {
                columns[FROM].number(from.iter().count() as u64);
                from.iter().for_each(|d| columns[FROM].number(d.into()));
            }
        }
    }
    columns[INSTRUCTIONS].number(rest.instructions.into());
    put_others(&mut columns[OTHERS], &rest);
}

fn get_others(r: &mut Reader<'_>) -> Option<Counts> {
    Some(Counts {
        instructions: 0,
        branches: r.small()?,
        taken: r.small()?,
        mispredicted: r.small()?,
        fences: r.small()?,
        system_calls: r.small()?,
    })
}

/// Sources of the step that follows `steps`: each is a load among `steps`.
fn get_sources(r: &mut Reader<'_>, steps: &[Step]) -> Option<Sources> {
    let mut from = Vec::new();
    for _ in 0..r.small().filter(|n| *n as usize <= SOURCES)? {
        let distance = r.small()?;
        steps.get(steps.len().checked_sub(distance as usize)?).filter(|s| s.access.kind.loads())?;
        from.push(distance);
    }
    Some(Sources::new(from))
}

fn get_sequence(columns: &mut [Reader<'_>; COLUMNS], length: usize, pages: usize) -> Option<(Arc<[Step]>, Counts)> {
    let mut steps: Vec<Step> = Vec::new();
    let mut page_before = 0;
    for _ in 0..length {
        let what = u64::from(columns[WHAT].byte()?);
        let kind = *ACCESS_KINDS.get((what & 7) as usize)?;
        let mut before = if what & HAS_OTHERS == 0 { Counts::default() } else { get_others(&mut columns[OTHERS])? };
        before.instructions = columns[INSTRUCTIONS].small()?;
        let offset = columns[OFFSETS].signed()?;
        if offset.abs() > LARGEST_OFFSET {
            return None;
        }
        let positive = || u32::try_from(offset).ok();
        let place = match what >> 3 & 7 {
            0 => Place::Frame(offset),
            1 => Place::Metadata(positive()?),
            2 => Place::Reply(offset),
            3 => Place::ReplyMetadata(positive()?),
            4 => {
                page_before += i64::from(columns[PAGES].signed()?);
                let page = usize::try_from(page_before).ok().filter(|p| *p < pages)?;
                Place::Memory { page: page as u32, offset: offset.try_into().ok().filter(|o| u64::from(*o) < PAGE)? }
            }
            _ => return None,
        };
        let (mut address_from, mut branches_from) = Default::default();
        if what & HAS_SOURCES != 0 {
            address_from = get_sources(&mut columns[FROM], &steps)?;
            branches_from = get_sources(&mut columns[FROM], &steps)?;
        }
        let bytes = columns[BYTES].small()?;
        if bytes > LARGEST_OFFSET as u32 {
            return None;
        }
        steps.push(Step { before, branches_from, access: Access { kind, place, bytes, address_from } });
    }
    let instructions = columns[INSTRUCTIONS].small()?;
    Some((steps.into(), Counts { instructions, ..get_others(&mut columns[OTHERS])? }))
}

/// Reads a body; `None` if it contradicts itself.
fn parse(body: &[u8]) -> Option<Recording> {
    let mut r = Reader(body);
    let (program, version, date) = (r.text()?, r.text()?, r.text()?);
    let (machine, recorder) = (r.text()?, r.text()?);
    let boundary = *BOUNDARIES.get(r.number()? as usize)?;
    let command = (0..r.count()?).map(|_| r.text()).collect::<Option<_>>()?;
    let about = About { program, version, command, date, machine, recorder, boundary };
    let threads = (0..r.count()?).map(|_| Some(Thread { name: r.text()? })).collect::<Option<Vec<_>>>()?;
    let mut pages = Vec::new();
    for _ in 0..r.count()? {
        let n = r.number()?;
        let thread = (n >> 2).checked_sub(1).map(u32::try_from).transpose().ok()?;
        if thread.is_some_and(|t| t as usize >= threads.len()) {
            return None;
        }
        pages.push(Page { kind: PAGE_KINDS[(n & 3) as usize], thread });
    }
    let lengths = (0..r.count()?).map(|_| r.number()?.try_into().ok()).collect::<Option<Vec<usize>>>()?;
    let mut blocks = Vec::new();
    for _ in 0..COLUMNS {
        blocks.push(Reader(r.block()?));
    }
    let mut columns: [Reader<'_>; COLUMNS] = blocks.try_into().ok()?;
    let sequences =
        lengths.into_iter().map(|n| get_sequence(&mut columns, n, pages.len())).collect::<Option<Vec<_>>>()?;
    let mut packets = Vec::new();
    for _ in 0..r.count()? {
        let (thread, burst, received) = (r.small()?, r.small()?, r.small()?);
        let (steps, rest) = sequences.get(r.number()? as usize)?.clone();
        if thread as usize >= threads.len() {
            return None;
        }
        let sent = r.number()?;
        let outcome = match (sent & 1, sent >> 1) {
            (1, bytes) => Outcome::Forwarded(bytes.try_into().ok()?),
            (_, 0) => Outcome::Consumed,
            (_, more) => Outcome::Replied((more - 1).try_into().ok()?),
        };
        packets.push(Packet { thread, burst, received, outcome, steps, rest });
    }
    let read = r.0.is_empty() && columns.iter().all(|c| c.0.is_empty());
    read.then_some(Recording { about, threads, pages, packets })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(instructions: u32, kind: AccessKind, place: Place, from: &[u32]) -> Step {
        let before = Counts { instructions, ..Counts::default() };
        Step {
            before,
            branches_from: Sources::default(),
            access: Access { kind, place, bytes: 8, address_from: Sources::new(from.iter().copied()) },
        }
    }

    fn sample() -> Recording {
        let chase: Arc<[Step]> = vec![
            step(3, AccessKind::Load, Place::Frame(12), &[]),
            step(2, AccessKind::Load, Place::Memory { page: 1, offset: 4088 }, &[1]),
            step(0, AccessKind::Atomic, Place::Memory { page: 0, offset: 64 }, &[2, 1]),
            Step { branches_from: Sources::new([1]), ..step(9, AccessKind::StreamStore, Place::Reply(-2), &[]) },
            step(1, AccessKind::Store, Place::Metadata(40), &[]),
        ]
        .into();
        let rest = Counts { instructions: 7, branches: 3, taken: 2, mispredicted: 1, fences: 1, system_calls: 1 };
        let packet = |thread, outcome, steps: &Arc<[Step]>| Packet {
            thread,
            burst: 4,
            received: 1514,
            outcome,
            steps: steps.clone(),
            rest,
        };
        Recording {
            about: About {
                program: "l3fwd".into(),
                version: "22.11".into(),
                command: vec!["./l3fwd".into(), "-p".into(), "1".into()],
                date: "2026-11-26T21:37:28Z".into(),
                machine: "a machine".into(),
                recorder: "hostnet 0.1.0".into(),
                boundary: Boundary::Dpdk,
            },
            threads: vec![Thread { name: "lcore-1".into() }, Thread { name: "lcore-2".into() }],
            pages: vec![Page { kind: PageKind::Heap, thread: None }, Page { kind: PageKind::Stack, thread: Some(1) }],
            packets: vec![
                packet(0, Outcome::Forwarded(1514), &chase),
                packet(1, Outcome::Replied(0), &chase),
                packet(1, Outcome::Consumed, &Vec::new().into()),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let r = Recording::from_bytes(&sample().to_bytes().unwrap()).unwrap();
        assert_eq!(r, sample());
        assert!(Arc::ptr_eq(&r.packets[0].steps, &r.packets[1].steps), "equal steps are kept once");
        assert_eq!(r.packets[0].total().instructions, 3 + 2 + 9 + 1 + 7);
    }

    #[test]
    fn the_head_is_as_documented() {
        let b = sample().to_bytes().unwrap();
        assert_eq!(b[..12], *b"hnrec\0\r\n\x01\0\0\0");
        assert_eq!(b[12..16], crc32fast::hash(&b[24..]).to_le_bytes());
        assert_eq!(b[16..20], (b.len() as u32 - 24).to_le_bytes());
    }

    fn why(bytes: &[u8]) -> String {
        Recording::from_bytes(bytes).unwrap_err().0
    }

    #[test]
    fn foreign_cut_and_damaged_files_are_refused() {
        let b = sample().to_bytes().unwrap();
        assert!(why(b"\x7fELF and so on").contains("is not a recording"));
        assert!(why(b"").contains("is not a recording"));
        for n in MAGIC.len()..b.len() {
            assert!(why(&b[..n]).contains("is cut"), "{n}");
        }
        for n in HEAD..b.len() {
            let mut changed = b.clone();
            changed[n] ^= 1;
            assert!(why(&changed).contains("is damaged"), "{n}");
        }
        let mut newer = b.clone();
        newer[8] = 2;
        assert!(why(&newer)
            .contains("is of version 2 of the format, and this hostnet reads version 1; use a newer hostnet"));
        newer[8] = 0;
        assert!(why(&newer)
            .contains("is of version 0 of the format, and this hostnet reads version 1; record the program anew"));
        assert!(why(&[&b[..], &[0]].concat()).contains("bytes follow"));
    }

    /// A hostile file has a right checksum.
    #[test]
    fn bodies_that_contradict_themselves_are_refused() {
        let body = sample().body();
        for n in 0..body.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, body[n] ^ 1] {
                let mut changed = body.clone();
                changed[n] = value;
                let Some(r) = parse(&changed) else { continue };
                let sources = |s: &Step| s.access.address_from.iter().count() + s.branches_from.iter().count();
                for p in &r.packets {
                    assert!((p.thread as usize) < r.threads.len());
                    assert!(p.steps.iter().all(|s| sources(s) <= 2 * SOURCES));
                }
            }
            assert!(parse(&body[..n]).is_none());
        }
        let mut wrong = sample();
        wrong.packets[0].steps = vec![step(1, AccessKind::Load, Place::Frame(0), &[1])].into();
        assert!(parse(&wrong.body()).is_none(), "a source before the first step");
        wrong.packets[0].steps = vec![step(1, AccessKind::Load, Place::Memory { page: 2, offset: 0 }, &[])].into();
        assert!(parse(&wrong.body()).is_none(), "a page that is not there");
    }

    /// 1,000 packets of 100 accesses each to random places of a table of 1,000 pages.
    #[test]
    fn a_thousand_packets_take_far_less_than_a_megabyte() {
        let mut r = sample();
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        r.pages = vec![r.pages[0]; 1000];
        let like = r.packets[0].clone();
        r.packets = (0..1000)
            .map(|_| {
                let steps = (0..100u32).map(|i| match i % 10 {
                    0 => step(
                        4,
                        AccessKind::Load,
                        Place::Memory { page: random(1000), offset: random(512) as u16 * 8 },
                        &[],
                    ),
                    n => step(n, AccessKind::Load, Place::Memory { page: n, offset: n as u16 * 16 }, &[1]),
                });
                Packet { steps: steps.collect(), ..like.clone() }
            })
            .collect();
        let bytes = r.to_bytes().unwrap();
        assert!(bytes.len() < 200_000, "{} bytes", bytes.len());
        assert_eq!(Recording::from_bytes(&bytes).unwrap(), r);
    }

    #[test]
    fn sentences_name_the_file() {
        let dir = std::env::temp_dir().join(format!("hostnet-recording-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a.rec");
        sample().write(&file).unwrap();
        assert_eq!(Recording::read(&file).unwrap(), sample());
        std::fs::write(&file, "text").unwrap();
        let e = Recording::read(&file).unwrap_err().to_string();
        assert_eq!(e, format!("{}: is not a recording of hostnet record.", file.display()));
        let e = sample().write(dir.join("no/a.rec")).unwrap_err().to_string();
        assert!(e.ends_with("no/a.rec: cannot be written (no such file or directory)."), "{e}");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing half-written is left");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
