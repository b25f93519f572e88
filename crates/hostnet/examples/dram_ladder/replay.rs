//! Trace replay at saturation, driven as the reference simulators were driven: requests are offered in order, and a
//! request that waits for a full queue blocks all later ones.

use hostnet::kernel::{LineAddr, NodeId, Time, TxnId};
use hostnet::memory::dram::standards::Standard;
use hostnet::memory::dram::timing::TimingOverride;
use hostnet::memory::dram::{
    DramCompletion, DramController, DramQuirks, DramRequest, DramSpec, EntryRelease, PagePolicy, Scheduler,
};

const MIB: u64 = 1 << 20;
const STREAM: u64 = 17 * 8192;

/// SplitMix64 generator, seeded as in `gen_traces.py`.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// First `n` requests of the trace called `name`, each with its line number and whether it is a write.
pub fn trace(name: &str, n: usize) -> Option<Vec<(u64, bool)>> {
    let n = n as u64;
    let interleaved =
        |off: u64| (0..n).map(|i| ((i >> 1) * 64 + if i & 1 == 1 { 256 * MIB + off } else { 0 }, i & 1 == 1)).collect();
    let streams = |off: u64| {
        let at = |i: u64| {
            let (s, k) = (i % 8, i / 8);
            (s * (128 * MIB + off) + k * 64, (k + s) % 3 == 2)
        };
        (0..n).map(at).collect()
    };
    let bytes: Vec<(u64, bool)> = match name {
        "a_seq_rd" => (0..n).map(|i| (i * 64, false)).collect(),
        "b_rand_rd" => {
            let mut r = SplitMix(1);
            (0..n).map(|_| (r.next() & ((1 << 30) - 1), false)).collect()
        }
        "c_seq_rw" => interleaved(STREAM),
        "c_seq_rw_al" => interleaved(0),
        "d_rand_rw" => {
            let mut r = SplitMix(2);
            (0..n)
                .map(|_| {
                    let v = r.next();
                    (v & ((1 << 30) - 1), v >> 40 & 1 == 1)
                })
                .collect()
        }
        "e_8str" => streams(STREAM),
        "e_8str_al" => streams(0),
        _ => return None,
    };
    Some(bytes.into_iter().map(|(a, w)| (a / 64, w)).collect())
}

/// Results of a replay.
#[derive(Clone, Debug)]
pub struct Measured {
    pub gbps: f64,
    pub latency_ns: f64,
    pub row_hits: u64,
    pub row_misses: u64,
    pub row_conflicts: u64,
    pub sim_ns: f64,
}

/// Rate at which requests are offered.
#[derive(Clone, Copy, Debug)]
pub enum Offer {
    /// Up to four requests in each memory clock.
    PerClock,
    /// One request every given number of picoseconds, or later when the queue is full.
    Every(u64),
}

/// Replays `requests` and stops when the last one has been accepted.
pub fn replay(spec: &DramSpec, requests: &[(u64, bool)], offer: Offer) -> Result<Measured, String> {
    let mut c = DramController::new(&spec.plan()?);
    let tck = c.timing().tck;
    let mut done: Vec<DramCompletion> = Vec::with_capacity(4096);
    let mut arrived = vec![0u64; requests.len()];
    let (mut latency, mut reads) = (0u128, 0u64);
    let mut now = 0u64;
    let mut in_cycle = 0;
    for (i, &(line, write)) in requests.iter().enumerate() {
        match offer {
            Offer::PerClock if in_cycle == 4 => {
                now += tck;
                in_cycle = 0;
            }
            Offer::PerClock => {}
            Offer::Every(period) => now = now.max(i as u64 * period),
        }
        let (ch, place) = c.route(NodeId(0), LineAddr(line));
        if !c.can_accept(ch, write) {
            c.advance(Time(now), ch, &mut done);
        }
        while !c.can_accept(ch, write) {
            let at = c.wake(ch, true).ok_or("a full queue that nothing will drain")?;
            c.advance(at, ch, &mut done);
            if c.can_accept(ch, write) {
                let at = match offer {
                    Offer::PerClock => at.0.div_ceil(tck) * tck + tck,
                    Offer::Every(_) => at.0,
                };
                if at > now {
                    now = at;
                    in_cycle = 0;
                }
            }
        }
        in_cycle += 1;
        arrived[i] = now;
        let req = DramRequest { token: Some(TxnId::new(i)), line: LineAddr(line), write, class: 0 };
        c.push(Time(now), ch, req, place, &mut done);
        for d in done.drain(..) {
            latency += u128::from(d.at.0 - arrived[d.token.expect("a read has a token").index()]);
            reads += 1;
        }
    }
    for ch in c.channels() {
        c.advance(Time(now), ch, &mut done);
    }
    for d in done.drain(..) {
        latency += u128::from(d.at.0 - arrived[d.token.expect("a read has a token").index()]);
        reads += 1;
    }
    let mut m = Measured {
        gbps: 0.0,
        latency_ns: latency as f64 / reads.max(1) as f64 / 1e3,
        row_hits: 0,
        row_misses: 0,
        row_conflicts: 0,
        sim_ns: now as f64 / 1e3,
    };
    let mut bytes = 0;
    for ch in c.channels() {
        let s = c.stats(Time(now), ch);
        bytes += s.bytes() + 64 * (s.reads_forwarded + s.writes_merged);
        for dir in s.rows {
            m.row_hits += dir[0];
            m.row_misses += dir[1];
            m.row_conflicts += dir[2];
        }
    }
    m.gbps = bytes as f64 / m.sim_ns;
    Ok(m)
}

