//! Packets between addresses or symbols that the user names.

use super::{Mode, Raw, Tracer};
use crate::burst::{Frame, Piece};
use crate::process::{Function, Process};
use crate::sys::{self, Tid};
use crate::Between;
use hostnet_recording::Error;
use std::collections::HashMap;

/// Addresses at which work begins and ends, by process.
#[derive(Default)]
pub(super) struct Named {
    found: HashMap<usize, (u64, Option<u64>)>,
    /// Words that tell where indirect functions are, and which the loader has not written yet, by process.
    awaited: HashMap<usize, u64>,
    /// Whether a thread has been where work begins.
    reached: bool,
}

impl Named {
    /// Looks for the addresses in a process; whether they have been found now.
    pub(super) fn look(&mut self, p: usize, process: &mut Process, between: &Between) -> Result<bool, Error> {
        let Between::Addresses { enter, leave, .. } = between else { return Ok(false) };
        if self.found.contains_key(&p) {
            return Ok(false);
        }
        process.refresh();
        let mut places = Vec::new();
        for name in [Some(enter), leave.as_ref()].into_iter().flatten() {
            match address(process, name)? {
                Some(Function::At(address)) => places.push(address),
                Some(Function::Awaited(word)) => return Ok(self.awaited.insert(p, word) != Some(word)),
                None => return Ok(false),
            }
        }
        self.awaited.remove(&p);
        self.found.insert(p, (places[0], places.get(1).copied()));
        Ok(true)
    }
    pub(super) fn forget(&mut self, p: usize) {
        self.found.remove(&p);
        self.awaited.remove(&p);
    }
    /// Addresses of words whose change may tell where work begins or ends.
    pub(super) fn awaited(&self, p: usize) -> Vec<u64> {
        self.awaited.get(&p).copied().into_iter().collect()
    }
    pub(super) fn is_found(&self) -> bool {
        !self.found.is_empty()
    }
    pub(super) fn is_reached(&self) -> bool {
        self.reached
    }
    pub(super) fn entries(&self, p: usize) -> Vec<u64> {
        self.found.get(&p).map(|f| f.0).into_iter().collect()
    }
}

/// Address of a symbol, or the address that a disassembler of the program prints.
fn address(process: &Process, name: &str) -> Result<Option<Function>, Error> {
    let Some(digits) = name.strip_prefix("0x") else { return Ok(process.function(name)) };
    let number = u64::from_str_radix(digits, 16)
        .map_err(|_| Error(format!("{name} is no hexadecimal address, such as 0x401136.")))?;
    Ok(process.own_address(number).map(Function::At))
}

impl Tracer<'_> {
    /// A thread is where a packet's work begins.
    pub(super) fn at_enter(&mut self, tid: Tid, raw: &Raw) -> std::io::Result<()> {
        self.addresses.reached = true;
        let process = &self.processes[self.threads[&tid].process];
        let back = process.word(raw.rsp).unwrap_or_default();
        self.threads.get_mut(&tid).expect("the thread is known").entry = (raw.rsp, back);
        if !self.wants(1) {
            // Past the breakpoint's instruction, which the kernel executes without stopping again.
            return self.pass(tid, 0);
        }
        let mut frame = Frame::default();
        if let Between::Addresses { frame: Some((pointer, length)), .. } = &self.options.between {
            let r = sys::address_registers(raw);
            let (start, bytes) = (pointer.value(&r), length.value(&r).min(1 << 16));
            frame.length = bytes as u32;
            frame.data.push(Piece { start, end: start.saturating_add(bytes), zero: start });
        }
        self.begin(tid, raw, vec![frame])
    }

    /// Lets a thread run natively to the end of the work that it is in; a recursive call within is no work of its own.
    pub(super) fn pass(&mut self, tid: Tid, signal: i32) -> std::io::Result<()> {
        let t = self.threads.get_mut(&tid).expect("the thread is known");
        let leave = self.addresses.found.get(&t.process).and_then(|found| found.1);
        let end = leave.unwrap_or(t.entry.1);
        if !self.processes[t.process].executes(end) {
            return self.run_natively(tid, signal); // begun within a function, without its return address
        }
        t.mode = Mode::Pass;
        self.run_to(tid, end, signal)
    }

    /// The work of a thread has ended, and other work may begin right here.
    pub(super) fn left(&mut self, tid: Tid, raw: &Raw) -> std::io::Result<()> {
        if self.addresses.entries(self.threads[&tid].process).contains(&raw.rip) {
            return self.at_enter(tid, raw);
        }
        self.run_natively(tid, 0)
    }

    /// Whether a packet's work has ended: at the address to leave, or with the return of the function that was entered.
    pub(super) fn leaves(&self, tid: Tid, raw: &Raw) -> bool {
        let t = &self.threads[&tid];
        match self.addresses.found.get(&t.process) {
            Some((_, Some(leave))) => raw.rip == *leave,
            _ => raw.rip == t.entry.1 && raw.rsp > t.entry.0,
        }
    }
}
