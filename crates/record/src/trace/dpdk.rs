//! Packets of DPDK: bursts that receive functions return.
//!
//! `rte_eth_fp_ops` is exported, also by stripped programs: an array with the receive and transmit functions of each
//! port. Layouts are those of DPDK 22.11 (`rte_ethdev_core.h`, `rte_mbuf_core.h`).

use super::{Mode, Raw, Tracer};
use crate::burst::{Burst, Frame, Piece};
use crate::process::Process;
use crate::sys::Tid;
use hostnet_recording::{Error, Outcome};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const OPS: &str = "rte_eth_fp_ops";
/// Bytes of an element of `rte_eth_fp_ops`.
const PORT: usize = 128;
const RX_BURST: usize = 0;
const TX_BURST: usize = 64;

const MBUF: u64 = 128;
const BUF_ADDR: usize = 0;
const DATA_OFF: usize = 16;
const NB_SEGS: usize = 20;
const PKT_LEN: usize = 36;
const DATA_LEN: usize = 40;
const BUF_LEN: usize = 54;
const NEXT: usize = 64;

/// Largest burst that is believed.
const LARGEST_BURST: u64 = 4096;
/// Time for which a port may have a receive function and no transmit function before the port counts as one that only
/// receives. DPDK writes one right after the other (`eth_dev_fp_ops_setup`), but a busy machine may take the core from
/// the program in between.
const RECEIVE_ONLY_AFTER: Duration = Duration::from_secs(3);

/// A call of a driver's function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Receive { mbufs: u64 },
    Send,
}

#[derive(Default)]
struct Functions {
    ops: Option<(u64, u64)>,
    receive: Vec<u64>,
    send: Vec<u64>,
    /// Time since which ports have had receive functions and no transmit function.
    without_send: Option<Instant>,
    /// Whether ports count as ones that only receive.
    receive_only: bool,
}

impl Functions {
    /// Notes the functions that the table had at `now`; whether [`Functions::entries`] has changed.
    fn update(&mut self, receive: Vec<u64>, send: Vec<u64>, now: Instant) -> bool {
        let before = self.entries();
        self.without_send = (send.is_empty() && !receive.is_empty()).then(|| self.without_send.unwrap_or(now));
        self.receive_only = self.without_send.is_some_and(|since| now - since >= RECEIVE_ONLY_AFTER);
        (self.receive, self.send) = (receive, send);
        before != self.entries()
    }

    fn entries(&self) -> Vec<u64> {
        if self.send.is_empty() && !self.receive_only {
            return Vec::new();
        }
        self.receive.iter().chain(&self.send).copied().collect()
    }
}

/// Functions of the ports of all processes, and packets whose sending is awaited.
#[derive(Default)]
pub(super) struct Ports {
    functions: HashMap<usize, Functions>,
    /// Numbers of recorded packets that were neither sent nor received anew, by process and mbuf.
    pub(super) pending: HashMap<(usize, u64), usize>,
    /// Why recording cannot go on.
    pub(super) refused: Option<Error>,
}

impl Ports {
    /// Reads the functions of a process; whether they have changed.
    pub(super) fn look(&mut self, p: usize, process: &mut Process) -> Result<bool, Error> {
        let f = self.functions.entry(p).or_default();
        let known = f.ops.is_some();
        if !known {
            process.refresh();
            f.ops = process.symbol(OPS);
        }
        let Some((address, size)) = f.ops else { return Ok(false) };
        if size == 0 || size % PORT as u64 != 0 {
            return Err(Error(format!(
                "{OPS} of the program has {size} bytes, and {PORT} a port are known (DPDK 21.11 to 23.07)."
            )));
        }
        let table = process.read(address, size as usize);
        let function = |port: &[u8], at: usize| u64::from_le_bytes(port[at..at + 8].try_into().unwrap_or_default());
        // Ports that are not started have the same functions, and the last port is one of them.
        let Some(unused) = table.chunks_exact(PORT).last() else { return Ok(false) };
        let (mut receive, mut send) = (Vec::new(), Vec::new());
        for port in table.chunks_exact(PORT) {
            for (list, at) in [(&mut receive, RX_BURST), (&mut send, TX_BURST)] {
                let f = function(port, at);
                if f != 0 && f != function(unused, at) && !list.contains(&f) {
                    list.push(f);
                }
            }
        }
        if receive.len() > 4 {
            return Err(Error(format!(
                "the program's ports have {} different receive functions, and at most 4 are watched; use ports of fewer drivers.",
                receive.len()
            )));
        }
        Ok(f.update(receive, send, Instant::now()) || !known)
    }

