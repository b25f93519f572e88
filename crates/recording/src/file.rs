//! Files of recordings: a head of fixed size, and a body that is compressed as a whole.

use crate::bytes::{Reader, Writer};
use crate::{
    About, Access, AccessKind, Boundary, Counts, Error, Outcome, Packet, Page, PageKind, Place, Recording, Sources,
    Step, Thread, PAGE, SOURCES,
};
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::{decompress_to_vec_with_limit, TINFLStatus};
use std::collections::HashMap;
use std::fmt::{self, Arguments};
use std::io::Write;
use std::ops::RangeInclusive;
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
        match bytes.len().cmp(&(HEAD + packed as usize)) {
            std::cmp::Ordering::Less => return Err(cut()),
            std::cmp::Ordering::Greater => return Err(no("is damaged: bytes follow the recording's end")),
            std::cmp::Ordering::Equal => {}
        }
        if body as usize > LARGEST_BODY {
            return Err(no("is larger than the 32 MiB that a recording may have"));
        }
        if crc32fast::hash(&bytes[HEAD..]) != sum {
            return Err(damaged("its contents do not match its checksum"));
        }
        let other = |has: Arguments<'_>| damaged(format_args!("its body has {has} bytes, and {body} by its head"));
        let found = decompress_to_vec_with_limit(&bytes[HEAD..], body as usize).map_err(|e| match e.status {
            TINFLStatus::HasMoreOutput => other(format_args!("more than {body}")),
            _ => damaged("its body is no raw DEFLATE (RFC 1951), which begins without a head of zlib or gzip"),
        })?;
        if found.len() < body as usize {
            return Err(other(format_args!("{}", found.len())));
        }
        parse(&found)
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

/// Clause that says of a body in what it is wrong. Threads, pages, sequences, steps and packets count from 0, as in the file.
fn damaged(what: impl fmt::Display) -> Error {
    Error(format!("is damaged: {what}"))
}

fn within<T: PartialOrd + fmt::Display>(part: Arguments<'_>, n: T, valid: RangeInclusive<T>) -> Result<T, Error> {
    if valid.contains(&n) {
        return Ok(n);
    }
    Err(damaged(format_args!("{part} = {n} is not within {} to {}", valid.start(), valid.end())))
}

/// A step or the rest of a sequence, by their numbers.
#[derive(Clone, Copy)]
enum Whose {
    Step(usize, usize),
    Rest(usize),
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whose::Step(step, sequence) => write!(f, "step {step} of sequence {sequence}"),
            Whose::Rest(sequence) => write!(f, "the rest of sequence {sequence}"),
        }
    }
}

fn number(r: &mut Reader<'_>, part: Arguments<'_>) -> Result<u64, Error> {
    r.number().ok_or_else(|| damaged(format_args!("{part} is cut or has more than 64 bits")))
}

fn small(r: &mut Reader<'_>, part: Arguments<'_>, valid: RangeInclusive<u32>) -> Result<u32, Error> {
    let n = within(part, number(r, part)?, (*valid.start()).into()..=(*valid.end()).into())?;
    Ok(u32::try_from(n).unwrap_or(*valid.end()))
}

fn signed(r: &mut Reader<'_>, part: Arguments<'_>, valid: RangeInclusive<i64>) -> Result<i64, Error> {
    let n = r.signed().ok_or_else(|| damaged(format_args!("{part} is cut or has more than 64 bits")))?;
    within(part, n, valid)
}

/// The number of something of which there are `count`.
fn index_of(part: Arguments<'_>, n: u64, count: usize, what: &str) -> Result<usize, Error> {
    let index = usize::try_from(n).ok().filter(|i| *i < count);
    index.ok_or_else(|| damaged(format_args!("{part} = {n} is not below {count}, the number of {what}")))
}

fn index_in(r: &mut Reader<'_>, part: Arguments<'_>, count: usize, what: &str) -> Result<usize, Error> {
    index_of(part, number(r, part)?, count, what)
}

