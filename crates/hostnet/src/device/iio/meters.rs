//! Meters of the I/O controllers with their links and credits, and the conservation checks over them.

use super::parts::{IioController, IioPort, ReadJob, Tlp};
use super::Iio;
use crate::device::endpoint::Endpoint;
use crate::device::pcie::{NON_POSTED, POSTED};
use crate::flow::domain::{Domain, DomainReading};
use crate::flow::{Credits, Link};
use crate::kernel::{Int, Time};

impl Iio {
    fn completed(&self) -> u64 {
        self.ports.iter().map(|p| p.device.completed()).sum()
    }

    /// Begins the measured window at `now`.
    pub fn restart_meters(&mut self, now: Time) {
        self.since = now;
        for s in &mut self.controllers {
            s.write.restart(now);
            s.read.restart(now);
            s.to_home_agent.restart(now);
        }
        self.completed_before = self.completed();
        self.shortest_read = None;
        for p in &mut self.ports {
            p.moved = 0;
            p.up.restart(now);
            p.down.restart(now);
            p.tags.restart(now);
            p.device.restart_meters(now);
        }
    }

    /// Write and read buffers of each controller.
    pub fn buffers(&self) -> impl Iterator<Item = (&Domain, &Domain)> {
        self.controllers.iter().map(|s| (&s.write, &s.read))
    }

    /// Readings of all controllers' write buffers together, and of all their read buffers together.
    pub fn readings(&self, now: Time) -> [Option<DomainReading>; 2] {
        let all =
            |f: fn(&IioController) -> &Domain| DomainReading::together(self.controllers.iter().map(|s| f(s).read(now)));
        [all(|s| &s.write), all(|s| &s.read)]
    }

    /// Readings of the links and of the credits of all ports together, each with its name.
    pub fn link_readings(&self, now: Time) -> impl Iterator<Item = (&'static str, DomainReading)> + '_ {
        let all = |f: &dyn Fn(&IioPort) -> DomainReading| DomainReading::together(self.ports.iter().map(f));
        let rows = [
            ("PCIe up", all(&|p| p.up.read(now))),
            ("PCIe down", all(&|p| p.down.read(now))),
            ("PCIe posted credits", all(&|p| p.up.credits(POSTED).read(now))),
            ("PCIe non-posted credits", all(&|p| p.up.credits(NON_POSTED).read(now))),
            ("PCIe tags", all(&|p| p.tags.read(now))),
        ];
        rows.into_iter().filter_map(|(name, r)| Some((name, r.filter(|r| r.arrival_rate > 0.0)?)))
    }

    /// Shortest time that a device read has taken since the restart, from its request to its last data.
    pub fn shortest_read(&self) -> Option<Time> {
        self.shortest_read
    }

    /// Lines moved and commands, messages or frames completed since the restart.
    pub fn moved(&self) -> (u64, u64) {
        (self.ports.iter().map(|p| p.moved).sum(), self.completed() - self.completed_before)
    }

    /// Share of time in which the ports' links carried packets, up and down: at most 1, since of a packet that is being carried
    /// at either end of the window only the part within it counts.
    pub fn utilisation(&self, now: Time) -> (f64, f64) {
        let span = (now - self.since).0.max(1).to_f64() * self.ports.len().max(1).to_f64();
        let sum =
            |f: fn(&IioPort) -> &Link| self.ports.iter().map(|p| f(p).busy_until(now).0).sum::<u64>().to_f64() / span;
        (sum(|p| &p.up), sum(|p| &p.down))
    }

    /// Share of time in which the busiest link, of one port and one direction, carried packets.
    pub fn busiest_link(&self, now: Time) -> Option<f64> {
        let span = (now - self.since).0.max(1).to_f64();
        let busy = self.ports.iter().flat_map(|p| [&p.up, &p.down]).map(|link| link.busy_until(now).0).max();
        busy.map(|ps| ps.to_f64() / span)
    }

    /// Shares of the posted credits, the non-posted credits and the tags in use, each of the port that has the most in use.
    pub fn credits_in_use(&self, now: Time) -> [Option<f64>; 3] {
        let fullest = |f: fn(&IioPort) -> &Credits| {
            let share = |c: &Credits| c.read(now).occupancy / f64::from(c.credits().max(1));
            self.ports.iter().map(|p| share(f(p))).reduce(f64::max)
        };
        [fullest(|p| p.up.credits(POSTED)), fullest(|p| p.up.credits(NON_POSTED)), fullest(|p| &p.tags)]
    }

    /// Share of time in which the busiest controller's path to the home agent carried lines.
    pub fn path_utilisation(&self, now: Time) -> f64 {
        let span = (now - self.since).0.max(1).to_f64();
        let busy = self.controllers.iter().map(|c| c.to_home_agent.busy_until(now).0).max();
        busy.unwrap_or(0).to_f64() / span
    }

    /// Whether nothing is in flight: every credit is returned and every buffer entry is free.
    pub fn is_idle(&self) -> bool {
        let port = |p: &IioPort| {
            let credits = [p.up.credits(POSTED), p.up.credits(NON_POSTED), &p.tags];
            p.on_wire.is_none() && credits.iter().all(|c| c.held() == 0)
        };
        self.ports.iter().all(port) && self.buffers().all(|(write, read)| write.used() + read.used() == 0)
    }

    /// Checks that no credit is lost, and that each device's own audit holds.
    ///
    /// # Errors
    /// Returns one sentence with the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        self.devices().try_for_each(Endpoint::check)?;
        let sum = |f: fn(&IioPort) -> u32| self.ports.iter().map(f).sum::<u32>();
        let waiting_lines = |c: &IioController| c.writes.iter().map(|w| u32::from(w.lines)).sum::<u32>();
        let entries: u32 = self.controllers.iter().map(|s| s.write.used() + waiting_lines(s)).sum();
        let on_wire = sum(|p| match p.on_wire {
            Some(Tlp::Write(_, lines, _)) => lines,
            _ => 0,
        });
        let of = |j: &ReadJob| self.ports[j.port].framing.requests(j.lines);
        let every: u32 = self.jobs.iter().map(of).sum();
        let ended: u32 = self.spare.iter().map(|id| of(&self.jobs[*id])).sum();
        let returned: u32 = self.jobs.iter().filter(|j| j.returned).map(of).sum();
        let waiting: u32 = self.jobs.iter().filter(|j| j.entries > 0).map(of).sum();
        for (what, out, inside) in [
            ("posted credits", sum(|p| p.up.credits(POSTED).held()), entries + on_wire),
            ("non-posted credits", sum(|p| p.up.credits(NON_POSTED).held()), waiting),
            ("tags", sum(|p| p.tags.held()), every - ended - returned),
        ] {
            if out != inside {
                return Err(format!("{out} {what} of devices are out, {inside} are accounted for"));
            }
        }
        Ok(())
    }
}