    pub(super) fn forget(&mut self, p: usize) {
        self.functions.remove(&p);
    }
    pub(super) fn is_found(&self) -> bool {
        self.functions.values().any(|f| f.ops.is_some())
    }
    /// Receive functions, then transmit functions.
    pub(super) fn entries(&self, p: usize) -> Vec<u64> {
        self.functions.get(&p).map_or_else(Vec::new, Functions::entries)
    }
    /// Addresses of the functions of the first two ports in the table, which the program writes when it starts a port.
    pub(super) fn awaited(&self, p: usize) -> Vec<u64> {
        let ops = self.functions.get(&p).and_then(|f| f.ops);
        ops.map_or_else(Vec::new, |(address, _)| {
            [RX_BURST, TX_BURST, PORT + RX_BURST, PORT + TX_BURST].map(|at| address + at as u64).into()
        })
    }
    pub(super) fn is_entry(&self, p: usize, address: u64) -> bool {
        self.functions.get(&p).is_some_and(|f| f.receive.contains(&address) || f.send.contains(&address))
    }
    fn is_receive(&self, p: usize, address: u64) -> bool {
        self.functions.get(&p).is_some_and(|f| f.receive.contains(&address))
    }
    /// Awaits the sending of packets that were not sent while their work was recorded. `first` is the number of the
    /// first.
    pub(super) fn await_sending(&mut self, p: usize, first: usize, frames: &[Frame]) {
        for (n, f) in frames.iter().enumerate().filter(|(_, f)| f.sent.is_none()) {
            self.pending.insert((p, f.name), first + n);
        }
    }
}

impl Tracer<'_> {
    /// A thread is about to call a driver's function, in the work of `burst` or between two bursts.
    pub(super) fn at_driver(&mut self, tid: Tid, raw: &Raw, burst: Option<Box<Burst>>) -> std::io::Result<()> {
        let p = self.threads[&tid].process;
        let count = raw.rdx & 0xffff;
        let mut burst = burst;
        let call = if self.dpdk.is_receive(p, raw.rip) {
            if let Some(burst) = burst.take() {
                self.complete(tid, raw, &burst);
            }
            if self.is_complete() {
                return self.run_natively(tid, 0);
            }
            Call::Receive { mbufs: raw.rsi }
        } else {
            let mbufs = self.pointers(p, raw.rsi, count);
            let Some(burst) = burst.as_mut() else {
                self.sent_later(p, &mbufs);
                return self.run_natively(tid, 0);
            };
            for m in mbufs {
                let sent = frame(&self.processes[p], m);
                match burst.frames.iter_mut().find(|f| f.name == m) {
                    Some(f) => f.sent = sent.map(|s| s.length),
                    None => burst.replies.extend(sent),
                }
            }
            Call::Send
        };
        let Some(back) = self.processes[p].word(raw.rsp) else { return self.run_natively(tid, 0) };
        let t = self.threads.get_mut(&tid).expect("the thread is known");
        t.mode = Mode::Call { call, back, stack: raw.rsp, burst };
        self.run_to(tid, back, 0)
    }

    /// A driver's function has returned.
    pub(super) fn returned(
        &mut self,
        tid: Tid,
        raw: &Raw,
        call: Call,
        burst: Option<Box<Burst>>,
    ) -> std::io::Result<()> {
        let p = self.threads[&tid].process;
        match (call, burst) {
            (Call::Send, Some(burst)) => {
                if burst.frames.iter().all(|f| f.sent.is_some()) {
                    self.complete(tid, raw, &burst);
                    return self.run_natively(tid, 0);
                }
                self.step(tid, raw, burst)
            }
            (Call::Receive { mbufs }, _) if raw.rax & 0xffff > 0 => {
                let names = self.pointers(p, mbufs, raw.rax & 0xffff);
                self.dpdk.pending.retain(|(process, m), _| *process != p || !names.contains(m));
                let frames: Vec<Frame> = names.iter().filter_map(|m| frame(&self.processes[p], *m)).collect();
                if frames.len() < names.len() {
                    self.dpdk.refused = Some(Error(
                        "the mbufs of the program do not have the layout of DPDK 22.11, which is known; use that version."
                            .into(),
                    ));
                }
                if frames.is_empty() || !self.wants(frames.len() as u32) {
                    return self.run_natively(tid, 0);
                }
                self.begin(tid, raw, frames)
            }
            _ => self.run_natively(tid, 0),
        }
    }

    fn pointers(&self, p: usize, array: u64, count: u64) -> Vec<u64> {
        let bytes = self.processes[p].read(array, 8 * count.min(LARGEST_BURST) as usize);
        bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default())).collect()
    }

    /// Notes packets that are sent after the work of their burst, such as from a buffer of the program.
    fn sent_later(&mut self, p: usize, mbufs: &[u64]) {
        for m in mbufs {
            let Some(number) = self.dpdk.pending.remove(&(p, *m)) else { continue };
            if let Some(f) = frame(&self.processes[p], *m) {
                self.builder.packets[number].outcome = Outcome::Forwarded(f.length);
            }
        }
    }
}