/// A number of elements that follow, each of which takes at least a byte.
fn count(r: &mut Reader<'_>, part: Arguments<'_>) -> Result<usize, Error> {
    let (n, left) = (number(r, part)?, r.0.len());
    let found = usize::try_from(n).ok().filter(|n| *n <= left);
    found.ok_or_else(|| damaged(format_args!("{part} = {n} is more than the {left} bytes that follow")))
}

fn block<'a>(r: &mut Reader<'a>, part: Arguments<'_>) -> Result<&'a [u8], Error> {
    r.block().ok_or_else(|| damaged(format_args!("{part} has a length beyond the bytes that follow")))
}

fn text(r: &mut Reader<'_>, part: Arguments<'_>) -> Result<String, Error> {
    let bytes = block(r, part)?.to_vec();
    String::from_utf8(bytes).map_err(|_| damaged(format_args!("{part} is no text in UTF-8")))
}

/// Counts other than instructions.
fn get_others(r: &mut Reader<'_>, of: Whose) -> Result<Counts, Error> {
    let branches = small(r, format_args!("number of branches of {of}"), 0..=u32::MAX)?;
    Ok(Counts {
        instructions: 0,
        branches,
        taken: small(r, format_args!("number of taken branches of {of}"), 0..=branches)?,
        mispredicted: small(r, format_args!("number of mispredicted branches of {of}"), 0..=branches)?,
        fences: small(r, format_args!("number of fences of {of}"), 0..=u32::MAX)?,
        system_calls: small(r, format_args!("number of system calls of {of}"), 0..=u32::MAX)?,
    })
}

/// Sources of the step that follows `steps`: each is a load among `steps`.
fn get_sources(r: &mut Reader<'_>, list: Arguments<'_>, steps: &[Step]) -> Result<Sources, Error> {
    let mut from: Vec<u32> = Vec::new();
    for _ in 0..small(r, format_args!("length of {list}"), 0..=SOURCES as u32)? {
        let distance = small(r, format_args!("a distance of {list}"), 0..=u32::MAX)?;
        let wrong = |why: Arguments<'_>| damaged(format_args!("a distance of {list} = {distance} {why}"));
        let earlier = steps.len();
        let source = earlier.checked_sub(distance as usize).and_then(|i| steps.get(i)).ok_or_else(|| {
            wrong(format_args!("leads to no earlier step of the packet, of which there are {earlier}"))
        })?;
        if !source.access.kind.loads() {
            return Err(wrong(format_args!("leads to a step that loads nothing")));
        }
        if let Some(last) = from.last().filter(|last| distance <= **last) {
            return Err(wrong(format_args!("follows {last}, and distances ascend")));
        }
        from.push(distance);
    }
    Ok(Sources::new(from))
}

