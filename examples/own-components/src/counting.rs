//! A stack over an Ethernet NIC on a port: each core drives descriptor rings of its own, and all cores count their bursts in
//! one line of memory.

use hostnet::core::Op;
use hostnet::kernel::{LineAddr, Time};
use hostnet::machine::Machine;
use hostnet::meter::table::table;
use hostnet::stack::extension::{ExtensionThread, Stack, StackSite};
use hostnet::stack::pmd::PollMode;
use hostnet::stack::{Bus, Ctx, Notice, Role, RoleView, Software, Step, Wakes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Parameters of the stack: none.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountingSpec {}

/// What the cores share: the line with the counter, and the packets that each core has taken.
#[derive(Clone)]
pub struct Counting {
    counter: LineAddr,
    taken: Vec<u64>,
}

impl Role for Counting {
    fn restart_meters(&mut self, _: &mut Bus) {
        self.taken.fill(0);
    }
    fn tables(&self, _: &RoleView) -> Vec<(&'static str, Value)> {
        let rows = self.taken.iter().enumerate().map(|(core, n)| vec![core.into(), (*n).into()]);
        vec![("counting", table(&[("core", ""), ("packets", "packets")], rows.collect()))]
    }
}

impl Stack for Counting {
    type Spec = CountingSpec;
    const DRIVES_RINGS: bool = true;

    fn build(_: &CountingSpec, site: &mut StackSite) -> Result<(Counting, Vec<ExtensionThread>), String> {
        let (counter, cores) = (site.shared(1), site.cores.len());
        let driver = |local| site.driver(local).ok_or("\"counting\" needs a nic on a port".to_string());
        let drivers = (0..cores).map(driver).collect::<Result<Vec<_>, _>>()?;
        let threads = drivers.into_iter().map(|driver| ExtensionThread::new(CountingCore { driver })).collect();
        Ok((Counting { counter, taken: vec![0; cores] }, threads))
    }
}

/// Thread of a core.
#[derive(Clone)]
struct CountingCore {
    driver: PollMode,
}

impl Software for CountingCore {
    fn step(&mut self, c: &mut Ctx) -> Step {
        let before = c.tally.taken;
        let step = self.driver.step(c);
        let taken = c.tally.taken - before;
        if let (true, Some(shared)) = (taken > 0, c.roles.get_mut::<Counting>()) {
            c.program.push(Op::Atomic { line: shared.counter });
            shared.taken[c.step.local] += taken;
        }
        step
    }

    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        self.driver.notify(what, now)
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        self.driver.retired(tag, c);
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.driver.retired_functional(tag, m);
    }

    fn restart_meters(&mut self, now: Time) {
        self.driver.restart_meters(now);
    }

    fn idle(&self, since: Time, now: Time) -> Option<Time> {
        self.driver.idle(since, now)
    }
}
