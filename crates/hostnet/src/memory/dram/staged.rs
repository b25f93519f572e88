//! Scheduler of DRAMsim3, which has a command queue for each bank behind the read queue and the write queue. In each
//! clock, the read or the write queue passes on one request: the first whose bank queue has room. A bank queue mixes
//! reads and writes in order of arrival, and the banks take turns on the command bus.

use super::banks::{bits, RequestSlot, SlotId};
use super::channel::{above, Channel, Scheduling, READ, WRITE};
use super::plan::BankQueuePlan;
use super::transaction::ChannelStep;
use super::{DramCompletion, RowOutcome};
use crate::kernel::{Due, Int, Time};

/// Policy and state of the scheduler.
#[derive(Clone, Debug)]
pub(super) struct BankQueues {
    /// Number of entries of a bank's queue.
    entries: u32,
    /// Number of accesses after which the head of a bank's queue may close the row; 0 means no limit.
    row_hit_limit: u32,
    /// Number of writes above which writes go while nothing else waits.
    idle: usize,
    staged: Staged,
}

impl BankQueues {
    pub(super) fn new(plan: &BankQueuePlan, wpq: u32, banks: usize) -> BankQueues {
        BankQueues {
            entries: plan.bank_queue,
            row_hit_limit: plan.row_hit_limit,
            idle: above(plan.write_idle, wpq),
            staged: Staged::new(banks),
        }
    }
}

impl Scheduling for BankQueues {
    #[inline]
    fn accept(&mut self, ch: &mut Channel, i: SlotId, _b: usize, dir: usize, now: u64) {
        ch.stage(self, i, dir, now);
    }

    #[inline]
    fn issue_until(&mut self, ch: &mut Channel, now: u64, done: &mut Vec<DramCompletion>) {
        ch.advance_staged(self, now, done);
    }

    #[inline]
    fn heads(&self) -> [Option<SlotId>; 2] {
        self.staged.head
    }

    fn entries_per_bank(&self) -> usize {
        1 + self.entries.to_usize()
    }
}

/// State of the read and write queues in front of the bank queues.
#[derive(Clone, Debug)]
struct Staged {
    head: [Option<SlotId>; 2],
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
    fn new(banks: usize) -> Staged {
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
    fn stage(&mut self, s: &mut BankQueues, i: SlotId, dir: usize, now: u64) {
        let st = &mut s.staged;
        self.slots[i].prev = st.tail[dir];
        match st.tail[dir] {
            None => st.head[dir] = Some(i),
            Some(tail) => self.slots[tail].next = Some(i),
        }
        st.tail[dir] = Some(i);
        st.count[dir] += 1;
        self.find_movable(s);
        if s.staged.movable.is_some() {
            self.wake = self.wake.min(Due::at(Time(s.staged.free_at.max(now))));
        }
    }

    /// Chooses between writes and reads, and chooses the request to pass on.
    fn find_movable(&mut self, s: &mut BankQueues) {
        let st = &mut s.staged;
        if st.draining == 0 {
            let idle = self.queued == [0, 0] && st.count[WRITE] > s.idle;
            if st.count[WRITE] > self.p.high || idle {
                st.draining = st.count[WRITE];
                self.stats.mode_switches += 2;
            }
        }
        let dir = if st.draining > 0 { WRITE } else { READ };
        let head = st.head[dir];
        let has_room = |i: &SlotId| s.staged.fill[usize::from(self.slots[*i].bank)] < s.entries;
        let movable = self.list(head).find(has_room);
        s.staged.movable = movable;
    }

    fn hand_over(&mut self, s: &mut BankQueues, at: u64) {
        let st = &mut s.staged;
        let i = st.movable.expect("a request to hand over");
        let RequestSlot { dir, bank, prev, next, .. } = self.slots[i];
        let (dir, b) = (usize::from(dir), usize::from(bank));
        match prev {
            None => st.head[dir] = next,
            Some(p) => self.slots[p].next = next,
        }
        match next {
            None => st.tail[dir] = prev,
            Some(n) => self.slots[n].prev = prev,
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
        self.find_movable(s);
    }

    /// Body of `advance` for this organisation.
    #[inline(never)]
    fn advance_staged(&mut self, s: &mut BankQueues, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            let command = self.choose_staged(s);
            let over = match s.staged.movable {
                None => Due::NEVER,
                Some(_) => Due::at(Time(s.staged.free_at.max(self.clock))),
            };
            let at = command.map_or(Due::NEVER, |(at, _)| Due::at(Time(at)));
            match self.turn(at.min(over), now, false) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => self.start_refresh(due),
                ChannelStep::Choose(now) => match command.filter(|_| at <= over) {
                    Some((at, key)) => {
                        self.clock = self.clock.max(at);
                        self.issue_staged(s, at, key, done);
                        self.find_movable(s);
                    }
                    None => self.hand_over(s, now),
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
    fn choose_staged(&self, s: &BankQueues) -> Option<(u64, u64)> {
        let floor = self.cmd_free.max(self.clock);
        let n = s.staged.fill.len();
        let mut best: Option<u64> = None;
        let any = self.hits[READ] | self.hits[WRITE] | self.misses[READ] | self.misses[WRITE];
        for b in bits(any & !self.blocked) {
            let turn = ((b + 2 * n - s.staged.turn - 1) % n).to_u64();
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
            let limit = s.row_hit_limit;
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

    fn issue_staged(&mut self, s: &mut BankQueues, at: u64, key: u64, done: &mut Vec<DramCompletion>) {
        if key >> 36 != 0 {
            return self.refresh((key & 63).to_usize(), at);
        }
        let n = s.staged.fill.len();
        let b = ((key >> 30).to_usize() + s.staged.turn + 1) % n;
        s.staged.turn = b;
        let command = key & 3;
        if command != ROW {
            let dir = command.to_usize();
            let i = self.banks[b].q[dir].hit.expect("a request for the open row");
            let next = self.slots[i].next;
            self.unlink(b, i);
            self.find_hit(b, dir, next);
            self.slots[i].outcome.get_or_insert(RowOutcome::Hit);
            s.staged.fill[b] -= 1;
            let (dir, _) = self.column(b, i, at, done);
            return self.put_off_columns(b, dir, at);
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
