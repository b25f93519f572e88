//! Several machines on one calendar.
//!
//! Events do not name a machine; the calendar stores a *lane* beside each event, which is the number of the machine
//! that the event is for. Events that a machine posts while it handles an event go to its own lane;
//! [`Calendar::push_to`](crate::kernel::Calendar::push_to) posts events for another machine, such as a packet that
//! crosses a wire. Events leave in the order of time, then of lanes, then of insertion, so that the order of a world
//! depends on nothing else.
//!
//! The world lends the calendar to the machine that handles an event. A machine outside a world owns its calendar, so
//! that worlds cost it nothing.

use super::{Event, Events, Machine, MachineSignal};
use crate::kernel::Int;
use std::mem::swap;

/// Several machines, or hosts with one machine each, that share one calendar.
#[derive(Clone)]
pub struct World<M> {
    /// The machines or hosts.
    pub members: Vec<M>,
    cal: Events,
    /// Number of the member that holds the calendar.
    at_work: Option<usize>,
}

impl<M: AsMut<Machine>> World<M> {
    /// Makes a world of up to 256 members, and moves events from the members' own calendars to the common one.
    ///
    /// # Panics
    /// Panics when there are more members than lanes.
    pub fn new(mut members: Vec<M>) -> World<M> {
        assert!(members.len() <= 1 << 8, "{} members are more than the calendar's lanes", members.len());
        let mut cal = Events::default();
        for (lane, m) in members.iter_mut().enumerate() {
            let own = &mut m.as_mut().cal;
            while let Some((at, e)) = own.pop() {
                cal.push_to(lane.to_u8(), at, e);
            }
            *own = Events::default();
        }
        World { members, cal, at_work: None }
    }

    /// Handles the next event; returns the member that handled the event, and the member's signal. This member holds
    /// the calendar until the next call.
    pub fn step(&mut self) -> Option<(usize, Option<MachineSignal>)> {
        let (to, e) = self.pop()?;
        Some((to, self.members[to].as_mut().handle(e)))
    }

    /// Takes the next event, whose time it is now at the member that the event is for; this member holds the calendar
    /// until the next call.
    pub fn pop(&mut self) -> Option<(usize, Event)> {
        let from = match self.at_work {
            Some(i) => &mut self.members[i].as_mut().cal,
            None => &mut self.cal,
        };
        let (at, e) = from.pop()?;
        let to = usize::from(from.lane());
        self.lend(to);
        let m = self.members[to].as_mut();
        m.now = at;
        Some((to, e))
    }

    /// Lends the calendar to member `to`, which may then post events.
    pub fn lend(&mut self, to: usize) {
        if self.at_work == Some(to) {
            return;
        }
        if let Some(i) = self.at_work.take() {
            swap(&mut self.cal, &mut self.members[i].as_mut().cal);
        }
        swap(&mut self.cal, &mut self.members[to].as_mut().cal);
        self.members[to].as_mut().cal.set_lane(to.to_u8());
        self.at_work = Some(to);
    }
}

impl AsMut<Machine> for Machine {
    fn as_mut(&mut self) -> &mut Machine {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{RandomStream, Time};
    use crate::machine::Event;
    use crate::memory::region::AddressMap;
    use crate::memory::testing::memory_of;

    fn machine() -> Machine {
        let platform = include_str!("../../../../platforms/sim24.toml");
        Machine::without_devices(memory_of(platform, 0, AddressMap::default()), Vec::new())
    }

    /// Timers at random times, some of them equal, on each of two machines.
    fn timers(seed: u64) -> Vec<(Time, u32)> {
        let mut dice = RandomStream::new(seed, "timers", 0);
        (0..500).map(|i| (Time(dice.below(200) * 1_000), i)).collect()
    }

    fn run(world: &mut World<Machine>) -> Vec<(Time, usize, u32)> {
        let mut seen = Vec::new();
        while let Some((i, s)) = world.step() {
            let Some(MachineSignal::Timer(n)) = s else { panic!("{s:?}") };
            let m = &mut world.members[i];
            seen.push((m.now, i, n));
            // Some timers start a further timer on the same machine and on the other machine.
            if n % 7 == 0 && n < 500 {
                m.cal.push(m.now + Time(700), Event::Timer(n + 1000));
                m.cal.push_to(1 - i as u8, m.now + Time(700), Event::Timer(n + 2000));
            }
        }
        seen
    }

    #[test]
    fn two_machines_in_one_world_go_on_in_order_of_time_then_of_machines_then_of_coming() {
        let mut both = [machine(), machine()];
        for (m, seed) in both.iter_mut().zip([1, 2]) {
            timers(seed).into_iter().for_each(|(at, n)| m.cal.push(at, Event::Timer(n)));
        }
        let seen = run(&mut World::new(both.into()));
        assert_eq!(seen.len(), 2 * (500 + 72 * 2));
        assert!(seen.windows(2).all(|w| (w[0].0, w[0].1) <= (w[1].0, w[1].1)), "time, then machine");
        for lane in 0..2 {
            let first = |n: u32| n < 1000;
            let mut of = timers(lane as u64 + 1);
            of.sort_by_key(|t| t.0); // stable: timers of one instant stay in the order of their insertion
            let own: Vec<_> = seen.iter().filter(|s| s.1 == lane && first(s.2)).map(|s| (s.0, s.2)).collect();
            assert_eq!(own, of);
        }
        // An event that a machine posts for the other machine occurs there, at the time of the same event on its own
        // lane.
        let at = |lane: usize, n: u32| seen.iter().find(|s| s.1 == lane && s.2 == n).map(|s| s.0);
        assert!((0..500).step_by(7).all(|n| at(0, n + 1000) == at(1, n + 2000) && at(1, n + 1000) == at(0, n + 2000)));
        assert!((0..500).step_by(7).all(|n| at(0, n + 1000) == at(0, n).map(|t| t + Time(700))));
    }

    #[test]
    fn a_machine_behaves_in_a_world_as_alone() {
        let mut alone = machine();
        timers(3).into_iter().for_each(|(at, n)| alone.cal.push(at, Event::Timer(n)));
        let mut world = World::new(vec![alone.clone(), machine()]);
        let seen: Vec<_> = std::iter::from_fn(|| world.step()).collect();
        let expected: Vec<_> = std::iter::from_fn(|| alone.next_signal()).map(|s| (0, Some(s))).collect();
        assert_eq!(seen, expected);
        assert_eq!(world.members[0].now, alone.now);
    }
}
