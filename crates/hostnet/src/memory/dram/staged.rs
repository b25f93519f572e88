//! Scheduler of DRAMsim3, which has a command queue for each bank behind the read queue and the write queue. In each
//! clock, the read or the write queue passes on one request: the first whose bank queue has room. A bank queue mixes
//! reads and writes in order of arrival, and the banks take turns on the command bus.

use super::banks::{bits, SlotId};
use super::channel::{Channel, READ, WRITE};
use super::transaction::ChannelStep;
use super::{DramCompletion, RowOutcome};
use crate::kernel::{Due, Int, Time};

/// State of the read and write queues in front of the bank queues.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    pub head: [Option<SlotId>; 2],
    tail: [Option<SlotId>; 2],
    count: [usize; 2],
    fill: Vec<u32>,
    /// Number of writes to pass on before reads continue.
    draining: usize,
    /// Earliest time at which the next request can be passed on (`free_at`), and that request (`movable`).
    free_at: u64,
    movable: Option<SlotId>,
    /// Bank that issued the last command.
    turn: usize,
}

impl Staged {
    pub(super) fn new(banks: usize) -> Staged {
        Staged {
            head: [None; 2],
            tail: [None; 2],
            count: [0; 2],
            fill: vec![0; banks],
            draining: 0,
            free_at: 0,
            movable: None,
            turn: 0,
        }
    }
}

/// Command bits that stand for an activate or precharge in a key
/// `[time after the floor: 28][turns to wait: 6][age: 28][command: 2]`.
const ROW: u64 = 2;

impl Channel {
    #[inline(never)]
    pub(super) fn stage(&mut self, i: SlotId, dir: usize, now: u64) {
        let st = &mut self.staged;
        self.slots[i].prev = st.tail[dir];
        match st.tail[dir] {
            None => st.head[dir] = Some(i),
            Some(tail) => self.slots[tail].next = Some(i),
        }
        st.tail[dir] = Some(i);
        st.count[dir] += 1;
        self.find_movable();
        if self.staged.movable.is_some() {
            self.wake = self.wake.min(Due::at(Time(self.staged.free_at.max(now))));
        }
    }

    /// Chooses between writes and reads, and chooses the request to pass on.
    fn find_movable(&mut self) {
        let st = &mut self.staged;
        if st.draining == 0 {
            let idle = self.queued == [0, 0] && st.count[WRITE] > self.p.idle;
            if st.count[WRITE] > self.p.high || idle {
                st.draining = st.count[WRITE];
                self.stats.mode_switches += 2;
            }
        }
        let dir = if st.draining > 0 { WRITE } else { READ };
        let head = st.head[dir];
        let has_room = |i: &SlotId| self.staged.fill[usize::from(self.slots[*i].bank)] < self.p.bank_queue;
        let movable = self.list(head).find(has_room);
        self.staged.movable = movable;
    }

    fn hand_over(&mut self, at: u64) {
        let st = &mut self.staged;
        let i = st.movable.expect("a request to hand over");
        let s = self.slots[i];
        let (dir, b) = (usize::from(s.dir), usize::from(s.bank));
        match s.prev {
            None => st.head[dir] = s.next,
            Some(p) => self.slots[p].next = s.next,
        }
        match s.next {
            None => st.tail[dir] = s.prev,
            Some(n) => self.slots[n].prev = s.prev,
        }
        st.count[dir] -= 1;
        st.draining -= usize::from(dir == WRITE);
        st.fill[b] += 1;
        st.free_at = at + self.t.tck;
        self.link(i, b, dir);
        self.sort_in(i, b, dir);
        self.free_entry(dir, at, at);
        // The bank queue presents the request to the command step of the next clock.
        self.clock = self.clock.max(at + self.t.tck);
        self.find_movable();
    }

