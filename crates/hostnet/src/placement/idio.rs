//! IDIO (Alian et al., MICRO 2022): each line that a NIC writes goes to the L2 of its core (MLC), to the LLC or to
//! DRAM. The choice depends on the class of the packet, on whether the line holds its header, and on the write-backs of
//! that L2.
//!
//! The data plane is that of Algorithm 1: a header is hinted to its core; other lines of class 1 go to DRAM; all
//! remaining lines are hinted or stay in the LLC, as decided by the core's [`Steering`]. The control plane steps the
//! FSM of each core once an interval.

use super::{DataPlane, DeviceKind, DeviceTransfer, EpochCounters, PlacementSpec, Settings, Ways};
use crate::core::hints::HintOverflow;
use crate::kernel::units::{Bandwidth, Pace, Span};
use crate::kernel::{CoreId, Int, Time};
use crate::memory::Inbound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Set of IDIO's mechanisms that are active (section VII).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdioMode {
    /// DDIO; software invalidates spent buffers.
    Invalidate,
    /// DDIO; every received line is hinted to the L2 of its core.
    Prefetch,
    /// Prefetching and invalidation together, and payload of class 1 goes to DRAM.
    Static,
    /// All mechanisms of `static`, but payload is hinted only while the FSM of its core says so.
    #[default]
    Dynamic,
}

/// Condition under which the classifier marks a packet as part of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BurstMarking {
    /// The packet with which the bytes for a core exceed the threshold, unless those bytes exceeded the threshold in
    /// the previous interval.
    #[default]
    Edge,
    /// Every packet for a core after the core's bytes have exceeded the threshold, until the end of the interval.
    Level,
}

/// Caches that an invalidation without write-back reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// L1 and L2 of the core.
    Mlc,
    /// L1 and L2 of the core, and the LLC.
    #[default]
    Llc,
}

/// Lines that one invalidate instruction covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// One line.
    Line,
    /// All lines of a packet.
    #[default]
    Range,
}

/// States of the FSM in which payload stays in the LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// State 0b11 only.
    #[default]
    Saturated,
    /// States 0b10 and 0b11.
    Upper,
}

/// Thresholds, intervals and choices of IDIO.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdioSpec {
    /// Rate of traffic to one core above which the NIC signals a burst (rxBurstTHR); 10 Gbps by default.
    pub burst_threshold: Bandwidth,
    /// Interval of the NIC's byte counters and of the control plane; 1 us by default, at least 10 ns.
    pub interval: Span,
    /// Rate of an L2's write-backs beyond their average at or above which pressure on the L2 is high (mlcTHR); 50 Mps
    /// by default.
    pub mlc_threshold: Pace,
    /// DSCP values, 0 to 63, of packets of class 1, whose payload software reads rarely or late; none by default.
    pub class1_dscp: Vec<u8>,
    /// Details of IDIO that its description leaves open; scenarios leave them alone.
    pub quirks: IdioQuirks,
}

/// Details of IDIO that its description leaves open.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdioQuirks {
    /// Condition under which packets are marked as a burst; `edge` by default.
    pub burst: BurstMarking,
    /// Number of intervals over which write-backs are averaged; 8192 by default.
    pub average: u32,
    /// Number of prefetch hints that the queue of an L2's prefetcher holds; 32 by default.
    pub hint_queue: u32,
    /// Treatment of a prefetch hint that finds the queue full.
    pub hint_overflow: HintOverflow,
    /// Caches that invalidations of spent buffers reach; `llc` by default.
    pub invalidate: Depth,
    /// Lines that one invalidate instruction covers: `line` or `range` (all lines of a packet, the default).
    pub invalidate_form: Form,
    /// States of a core's FSM in which payload stays in the LLC; `saturated` (0b11 only) by default.
    pub status: Status,
    /// Whether only a burst, and not low pressure, ends state 0b11 of the FSM; false by default.
    pub sticky: bool,
}

impl Default for IdioSpec {
    fn default() -> IdioSpec {
        IdioSpec {
            burst_threshold: Bandwidth(10_000_000_000),
            interval: Span(1_000_000),
            mlc_threshold: Pace(50_000_000),
            class1_dscp: Vec::new(),
            quirks: IdioQuirks::default(),
        }
    }
}

