//! From the work of a burst to the packets of a recording: which access belongs to which packet, and which memory it
//! accesses.

use crate::flow::{Flow, Loads};
use hostnet_recording::{Access, Counts, Outcome, Packet, Page, PageKind, Place, Sources, Step, Thread, PAGE};
use std::collections::HashMap;

/// Memory of a frame or of its metadata: addresses from `start` to `end`, of which `zero` has offset 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: u64,
    pub end: u64,
    pub zero: u64,
}

impl Piece {
    fn offset(pieces: &[Piece], address: u64) -> Option<i64> {
        let p = pieces.iter().find(|p| (p.start..p.end).contains(&address))?;
        Some(address.wrapping_sub(p.zero) as i64)
    }
}

/// A frame or message in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// Address by which the program names the frame: that of its mbuf.
    pub name: u64,
    pub data: Vec<Piece>,
    pub metadata: Vec<Piece>,
    pub length: u32,
    /// Length as sent.
    pub sent: Option<u32>,
}

impl Frame {
    fn has(&self, address: u64) -> bool {
        Piece::offset(&self.data, address).or(Piece::offset(&self.metadata, address)).is_some()
    }
}

/// The work of a burst while it is recorded.
pub(crate) struct Burst {
    pub flow: Flow,
    pub frames: Vec<Frame>,
    /// Frames that the program sends and that it has not received in this burst.
    pub replies: Vec<Frame>,
}

impl Burst {
    pub(crate) fn new(frames: Vec<Frame>) -> Burst {
        Burst { flow: Flow::new(), frames, replies: Vec::new() }
    }

    /// Index of the packet that each access belongs to. An access to a frame or its metadata belongs to the packet, and
    /// so do accesses whose addresses come from it, and those that its address comes from. What then belongs to none is
    /// work on the packet of the access before.
    fn owners(&self) -> Vec<usize> {
        let steps = &self.flow.steps;
        let mut owner: Vec<Option<usize>> =
            steps.iter().map(|s| self.frames.iter().position(|f| f.has(s.address))).collect();
        if self.frames.len() > 1 {
            let own = owner.clone();
            for (i, s) in steps.iter().enumerate() {
                let from = s.address_from.iter().find_map(|l| owner[l as usize]);
                owner[i] = owner[i].or(from);
            }
            for (i, s) in steps.iter().enumerate().rev().filter(|(i, _)| own[*i].is_some()) {
                s.address_from.iter().for_each(|l| owner[l as usize] = owner[l as usize].or(own[i]));
            }
        }
        let mut current = 0;
        owner.into_iter().map(|o| *o.map(|o| current = o).map_or(&current, |()| &current)).collect()
    }
}

/// A page of a process.
type PageName = (usize, u64);

/// Packets, pages and threads of a recording in the making.
#[derive(Default)]
pub(crate) struct Builder {
    pub threads: Vec<Thread>,
    pub packets: Vec<Packet>,
    pages: Vec<Page>,
    page_numbers: HashMap<PageName, u32>,
    bursts: u32,
    /// Accesses of all packets.
    pub accesses: usize,
}

impl Builder {
    /// Adds the packets of a burst that `thread` handled in process `process`. `kind` tells the origin of an address.
    pub(crate) fn add(&mut self, burst: &Burst, process: usize, thread: u32, kind: &mut dyn FnMut(u64) -> PageKind) {
        let n = burst.frames.len();
        let owners = burst.owners();
        let mut steps: Vec<Vec<Step>> = vec![Vec::new(); n];
        // Index of each access in the list of its packet.
        let mut own: Vec<u32> = Vec::with_capacity(owners.len());
        let mut replies: Vec<Option<usize>> = vec![None; burst.replies.len()];
        for (s, owner) in burst.flow.steps.iter().zip(&owners) {
            let list = &mut steps[*owner];
            let here = list.len() as u32;
            let sources = |loads: &Loads| {
                let of_packet = loads.iter().filter(|l| owners[*l as usize] == *owner);
                Sources::new(of_packet.map(|l| here - own[l as usize]))
            };
            let frame = &burst.frames[*owner];
            let reply = burst.replies.iter().position(|r| r.has(s.address));
            if let Some(r) = reply {
                replies[r].get_or_insert(*owner);
            }
            let place = placed(frame, s.address)
                .or_else(|| match placed(&burst.replies[reply?], s.address)? {
                    Place::Frame(offset) => Some(Place::Reply(offset)),
                    Place::Metadata(offset) => Some(Place::ReplyMetadata(offset)),
                    other => Some(other),
                })
                .unwrap_or_else(|| self.page(process, s.address, thread, kind));
            list.push(Step {
                before: s.before,
                branches_from: sources(&s.branches_from),
                access: Access { kind: s.kind, place, bytes: s.bytes, address_from: sources(&s.address_from) },
            });
            own.push(here);
        }
        let last = owners.last().copied().unwrap_or(0);
        for (i, (frame, steps)) in burst.frames.iter().zip(steps).enumerate() {
            let reply =
                replies.iter().position(|owner| *owner == Some(i)).or((n == 1 && !replies.is_empty()).then_some(0));
            let outcome = match (frame.sent, reply) {
                (Some(bytes), _) => Outcome::Forwarded(bytes),
                (_, Some(r)) => Outcome::Replied(burst.replies[r].length),
                _ => Outcome::Consumed,
            };
            let rest = if i == last { burst.flow.rest } else { Counts::default() };
            self.accesses += steps.len();
            self.packets.push(Packet {
                thread,
                burst: self.bursts,
                received: frame.length,
                outcome,
                steps: steps.into(),
                rest,
            });
        }
        self.bursts += 1;
    }

    fn page(&mut self, process: usize, address: u64, thread: u32, kind: &mut dyn FnMut(u64) -> PageKind) -> Place {
        let page = *self.page_numbers.entry((process, address / PAGE)).or_insert_with(|| {
            self.pages.push(Page { kind: kind(address), thread: Some(thread) });
            self.pages.len() as u32 - 1
        });
        let known = &mut self.pages[page as usize];
        known.thread = known.thread.filter(|t| *t == thread);
        Place::Memory { page, offset: (address % PAGE) as u16 }
    }

    /// The first `packets` packets, their pages and threads.
    pub(crate) fn finish(mut self, packets: usize) -> (Vec<Thread>, Vec<Page>, Vec<Packet>) {
        self.packets.truncate(packets);
        (self.threads, self.pages, self.packets)
    }
}

fn placed(frame: &Frame, address: u64) -> Option<Place> {
    let offset = Piece::offset(&frame.data, address).and_then(|o| i32::try_from(o).ok()).map(Place::Frame);
    offset.or_else(|| Some(Place::Metadata(Piece::offset(&frame.metadata, address)?.try_into().ok()?)))
}