    /// Body of `advance` for this organisation.
    #[inline(never)]
    pub(super) fn advance_staged(&mut self, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            let command = self.choose_staged();
            let over = match self.staged.movable {
                None => Due::NEVER,
                Some(_) => Due::at(Time(self.staged.free_at.max(self.clock))),
            };
            let at = command.map_or(Due::NEVER, |(at, _)| Due::at(Time(at)));
            match self.turn(at.min(over), now) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => self.start_refresh(due),
                ChannelStep::Choose(now) => match command.filter(|_| at <= over) {
                    Some((at, key)) => {
                        self.clock = self.clock.max(at);
                        self.issue_staged(at, key, done);
                        self.find_movable();
                    }
                    None => self.hand_over(now),
                },
            }
        }
    }

    /// Older of the heads of a bank's two lists.
    fn oldest(&self, b: usize) -> SlotId {
        let heads = self.banks[b].q.iter().filter_map(|q| q.head);
        heads.min_by_key(|i| self.slots[*i].age).expect("a request of the bank")
    }

    /// Time and key of the next command.
    fn choose_staged(&self) -> Option<(u64, u64)> {
        let floor = self.cmd_free.max(self.clock);
        let n = self.staged.fill.len();
        let mut best: Option<u64> = None;
        let any = self.hits[READ] | self.hits[WRITE] | self.misses[READ] | self.misses[WRITE];
        for b in bits(any & !self.blocked) {
            let turn = ((b + 2 * n - self.staged.turn - 1) % n).to_u64();
            let mut offer = |at: u64, i: SlotId, command: u64| {
                let age = u64::from(self.slots[i].age);
                let k = at.saturating_sub(floor) << 36 | turn << 30 | age << 2 | command;
                best = Some(best.map_or(k, |best| best.min(k)));
            };
            let head = self.oldest(b);
            if self.open >> b & 1 == 0 {
                offer(self.activate_at(b), head, ROW);
                continue;
            }
            let mut hit = false;
            for dir in [READ, WRITE] {
                if let Some(i) = self.banks[b].q[dir].hit {
                    hit = true;
                    offer(self.column_at(b, dir), i, dir.to_u64());
                }
            }
            let limit = self.p.row_hit_limit;
            let spent = limit > 0 && self.banks[b].accesses >= limit;
            if self.banks[b].row != Some(self.slots[head].row) && (!hit || spent) {
                offer(self.scan.lanes[b].pre_at, head, ROW);
            }
        }
        let mut choice = best.map(|k| (floor + (k >> 36), k & ((1 << 36) - 1)));
        if self.blocked != 0 {
            if let Some((at, r)) = self.choose_refresh() {
                if choice.is_none_or(|(command, _)| at.max(floor) <= command) {
                    choice = Some((at.max(floor), 1 << 36 | r.to_u64()));
                }
            }
        }
        choice
    }

    fn issue_staged(&mut self, at: u64, key: u64, done: &mut Vec<DramCompletion>) {
        if key >> 36 != 0 {
            return self.refresh((key & 63).to_usize(), at);
        }
        let n = self.staged.fill.len();
        let b = ((key >> 30).to_usize() + self.staged.turn + 1) % n;
        self.staged.turn = b;
        let command = key & 3;
        if command != ROW {
            let dir = command.to_usize();
            let i = self.banks[b].q[dir].hit.expect("a request for the open row");
            let next = self.slots[i].next;
            self.unlink(b, i);
            self.find_hit(b, dir, next);
            self.slots[i].outcome.get_or_insert(RowOutcome::Hit);
            self.staged.fill[b] -= 1;
            return self.column(b, i, at, done);
        }
        let head = self.oldest(b);
        if self.open >> b & 1 == 0 {
            self.slots[head].outcome.get_or_insert(RowOutcome::Miss);
            self.open_row(b, self.slots[head].row, at);
            self.opened(b);
        } else {
            self.slots[head].outcome.get_or_insert(RowOutcome::Conflict);
            self.cmd_free = at + self.t.tck;
            self.stats.precharges += 1;
            self.close(b, at);
        }
    }
}