fn get_place(
    columns: &mut [Reader<'_>; COLUMNS],
    what: u64,
    of: Whose,
    page_before: &mut i64,
    pages: usize,
) -> Result<Place, Error> {
    let kind = within(format_args!("place of {of}"), what >> 3 & 7, 0..=4)?;
    let valid = match kind {
        0 | 2 => -LARGEST_OFFSET..=LARGEST_OFFSET,
        4 => 0..=PAGE as i32 - 1,
        _ => 0..=LARGEST_OFFSET,
    };
    let valid = i64::from(*valid.start())..=i64::from(*valid.end());
    let offset = signed(&mut columns[OFFSETS], format_args!("offset of {of}"), valid)?;
    Ok(match kind {
        0 => Place::Frame(offset as i32),
        1 => Place::Metadata(offset as u32),
        2 => Place::Reply(offset as i32),
        3 => Place::ReplyMetadata(offset as u32),
        _ => {
            let step = signed(&mut columns[PAGES], format_args!("page of {of}"), i64::MIN..=i64::MAX)?;
            *page_before = page_before.saturating_add(step);
            if usize::try_from(*page_before).map_or(true, |p| p >= pages) {
                return Err(damaged(format_args!(
                    "page of {of} = {page_before} is not below {pages}, the number of pages"
                )));
            }
            Place::Memory { page: *page_before as u32, offset: offset as u16 }
        }
    })
}

fn get_sequence(
    columns: &mut [Reader<'_>; COLUMNS],
    sequence: usize,
    length: usize,
    pages: usize,
) -> Result<(Arc<[Step]>, Counts), Error> {
    let mut steps: Vec<Step> = Vec::new();
    let mut page_before = 0;
    for i in 0..length {
        let of = Whose::Step(i, sequence);
        let first = columns[WHAT].byte().ok_or_else(|| damaged(format_args!("column 0 ends before {of}")))?;
        let what = u64::from(first);
        let kind = within(format_args!("kind of {of}"), what & 7, 0..=ACCESS_KINDS.len() as u64 - 1)?;
        let kind = ACCESS_KINDS[kind as usize];
        let mut before = if what & HAS_OTHERS == 0 { Counts::default() } else { get_others(&mut columns[OTHERS], of)? };
        before.instructions =
            small(&mut columns[INSTRUCTIONS], format_args!("number of instructions of {of}"), 0..=u32::MAX)?;
        let place = get_place(columns, what, of, &mut page_before, pages)?;
        let most = match place {
            Place::Memory { offset, .. } => PAGE as u32 - u32::from(offset), // to the page's end
            _ => LARGEST_OFFSET as u32,
        };
        let bytes = small(&mut columns[BYTES], format_args!("number of bytes of {of}"), 1..=most)?;
        let (mut address_from, mut branches_from) = Default::default();
        if what & HAS_SOURCES != 0 {
            address_from = get_sources(&mut columns[FROM], format_args!("address_from of {of}"), &steps)?;
            branches_from = get_sources(&mut columns[FROM], format_args!("branches_from of {of}"), &steps)?;
        }
        steps.push(Step { before, branches_from, access: Access { kind, place, bytes, address_from } });
    }
    let of = Whose::Rest(sequence);
    let instructions = small(&mut columns[INSTRUCTIONS], format_args!("number of instructions of {of}"), 0..=u32::MAX)?;
    Ok((steps.into(), Counts { instructions, ..get_others(&mut columns[OTHERS], of)? }))
}

fn get_about(r: &mut Reader<'_>) -> Result<About, Error> {
    let mut texts = ["program", "version", "date", "machine", "recorder"].map(|part| (part, String::new()));
    for (part, into) in &mut texts {
        *into = text(r, format_args!("{part}"))?;
    }
    let [program, version, date, machine, recorder] = texts.map(|(_, text)| text);
    let boundary = small(r, format_args!("boundary"), 0..=BOUNDARIES.len() as u32 - 1)?;
    let words = count(r, format_args!("number of arguments"))?;
    let command = (0..words).map(|i| text(r, format_args!("argument {i}"))).collect::<Result<_, _>>()?;
    Ok(About { program, version, command, date, machine, recorder, boundary: BOUNDARIES[boundary as usize] })
}

fn get_page(r: &mut Reader<'_>, i: usize, threads: usize) -> Result<Page, Error> {
    let n = number(r, format_args!("page {i}"))?;
    let thread = match (n >> 2).checked_sub(1) {
        None => None,
        Some(thread) => Some(index_of(format_args!("thread of page {i}"), thread, threads, "threads")? as u32),
    };
    Ok(Page { kind: PAGE_KINDS[(n & 3) as usize], thread })
}

/// Reads a body.
fn parse(body: &[u8]) -> Result<Recording, Error> {
    let mut r = Reader(body);
    let about = get_about(&mut r)?;
    let mut threads = Vec::new();
    for i in 0..count(&mut r, format_args!("number of threads"))? {
        threads.push(Thread { name: text(&mut r, format_args!("name of thread {i}"))? });
    }
    let mut pages = Vec::new();
    for i in 0..count(&mut r, format_args!("number of pages"))? {
        pages.push(get_page(&mut r, i, threads.len())?);
    }
    let mut lengths = Vec::new();
    for i in 0..count(&mut r, format_args!("number of sequences"))? {
        lengths.push(number(&mut r, format_args!("length of sequence {i}"))? as usize);
    }
    let mut columns: [Reader<'_>; COLUMNS] = std::array::from_fn(|_| Reader(&[]));
    for (i, column) in columns.iter_mut().enumerate() {
        *column = Reader(block(&mut r, format_args!("column {i}"))?);
    }
    let mut sequences = Vec::new();
    for (i, length) in lengths.into_iter().enumerate() {
        sequences.push(get_sequence(&mut columns, i, length, pages.len())?);
    }
    let mut packets = Vec::new();
    for i in 0..count(&mut r, format_args!("number of packets"))? {
        let thread = index_in(&mut r, format_args!("thread of packet {i}"), threads.len(), "threads")? as u32;
        let burst = small(&mut r, format_args!("burst of packet {i}"), 0..=u32::MAX)?;
        let received = small(&mut r, format_args!("length of packet {i}"), 0..=u32::MAX)?;
        let sequence = index_in(&mut r, format_args!("sequence of packet {i}"), sequences.len(), "sequences")?;
        let (steps, rest) = sequences[sequence].clone();
        let sent = number(&mut r, format_args!("outcome of packet {i}"))?;
        let bytes = |n: u64| {
            within(format_args!("number of bytes that packet {i} sent"), n, 0..=u32::MAX.into()).map(|n| n as u32)
        };
        let outcome = match (sent & 1, sent >> 1) {
            (1, n) => Outcome::Forwarded(bytes(n)?),
            (_, 0) => Outcome::Consumed,
            (_, more) => Outcome::Replied(bytes(more - 1)?),
        };
        packets.push(Packet { thread, burst, received, outcome, steps, rest });
    }
    if !r.0.is_empty() {
        return Err(damaged("the body goes on behind the last packet"));
    }
    match columns.iter().position(|column| !column.0.is_empty()) {
        Some(i) => Err(damaged(format_args!("column {i} goes on behind the last step"))),
        None => Ok(Recording { about, threads, pages, packets }),
    }
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
                let Ok(r) = parse(&changed) else { continue };
                let sources = |s: &Step| s.access.address_from.iter().count() + s.branches_from.iter().count();
                for p in &r.packets {
                    assert!((p.thread as usize) < r.threads.len());
                    assert!(p.steps.iter().all(|s| sources(s) <= 2 * SOURCES));
                }
            }
            assert!(parse(&body[..n]).is_err());
        }
    }

    /// Other programs write recordings by docs/use/recording-format.md: what is wrong is said with part, value and valid range.
    #[test]
    fn a_fault_names_its_part_its_value_and_what_is_valid() {
        let refused = |change: &dyn Fn(&mut Recording)| {
            let mut r = sample();
            change(&mut r);
            parse(&r.body()).unwrap_err().0
        };
        let load = |bytes, place: Place, from: &[u32]| {
            let s = step(1, AccessKind::Load, place, from);
            Step { access: Access { bytes, ..s.access }, ..s }
        };
        let memory = |page, offset| Place::Memory { page, offset };
        for (steps, said) in [
            (
                vec![load(8, Place::Frame(0), &[1])],
                "address_from of step 0 of sequence 0 = 1 leads to no earlier step of the packet, of which there are 0",
            ),
            (vec![load(8, memory(2, 0), &[])], "page of step 0 of sequence 0 = 2 is not below 2, the number of pages"),
            (vec![load(8, memory(0, 4096), &[])], "offset of step 0 of sequence 0 = 4096 is not within 0 to 4095"),
            (vec![load(8, memory(0, 4090), &[])], "number of bytes of step 0 of sequence 0 = 8 is not within 1 to 6"),
            (
                vec![load(0, Place::Frame(0), &[])],
                "number of bytes of step 0 of sequence 0 = 0 is not within 1 to 1048576",
            ),
            (
                vec![load(8, Place::Frame(-1_048_577), &[])],
                "offset of step 0 of sequence 0 = -1048577 is not within -1048576 to 1048576",
            ),
            (
                vec![load(8, Place::Metadata(1 << 21), &[])],
                "offset of step 0 of sequence 0 = 2097152 is not within 0 to 1048576",
            ),
            (
                vec![step(1, AccessKind::Store, Place::Frame(0), &[]), load(8, Place::Frame(0), &[1])],
                "address_from of step 1 of sequence 0 = 1 leads to a step that loads nothing",
            ),
        ] {
            let e = refused(&|r| r.packets[0].steps = steps.clone().into());
            assert!(e.starts_with("is damaged: ") && e.ends_with(said), "{e}");
        }
        let counts = |branches, taken, mispredicted| Counts { branches, taken, mispredicted, ..Counts::default() };
        for (rest, said) in [
            (counts(1, 2, 0), "number of taken branches of the rest of sequence 0 = 2 is not within 0 to 1"),
            (counts(1, 0, 2), "number of mispredicted branches of the rest of sequence 0 = 2 is not within 0 to 1"),
        ] {
            let e = refused(&|r| r.packets[0].rest = rest);
            assert!(e.ends_with(said), "{e}");
        }
        let e = refused(&|r| r.packets[1].thread = 9);
        assert!(e.contains("thread of packet 1 = 9 is not below "), "{e}");
        let e = refused(&|r| r.pages[1].thread = Some(9));
        assert!(e.contains("thread of page 1 = 9 is not below "), "{e}");

        let body = sample().body();
        let patched = |from: &[u8], to: &[u8]| {
            let at = body.windows(from.len()).position(|w| w == from).expect("the bytes are there");
            let why = parse(&[&body[..at], to, &body[at + from.len()..]].concat()).unwrap_err();
            why.0
        };
        // Two distances, 1 and 2, and none of branches; then the name of the program.
        let list = [2, 1, 2, 0];
        assert!(patched(&list, &[2, 1, 1, 0])
            .ends_with("address_from of step 2 of sequence 0 = 1 follows 1, and distances ascend"));
        assert!(patched(&list, &[2, 2, 1, 0])
            .ends_with("address_from of step 2 of sequence 0 = 1 follows 2, and distances ascend"));
        assert!(
            patched(&list, &[2, 0, 2, 0]).ends_with("= 0 leads to no earlier step of the packet, of which there are 2")
        );
        assert!(patched(&list, &[5, 1, 2, 0])
            .ends_with("length of address_from of step 2 of sequence 0 = 5 is not within 0 to 4"));
        let name = sample().about.program;
        let utf8 = [&[name.len() as u8][..], &vec![0xff; name.len()]].concat();
        let as_written = [&[name.len() as u8][..], name.as_bytes()].concat();
        assert_eq!(patched(&as_written, &utf8), "is damaged: program is no text in UTF-8");
        let more = parse(&[&body[..], &[0]].concat()).unwrap_err().0;
        assert_eq!(more, "is damaged: the body goes on behind the last packet");
    }

    /// A file whose checksum is right, and whose body is another than its head says.
    #[test]
    fn a_body_that_is_not_as_the_head_says_is_named() {
        let body = sample().body();
        let file = |packed: &[u8], length: usize| {
            let words = [VERSION, crc32fast::hash(packed), packed.len() as u32, length as u32];
            [&MAGIC[..], &words.map(u32::to_le_bytes).concat(), packed].concat()
        };
        let raw = compress_to_vec(&body, 9);
        assert_eq!(Recording::from_bytes(&file(&raw, body.len())), Ok(sample()));
        let n = body.len();
        assert_eq!(
            why(&file(&raw, n - 1)),
            format!("is damaged: its body has more than {0} bytes, and {0} by its head", n - 1)
        );
        assert_eq!(why(&file(&raw, n + 1)), format!("is damaged: its body has {n} bytes, and {} by its head", n + 1));
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&body, 9);
        assert!(why(&file(&zlib, n)).contains("is no raw DEFLATE (RFC 1951)"));
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
