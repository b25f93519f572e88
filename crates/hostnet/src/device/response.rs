//! A host's response to its own congestion: hostCC's host-local response (SIGCOMM'23), which slows the cores of tenants
//! that do not receive packets until the network reaches its target rate.

use crate::kernel::units::{Bandwidth, Span};
use crate::kernel::{Int, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// hostCC's host-local response: levels that delay the memory requests of the other tenants' cores. While the IIO is
/// congested and the network receives less than `target`, the level rises; while the IIO is not congested and the
/// network receives more than `target`, the level falls.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostResponse {
    /// Rate that the network is meant to receive, in bytes of frames that reach memory.
    pub target: Bandwidth,
    /// IIO write-buffer entries in use, as a moving average, above which the IIO is congested.
    pub occupancy: u32,
    /// Time for which a miss of the other tenants' cores additionally waits for a line fill buffer, one entry per level
    /// from level 1 on; level 0 adds no wait. The defaults are assumed: with each level hostCC throttles the cores of
    /// more nodes, and at the last level it stops these cores.
    #[serde(default = "levels")]
    pub levels: Vec<Span>,
    /// Time between two evaluations of the host's congestion. The default is assumed: about the time that a change of
    /// throttling takes.
    #[serde(default = "interval")]
    pub interval: Span,
    /// Minimum time between two decreases of the level. The default is the value in hostCC's code.
    #[serde(default = "patience")]
    pub patience: Span,
}
fn levels() -> Vec<Span> {
    [100, 300, 1000, 10_000].map(|ns| Span(ns * 1000)).to_vec()
}
fn interval() -> Span {
    Span(22_000_000)
}
fn patience() -> Span {
    Span(150_000_000)
}

impl HostResponse {
    /// Checks that the parameters of the response are usable.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.target.0 == 0 {
            return Err("host_response.target = \"0 bps\" must be positive".into());
        }
        if self.occupancy == 0 {
            return Err("host_response.occupancy = 0 must be positive".into());
        }
        if self.levels.is_empty() {
            return Err("host_response.levels = [] names no delay; leave host_response out instead".into());
        }
        if self.interval.0 == 0 {
            return Err("host_response.interval = \"0 ns\" must be positive".into());
        }
        Ok(())
    }
}

/// State of the host-local response during a run.
#[derive(Clone, Debug)]
pub struct Responder {
    spec: HostResponse,
    level: usize,
    /// Time of the last evaluation.
    looked: Time,
    /// Number of bytes that had reached memory by then.
    bytes: u64,
    fell: Time,
    /// Integral of the level over time, in level x ps, from the window's start to `looked`.
    sum: u64,
    since: Time,
}

impl Responder {
    /// A host response at its lowest level.
    pub fn new(spec: HostResponse) -> Responder {
        let zero = Time::ZERO;
        Responder { spec, level: 0, looked: zero, bytes: 0, fell: zero, sum: 0, since: zero }
    }

    /// Evaluates the congestion if `interval` has passed since the last evaluation. `held` is the number of IIO entries
    /// in use, and `bytes` the number of bytes that have reached memory. Returns the new delay of misses when the level
    /// changes.
    pub fn look(&mut self, held: f64, bytes: u64, now: Time) -> Option<Time> {
        let span = (now - self.looked).0;
        if span < self.spec.interval.0 {
            return None;
        }
        let bps = u128::from(bytes - self.bytes) * 8 * 1_000_000_000_000 / u128::from(span);
        let (congested, served) = (held > f64::from(self.spec.occupancy), bps > u128::from(self.spec.target.0));
        self.sum += self.level.to_u64() * (now.0 - self.looked.0.max(self.since.0));
        (self.looked, self.bytes) = (now, bytes);
        let before = self.level;
        if congested && !served {
            self.level = (self.level + 1).min(self.spec.levels.len());
        } else if !congested && served && (now - self.fell).0 >= self.spec.patience.0 {
            self.level = self.level.saturating_sub(1);
            self.fell = now;
        }
        (self.level != before).then(|| self.delay())
    }

    fn delay(&self) -> Time {
        self.level.checked_sub(1).map_or(Time::ZERO, |i| self.spec.levels[i].into())
    }

    /// Begins the measured window at `now`.
    pub fn restart_meters(&mut self, now: Time) {
        (self.sum, self.since) = (0, now);
    }

    /// Mean level from the window's start to the last evaluation.
    pub fn mean_level(&self) -> f64 {
        let span = self.looked.0.saturating_sub(self.since.0);
        if span == 0 {
            return self.level.to_f64();
        }
        self.sum.to_f64() / span.to_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that `gbps` Gbps deliver in 22 us.
    fn bytes(gbps: u64) -> u64 {
        gbps * 22_000 / 8
    }

    fn responder() -> Responder {
        let target = Bandwidth(80_000_000_000);
        Responder::new(HostResponse {
            target,
            occupancy: 70,
            levels: levels(),
            interval: interval(),
            patience: patience(),
        })
    }

    #[test]
    fn the_level_rises_while_the_host_is_congested_and_the_network_short_and_falls_in_steps() {
        let mut r = responder();
        let (mut now, mut sum) = (Time::us(1000), 0);
        let mut step = |r: &mut Responder, held: f64, gbps: u64| {
            now += Time::us(22);
            sum += bytes(gbps);
            r.look(held, sum, now)
        };
        step(&mut r, 0.0, 0);
        assert_eq!(step(&mut r, 80.0, 50), Some(Time::ns(100)), "congested and short");
        assert_eq!(step(&mut r, 80.0, 90), None, "congested, but the network has its share");
        assert_eq!(step(&mut r, 60.0, 50), None, "short, but not for the host's sake");
        assert_eq!(step(&mut r, 80.0, 50), Some(Time::ns(300)));
        for delay in [1, 10] {
            assert_eq!(step(&mut r, 80.0, 50), Some(Time::us(delay)));
        }
        assert_eq!(step(&mut r, 80.0, 50), None, "no level beyond the last");
        assert_eq!(step(&mut r, 60.0, 90), Some(Time::us(1)), "room and served");
        let falls: Vec<_> = (0..14).map(|_| step(&mut r, 60.0, 90)).collect();
        assert_eq!(falls.iter().flatten().collect::<Vec<_>>(), [&Time::ns(300), &Time::ns(100)], "150 us apart");
    }

    #[test]
    fn nothing_is_looked_at_between_two_intervals() {
        let mut r = responder();
        assert_eq!(r.look(90.0, 0, Time::us(21)), None);
        assert_eq!(r.look(90.0, 0, Time::us(22)), Some(Time::ns(100)));
    }

    /// Level 1 begins at 22 us, and the window begins at 30 us.
    #[test]
    fn the_mean_level_counts_from_the_windows_start() {
        let mut r = responder();
        r.look(90.0, 0, Time::us(22));
        r.restart_meters(Time::us(30));
        r.look(60.0, 0, Time::us(52));
        assert_eq!(r.mean_level(), 1.0);
    }
}