impl Default for IdioQuirks {
    fn default() -> IdioQuirks {
        IdioQuirks {
            burst: BurstMarking::Edge,
            average: 8192,
            hint_queue: 32,
            hint_overflow: HintOverflow::Drop,
            invalidate: Depth::Llc,
            invalidate_form: Form::Range,
            status: Status::Saturated,
            sticky: false,
        }
    }
}

impl IdioSpec {
    /// Checks that every value is within its range.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.interval.0 < 10_000 {
            return Err(format!("placement.idio.interval = \"{}\" is below 10 ns", self.interval));
        }
        for (key, v, most) in
            [("quirks.average", self.quirks.average, 1 << 20), ("quirks.hint_queue", self.quirks.hint_queue, 4096)]
        {
            if !(1..=most).contains(&v) {
                return Err(format!("placement.idio.{key} = {v} is not within 1 to {most}"));
            }
        }
        match self.class1_dscp.iter().find(|d| **d > 63) {
            Some(d) => Err(format!("placement.idio.class1_dscp holds {d}, which is not within 0 to 63")),
            None => Ok(()),
        }
    }

    /// Bytes to a core in one interval above which its traffic is a burst.
    pub fn burst_bytes(&self) -> u64 {
        (u128::from(self.burst_threshold.0) * u128::from(self.interval.0) / 8_000_000_000_000).to_u64()
    }

    /// Write-backs in one interval beyond the average above which pressure is high.
    pub fn press(&self) -> u64 {
        (u128::from(self.mlc_threshold.0) * u128::from(self.interval.0) / 1_000_000_000_000).to_u64()
    }
}

impl IdioMode {
    /// Whether payload is hinted to cores.
    pub fn hints(self) -> bool {
        self != IdioMode::Invalidate
    }
    /// Whether software invalidates buffers that it has read.
    pub fn invalidates(self) -> bool {
        self != IdioMode::Prefetch
    }
}

/// State of a core's FSM (Fig. 8) in which the FSM never prefetches; in state 0b00 the FSM always prefetches.
const OFF: u8 = 0b11;

/// State of the controller for one core (section V-B).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steering {
    fsm: u8,
    /// Sum of the write-backs in the present averaging period.
    sum: u64,
    average: u64,
    /// Write-backs counted up to the last interval.
    seen: u64,
    /// Decision of the user's control plane, which overrides the mode.
    prefetch_override: Option<bool>,
}

impl Default for Steering {
    fn default() -> Steering {
        Steering { fsm: OFF, sum: 0, average: 0, seen: 0, prefetch_override: None }
    }
}

impl Steering {
    /// Advances the FSM at the end of an interval with `write_backs` write-backs.
    fn step(&mut self, write_backs: u64, s: &IdioSpec) {
        let high = write_backs > self.average + s.press();
        self.fsm = match self.fsm {
            f if high => (f + 1).min(OFF),
            OFF if s.quirks.sticky => OFF,
            f => f.saturating_sub(1),
        };
        self.sum += write_backs;
    }

    /// Whether payload goes to the L2 in the present state of the FSM.
    fn prefetches(self, s: &IdioSpec) -> bool {
        match s.quirks.status {
            Status::Saturated => self.fsm != OFF,
            Status::Upper => self.fsm & 0b10 == 0,
        }
    }
}

/// Data plane of IDIO, with the state of each core's controller.
#[derive(Clone, Debug)]
pub struct Idio {
    spec: IdioSpec,
    mode: IdioMode,
    ways: Ways,
    cores: Vec<Steering>,
    /// Number of intervals so far in the present averaging period.
    intervals: u32,
}

impl Idio {
    fn core(&mut self, core: CoreId) -> &mut Steering {
        let i = core.index();
        if i >= self.cores.len() {
            self.cores.resize(i + 1, Steering::default());
        }
        &mut self.cores[i]
    }

    /// Steers every core that `c` counts.
    fn steer_all(&mut self, c: &EpochCounters) {
        if self.cores.len() < c.cores.len() {
            self.cores.resize(c.cores.len(), Steering::default());
        }
    }

    /// State of the FSM of `core`.
    pub fn state(&self, core: CoreId) -> u8 {
        self.cores.get(core.index()).map_or(OFF, |c| c.fsm)
    }
}