/// A row of `validation/dram/dram.csv`.
#[derive(Clone, Debug)]
pub struct Reference {
    pub simulator: String,
    pub mapping: String,
    pub standard: String,
    pub channels: u32,
    pub trace: String,
    pub gbps: f64,
    pub latency_ns: f64,
    pub row_hits: f64,
}

/// All rows of `validation/dram/dram.csv`.
pub fn references() -> Vec<Reference> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/dram/dram.csv");
    let text = std::fs::read_to_string(path).expect("validation/dram/dram.csv");
    let row = |l: &str| {
        let f: Vec<&str> = l.split(',').collect();
        let num = |i: usize| f[i].parse::<f64>().expect("a number");
        Reference {
            simulator: f[0].into(),
            mapping: f[1].into(),
            standard: f[2].into(),
            channels: num(3) as u32,
            trace: f[4].into(),
            gbps: num(5),
            latency_ns: num(7),
            row_hits: num(10),
        }
    };
    text.lines().skip(1).map(row).collect()
}

/// Configuration and offered rate with which a reference row was measured.
pub fn profile(r: &Reference) -> (DramSpec, Offer) {
    let standard = match r.standard.as_str() {
        "DDR4-2400" => Standard::Ddr4_2400,
        "DDR4-3200" => Standard::Ddr4_3200,
        other => panic!("no profile for {other}"),
    };
    let fast = standard == Standard::Ddr4_3200;
    let base = DramSpec {
        standard,
        channels: r.channels,
        mapping: r.mapping.clone(),
        quirks: DramQuirks { age_cap_ns: 0, ..DramSpec::default().quirks },
        ..DramSpec::default()
    };
    if r.simulator.starts_with("ramulator") {
        // Ramulator: tRFC of 360 ns for 8 Gb, FRFCFS; an entry moves to the active buffer with its ACT.
        let tck: u64 = if fast { 625 } else { 833 };
        let timing = TimingOverride { rfc_ps: Some(360_000u64.div_ceil(tck) * tck), ..TimingOverride::default() };
        let spec = DramSpec {
            scheduler: Scheduler::FirstReady,
            quirks: DramQuirks { entry_release: EntryRelease::Activate, timing, ..base.quirks.clone() },
            ..base
        };
        (spec, Offer::PerClock)
    } else if r.simulator.starts_with("dramsim3") {
        let timing = TimingOverride {
            tck_ps: Some(if fast { 630 } else { 830 }),
            rtw_ps: Some(if fast { 630 } else { 830 }),
            rfc_ps: Some(if fast { 560 * 630 } else { 420 * 830 }),
            refi_ps: Some(if fast { 12480 * 630 } else { 9360 * 830 }),
            ..TimingOverride::default()
        };
        let spec = DramSpec {
            // DRAMsim3 drains writes when all 32 entries are taken, or more than 8 while all bank queues are empty.
            write_high: 0.97,
            quirks: DramQuirks { bank_queue: 8, row_hit_limit: 4, write_idle: 0.25, timing, ..base.quirks.clone() },
            ..base
        };
        (spec, Offer::PerClock)
    } else {
        let timing = TimingOverride {
            cl_ps: Some(14_160),
            cwl_ps: Some(14_160),
            rcd_ps: Some(14_160),
            rp_ps: Some(14_160),
            ras_ps: Some(32_000),
            ccd_l_ps: Some(5_000),
            rrd_s_ps: Some(3_332),
            rrd_l_ps: Some(4_900),
            faw_ps: Some(21_000),
            rtp_ps: Some(7_500),
            wr_ps: Some(15_000),
            wtr_s_ps: Some(5_000),
            wtr_l_ps: Some(5_000),
            rtw_ps: Some(1_666),
            rfc_ps: Some(350_000),
            refi_ps: Some(7_800_000),
            ..TimingOverride::default()
        };
        let spec = DramSpec {
            mapping: "RoRaBaCoCh".into(),
            rpq: 64,
            wpq: 128,
            scheduler: Scheduler::Transaction,
            page_policy: PagePolicy::OpenAdaptive,
            write_high: 0.85,
            write_low: 0.375, // 10 + 10 ns in the controller, and 9 + 4 clocks of the 3 GHz crossbar.
            static_latency_ns: 24.33,
            quirks: DramQuirks {
                entry_release: EntryRelease::Data,
                row_access_limit: 16,
                write_idle: 0.5,
                min_read_burst: 16,
                max_write_burst: 16,
                timing,
                ..base.quirks.clone()
            },
            ..base
        };
        let period = if r.channels == 1 { 1666 } else { 1666 / u64::from(r.channels) };
        (spec, Offer::Every(period))
    }
}