/// The frame of an mbuf and of those that are chained to it; `None` for what is no mbuf of the known layout.
fn frame(process: &Process, mbuf: u64) -> Option<Frame> {
    let (mut out, mut m, mut before) = (Frame { name: mbuf, ..Frame::default() }, mbuf, 0);
    for segment in 0..256 {
        let bytes = process.read(m, MBUF as usize);
        let part = |at: usize, size: usize| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes.get(at..at + size)?);
            Some(u64::from_le_bytes(word))
        };
        let (buffer, offset, length, room) =
            (part(BUF_ADDR, 8)?, part(DATA_OFF, 2)?, part(DATA_LEN, 2)?, part(BUF_LEN, 2)?);
        if offset + length > room || segment == 0 && length > part(PKT_LEN, 4)? {
            return None; // not an mbuf of this layout
        }
        let zero = (buffer + offset).wrapping_sub(before);
        out.data.push(Piece { start: buffer, end: buffer + room, zero });
        out.metadata.push(Piece { start: m, end: m + MBUF, zero: m.wrapping_sub(segment * MBUF) });
        before += length;
        if segment == 0 {
            out.length = part(PKT_LEN, 4)? as u32;
        }
        m = part(NEXT, 8)?;
        if m == 0 || part(NB_SEGS, 2)? == 1 && segment == 0 {
            return Some(out);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that is interrupted between the two words, however often the table is read meanwhile, has no boundary
    /// until the second word is written; a port that has no transmit function gets one after [`RECEIVE_ONLY_AFTER`].
    #[test]
    fn functions_count_when_both_are_written() {
        let begun = Instant::now();
        let mut f = Functions::default();
        for ms in (0..2900).step_by(100) {
            assert!(!f.update(vec![1], vec![], begun + Duration::from_millis(ms)), "{ms} ms");
        }
        assert!(f.update(vec![1], vec![2], begun + Duration::from_secs(4)));
        assert_eq!(f.entries(), [1, 2]);

        // Ports that are stopped and started again.
        assert!(f.update(vec![], vec![], begun + Duration::from_secs(9)));
        assert!(!f.update(vec![3], vec![], begun + Duration::from_secs(10)));
        assert!(!f.update(vec![3], vec![], begun + Duration::from_millis(12_999)));
        assert!(f.update(vec![3], vec![], begun + Duration::from_secs(13)));
        assert_eq!(f.entries(), [3]);
    }
}