impl DataPlane for Idio {
    fn new(s: &PlacementSpec) -> Idio {
        let spec = s.idio.clone().unwrap_or_default();
        Idio { spec, mode: s.mode.unwrap_or_default(), ways: s.ways, cores: Vec::new(), intervals: 0 }
    }
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        super::ddio::check_ways(s, llc_ways)?;
        if s.iat.is_some() {
            return Err("placement.iat needs placement.policy = \"ddio\"".into());
        }
        if s.sweep_rx {
            return Err("placement.sweep_rx = true is what IDIO's own invalidations are for; choose \
                        placement.idio.quirks.invalidate = \"llc\" or policy = \"ddio\""
                .into());
        }
        Ok(())
    }

    fn write(&mut self, t: &DeviceTransfer) -> Inbound {
        let ways = self.ways.mask();
        if t.device != DeviceKind::Nic || !self.mode.hints() {
            return Inbound::Llc { ways };
        }
        let Some(core) = t.tag.core() else {
            // A tag without a core marks a line of class 1 that holds no header.
            return if self.mode == IdioMode::Prefetch { Inbound::Llc { ways } } else { Inbound::Dram };
        };
        let dynamic = self.mode == IdioMode::Dynamic;
        if dynamic && t.tag.is_burst() {
            self.core(core).fsm = 0;
        }
        let steering = *self.core(core);
        let prefetched = steering.prefetch_override.unwrap_or(!dynamic || steering.prefetches(&self.spec));
        if t.tag.is_header() || prefetched {
            Inbound::Hint { ways, core }
        } else {
            Inbound::Llc { ways }
        }
    }

    fn reads_tags(&self) -> bool {
        self.mode.hints()
    }

    fn ways(&self) -> u32 {
        self.ways.count
    }

    fn first_way(&self) -> u32 {
        self.ways.first
    }

    fn epoch(&self) -> Option<Time> {
        (self.mode == IdioMode::Dynamic).then_some(self.spec.interval.into())
    }

    fn decide(&mut self, c: &EpochCounters) {
        self.steer_all(c);
        for (core, counts) in self.cores.iter_mut().zip(c.cores) {
            let write_backs = counts.mlc_wb - core.seen;
            core.seen = counts.mlc_wb;
            core.step(write_backs, &self.spec);
        }
        self.intervals += 1;
        if self.intervals == self.spec.quirks.average {
            self.intervals = 0;
            for core in &mut self.cores {
                core.average = std::mem::take(&mut core.sum) / u64::from(self.spec.quirks.average);
            }
        }
    }

    fn decide_in_silence(&mut self, c: &EpochCounters, epochs: u64) {
        if epochs > 0 {
            self.steer_all(c);
        }
        // Without write-backs pressure is low, which leads each FSM to the end of its states.
        for core in &mut self.cores {
            for _ in 0..epochs.min(OFF.into()) {
                core.step(0, &self.spec);
            }
        }
        let (intervals, average) = (u64::from(self.intervals) + epochs, u64::from(self.spec.quirks.average));
        self.intervals = (intervals % average).to_u32();
        for core in &mut self.cores {
            // The first averaging period to end has the write-backs before the silence, the next ones have none.
            match intervals / average {
                0 => {}
                1 => core.average = std::mem::take(&mut core.sum) / average,
                _ => (core.sum, core.average) = (0, 0),
            }
        }
    }

    fn set(&mut self, s: &Settings) -> Result<(), String> {
        if !s.prefetch.is_empty() && !self.mode.hints() {
            return Err("the control plane sets prefetch, which placement.mode = \"invalidate\" has not".into());
        }
        self.ways.count = s.ways.unwrap_or(self.ways.count);
        for (core, told) in &s.prefetch {
            self.core(*core).prefetch_override = *told;
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.cores.iter_mut().for_each(|c| c.seen = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::LineAddr;
    use crate::memory::stats::CoreCounts;
    use crate::memory::{Agent, Tag};
    use crate::placement::{Placement, PlacementPolicy, SweepTx};

    fn placement(mode: IdioMode, spec: IdioSpec) -> PlacementSpec {
        PlacementSpec {
            policy: PlacementPolicy::Idio,
            mode: Some(mode),
            idio: Some(spec),
            ways: Ways::low(2),
            sweep_rx: false,
            sweep_tx: SweepTx::None,
            iat: None,
            resq: false,
            table: None,
            extension: None,
        }
    }

    fn idio(mode: IdioMode, spec: IdioSpec) -> Idio {
        <Idio as DataPlane>::new(&placement(mode, spec))
    }

    fn line(tag: Tag) -> DeviceTransfer {
        DeviceTransfer { tag, ..DeviceTransfer::of(Agent::Nic, DeviceKind::Nic, LineAddr(0)) }
    }

    const LLC: Inbound = Inbound::Llc { ways: 0b11 };
    const HINT: Inbound = Inbound::Hint { ways: 0b11, core: CoreId(3) };

    /// Write-back counts of eight cores, of which core 3 has `n`.
    fn counts(n: u64) -> Vec<CoreCounts> {
        let mut all = vec![CoreCounts::default(); 8];
        all[3].mlc_wb = n;
        all
    }

    /// Ends an interval in which core 3 has written back `n` lines.
    fn interval(p: &mut Idio, so_far: &mut u64, n: u64) {
        *so_far += n;
        p.decide(&EpochCounters { writes: 0, write_misses: 0, cores: &counts(*so_far) });
    }

    /// Destination of a line by mode, class, header and FSM (Algorithm 1).
    #[test]
    fn a_line_goes_where_its_mode_class_and_place_in_the_packet_say() {
        let tag = |class_1, header| Tag::new(CoreId(3), class_1, header, false);
        for (mode, header, payload, header_1, payload_1) in [
            (IdioMode::Invalidate, LLC, LLC, LLC, LLC),
            (IdioMode::Prefetch, HINT, HINT, HINT, LLC),
            (IdioMode::Static, HINT, HINT, HINT, Inbound::Dram),
            (IdioMode::Dynamic, HINT, LLC, HINT, Inbound::Dram), // the FSM begins with 0b11
        ] {
            let mut p = idio(mode, IdioSpec::default());
            for (class_1, is_header, expected) in
                [(false, true, header), (false, false, payload), (true, true, header_1), (true, false, payload_1)]
            {
                let to = p.write(&line(tag(class_1, is_header)));
                assert_eq!(to, expected, "{mode:?} class 1 {class_1} header {is_header}");
            }
            let ssd = DeviceTransfer::of(Agent::Io, DeviceKind::Storage, LineAddr(0));
            assert_eq!(p.write(&ssd), LLC, "what no NIC sends has no tag");
        }
    }

    /// State of the FSM after every state under high and low pressure, and under a burst.
    #[test]
    fn the_fsm_counts_pressure_and_a_burst_resets_it() {
        let s = IdioSpec::default();
        for (state, high, low) in [(0b00, 0b01, 0b00), (0b01, 0b10, 0b00), (0b10, 0b11, 0b01), (0b11, 0b11, 0b10)] {
            for (write_backs, next) in [(51, high), (50, low)] {
                let mut c = Steering { fsm: state, ..Steering::default() };
                c.step(write_backs, &s);
                assert_eq!(c.fsm, next, "{state:#b} after {write_backs}");
            }
            let mut p = idio(IdioMode::Dynamic, s.clone());
            p.core(CoreId(3)).fsm = state;
            p.write(&line(Tag::new(CoreId(3), false, true, true)));
            assert_eq!(p.state(CoreId(3)), 0b00, "a burst in {state:#b}");
            assert_eq!(p.state(CoreId(2)), OFF, "of another core");
        }
    }

    /// State 0b11 places payload in the LLC and state 0b00 in the MLC. The scenario chooses for the two other states,
    /// and whether low pressure ends state 0b11.
    #[test]
    fn status_is_of_the_state_as_chosen() {
        let payload = Tag::new(CoreId(3), false, false, false);
        for (status, to) in [(Status::Saturated, [HINT, HINT, HINT, LLC]), (Status::Upper, [HINT, HINT, LLC, LLC])] {
            let mut p = idio(
                IdioMode::Dynamic,
                IdioSpec { quirks: IdioQuirks { status, ..IdioSpec::default().quirks }, ..IdioSpec::default() },
            );
            for state in 0..4 {
                p.core(CoreId(3)).fsm = state;
                assert_eq!(p.write(&line(payload)), to[usize::from(state)], "{status:?} {state:#b}");
            }
        }
        let mut c = Steering::default();
        c.step(
            0,
            &IdioSpec { quirks: IdioQuirks { sticky: true, ..IdioSpec::default().quirks }, ..IdioSpec::default() },
        );
        assert_eq!(c.fsm, OFF);
    }

    /// Pressure is high when write-backs exceed the average by more than 50 in 1 us; the average covers 8192 intervals,
    /// and is 0 until the first 8192 intervals are complete.
    #[test]
    fn pressure_is_measured_against_the_average_of_the_intervals_before() {
        let mut p = idio(
            IdioMode::Dynamic,
            IdioSpec { quirks: IdioQuirks { average: 4, ..IdioSpec::default().quirks }, ..IdioSpec::default() },
        );
        let mut n = 0;
        p.core(CoreId(3)).fsm = 0;
        for (i, write_backs, state) in [
            (0, 51, 1),  // above 0 + 50
            (1, 50, 0),  // equal to the threshold, not above
            (2, 60, 1),  // sums to 161
            (3, 40, 0),  // 201 / 4 = 50 from now on
            (4, 101, 1), // above 50 + 50
            (5, 100, 0),
        ] {
            interval(&mut p, &mut n, write_backs);
            assert_eq!(p.state(CoreId(3)), state, "interval {i}");
        }
        assert_eq!(p.core(CoreId(3)).average, 50);
        assert_eq!(p.epoch(), Some(Time::us(1)));
        p.restart();
        p.decide(&EpochCounters { writes: 0, write_misses: 0, cores: &counts(51) });
        assert_eq!(p.state(CoreId(3)), 0, "counters that begin again are no negative pressure: 51 against 50 + 50");
    }

    /// A silence is as many decisions without write-backs, whatever came before it.
    #[test]
    fn a_silence_is_as_many_decisions_in_which_nothing_happened() {
        for sticky in [false, true] {
            let spec = IdioSpec {
                quirks: IdioQuirks { average: 4, sticky, ..IdioSpec::default().quirks },
                ..IdioSpec::default()
            };
            for before in 0..9 {
                for epochs in 0..14 {
                    let mut p = idio(IdioMode::Dynamic, spec.clone());
                    let mut n = 0;
                    for i in 0..before {
                        p.core(CoreId(3)).fsm = (i % 4) as u8;
                        interval(&mut p, &mut n, 40 * (i % 3));
                    }
                    let mut one_by_one = p.clone();
                    let all = counts(n);
                    let c = EpochCounters { writes: 0, write_misses: 0, cores: &all };
                    p.decide_in_silence(&c, epochs);
                    (0..epochs).for_each(|_| one_by_one.decide(&c));
                    let state = |p: &Idio| (p.cores.clone(), p.intervals);
                    assert_eq!(state(&p), state(&one_by_one), "{before} before, {epochs} silent, sticky {sticky}");
                }
            }
        }
    }

    /// 10 Gb/s are 1250 bytes in 1 us, or 1342 where a gigabit is 2^30 bits.
    #[test]
    fn thresholds_are_rates_times_the_interval() {
        let s = IdioSpec::default();
        assert_eq!((s.burst_bytes(), s.press()), (1250, 50));
        let binary = IdioSpec { burst_threshold: Bandwidth(10 << 30), ..s.clone() };
        assert_eq!(binary.burst_bytes(), 1342);
        let slow = IdioSpec { interval: Span(10_000_000), ..s };
        assert_eq!((slow.burst_bytes(), slow.press()), (12_500, 500));
    }

    #[test]
    fn only_the_dynamic_mode_has_a_control_plane() {
        for (mode, has) in [
            (IdioMode::Invalidate, false),
            (IdioMode::Prefetch, false),
            (IdioMode::Static, false),
            (IdioMode::Dynamic, true),
        ] {
            let p = Placement::new(&placement(mode, IdioSpec::default()));
            assert_eq!(p.epoch().is_some(), has, "{mode:?}");
        }
    }
}
