//! Timing constraints between commands, in picoseconds, derived once from a device.

use crate::kernel::Int;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::standards::DramDevice;

/// Timing parameters that replace those of `memory.standard`, in picoseconds. Parameters that are absent keep the
/// standard's values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimingOverride {
    /// Clock period (tCK) in ps. The period is applied first, so that timings given in clocks scale with it.
    pub tck_ps: Option<u64>,
    /// Read latency (CL) in ps, from command to first data.
    pub cl_ps: Option<u64>,
    /// Write latency (CWL) in ps, from command to first data.
    pub cwl_ps: Option<u64>,
    /// Activate to column command (tRCD) in ps.
    pub rcd_ps: Option<u64>,
    /// Precharge to activate (tRP) in ps.
    pub rp_ps: Option<u64>,
    /// Activate to precharge (tRAS) in ps.
    pub ras_ps: Option<u64>,
    /// Column command to column command in the same bank group (tCCD_L) in ps.
    pub ccd_l_ps: Option<u64>,
    /// Activate to activate in another bank group (tRRD_S) in ps.
    pub rrd_s_ps: Option<u64>,
    /// Activate to activate in the same bank group (tRRD_L) in ps.
    pub rrd_l_ps: Option<u64>,
    /// Window that holds at most four activates of a rank (tFAW), in ps.
    pub faw_ps: Option<u64>,
    /// Read to precharge (tRTP) in ps.
    pub rtp_ps: Option<u64>,
    /// End of write data to precharge (tWR) in ps.
    pub wr_ps: Option<u64>,
    /// End of write data to read in another bank group (tWTR_S) in ps.
    pub wtr_s_ps: Option<u64>,
    /// End of write data to read in the same bank group (tWTR_L) in ps.
    pub wtr_l_ps: Option<u64>,
    /// Bubble on the data bus between a read and a following write, in ps.
    pub rtw_ps: Option<u64>,
    /// Bubble on the data bus between bursts of two ranks, in ps.
    pub cs_ps: Option<u64>,
    /// Refresh to activate (tRFC) in ps.
    pub rfc_ps: Option<u64>,
    /// Interval between refreshes of a rank (tREFI) in ps.
    pub refi_ps: Option<u64>,
}

/// Valid clock periods, and limits of all other timings, in picoseconds: a microsecond between two commands, a
/// millisecond for a refresh and for the interval between two refreshes.
const CLOCKS: std::ops::RangeInclusive<u64> = 100..=100_000;
const BETWEEN_COMMANDS: u64 = 1_000_000;
const REFRESH: u64 = 1_000_000_000;
const BETWEEN_REFRESHES: u64 = 1_000_000_000;

impl TimingOverride {
    /// Clock period of device `d` in ps.
    pub(super) fn clock(&self, d: &DramDevice) -> u64 {
        self.tck_ps.unwrap_or(d.tck_ps)
    }

    /// Checks that every timing is within its range.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        let any = 0..=BETWEEN_COMMANDS;
        for (key, given, valid) in [
            ("tck_ps", self.tck_ps, &CLOCKS),
            ("cl_ps", self.cl_ps, &any),
            ("cwl_ps", self.cwl_ps, &any),
            ("rcd_ps", self.rcd_ps, &any),
            ("rp_ps", self.rp_ps, &any),
            ("ras_ps", self.ras_ps, &any),
            ("ccd_l_ps", self.ccd_l_ps, &any),
            ("rrd_s_ps", self.rrd_s_ps, &any),
            ("rrd_l_ps", self.rrd_l_ps, &any),
            ("faw_ps", self.faw_ps, &any),
            ("rtp_ps", self.rtp_ps, &any),
            ("wr_ps", self.wr_ps, &any),
            ("wtr_s_ps", self.wtr_s_ps, &any),
            ("wtr_l_ps", self.wtr_l_ps, &any),
            ("rtw_ps", self.rtw_ps, &any),
            ("cs_ps", self.cs_ps, &any),
            ("rfc_ps", self.rfc_ps, &(0..=REFRESH)),
            ("refi_ps", self.refi_ps, &(1..=BETWEEN_REFRESHES)),
        ] {
            if let Some(ps) = given.filter(|ps| !valid.contains(ps)) {
                return Err(format!("quirks.timing.{key} = {ps} is not within {} to {}", valid.start(), valid.end()));
            }
        }
        Ok(())
    }
}

impl TimingOverride {
    /// All timings of device `d` with these values in place of its own. Nanoseconds of a standard are rounded up to whole
    /// clocks, as a controller programs them.
    #[must_use]
    pub fn in_full(&self, d: &DramDevice) -> TimingOverride {
        let tck = self.clock(d);
        let or = |given: Option<u64>, clocks: u64| Some(given.unwrap_or(clocks * tck));
        let clocks_of = |ns: u64| (ns * 1000).div_ceil(tck);
        TimingOverride {
            tck_ps: Some(tck),
            cl_ps: or(self.cl_ps, d.cl),
            cwl_ps: or(self.cwl_ps, d.cwl),
            rcd_ps: or(self.rcd_ps, d.rcd),
            rp_ps: or(self.rp_ps, d.rp),
            ras_ps: or(self.ras_ps, d.ras),
            ccd_l_ps: or(self.ccd_l_ps, d.ccd_l),
            rrd_s_ps: or(self.rrd_s_ps, d.rrd_s),
            rrd_l_ps: or(self.rrd_l_ps, d.rrd_l),
            faw_ps: or(self.faw_ps, d.faw),
            rtp_ps: or(self.rtp_ps, d.rtp),
            wr_ps: or(self.wr_ps, d.wr),
            wtr_s_ps: or(self.wtr_s_ps, d.wtr_s),
            wtr_l_ps: or(self.wtr_l_ps, d.wtr_l),
            rtw_ps: or(self.rtw_ps, d.rtw),
            cs_ps: or(self.cs_ps, d.cs),
            rfc_ps: or(self.rfc_ps, clocks_of(d.rfc_ns)),
            refi_ps: or(self.refi_ps, clocks_of(d.refi_ns)),
        }
    }
}

/// Relation of the next column command to the last one.
pub(super) const SAME_GROUP: usize = 0;
pub(super) const SAME_RANK: usize = 1;
pub(super) const OTHER_RANK: usize = 2;

/// Constraints that a channel checks, in picoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DramTiming {
    /// Clock period (tCK).
    pub tck: u64,
    /// Whether all timings are whole clocks, so that commands keep to clock edges.
    pub whole: bool,
    /// Reciprocal 2^(64 + `reciprocal_bits`) / tck, rounded up, for division by multiplication.
    per_tck: u64,
    /// Bits by which the reciprocal exceeds 64 fractional bits, so that it fills a `u64`.
    reciprocal_bits: u32,
    /// Read command to data (CL).
    pub cl: u64,
    /// Write command to data (CWL).
    pub cwl: u64,
    /// Time for which one line occupies the data bus.
    pub burst: u64,
    /// Activate to column command (tRCD).
    pub rcd: u64,
    /// Precharge to activate (tRP).
    pub rp: u64,
    /// Activate to precharge (tRAS).
    pub ras: u64,
    /// Activate to activate of one bank (tRC).
    pub rc: u64,
    /// Activate to activate in different bank groups (tRRD_S).
    pub rrd_s: u64,
    /// Activate to activate in one bank group (tRRD_L).
    pub rrd_l: u64,
    /// Window in which a rank accepts at most four activates (tFAW).
    pub faw: u64,
    /// Column command to precharge of the bank, by direction (read, write).
    pub col_to_pre: [u64; 2],
    /// Column command to column command: `[direction of the first][where][direction of the second]`.
    pub col_to_col: [[[u64; 2]; 3]; 2],
    /// Start of a burst of one rank to start of a burst of another rank.
    pub rank_switch: u64,
    /// Duration of a refresh (tRFC).
    pub rfc: u64,
    /// Mean time between refreshes (tREFI).
    pub refi: u64,
    /// Time for which an activate occupies the command bus.
    pub act_bus: u64,
    /// Time for which a column command occupies the command bus.
    pub col_bus: u64,
}

impl DramTiming {
    /// The constraints of device `d` with the overrides `o`.
    pub fn new(d: &DramDevice, o: &TimingOverride) -> DramTiming {
        let all = o.in_full(d);
        let of = |timing: Option<u64>| timing.expect("all timings are there");
        let tck = of(all.tck_ps);
        let (cl, cwl) = (of(all.cl_ps), of(all.cwl_ps));
        let burst = d.burst * tck;
        let ccd_s = (d.ccd_s * tck).max(burst);
        let ccd_l = of(all.ccd_l_ps).max(ccd_s);
        let ccd_l_wr = o.ccd_l_ps.unwrap_or(d.ccd_l_wr * tck).max(ccd_s);
        let rtw = (cl + burst + of(all.rtw_ps)).saturating_sub(cwl);
        let (wtr_s, wtr_l) = (of(all.wtr_s_ps), of(all.wtr_l_ps));
        let cs = of(all.cs_ps);
        let (rp, ras) = (of(all.rp_ps), of(all.ras_ps));
        let reciprocal_bits = (tck.max(2) - 1).ilog2();
        let mut t = DramTiming {
            tck,
            whole: false,
            per_tck: (1u128 << (u64::BITS + reciprocal_bits)).div_ceil(tck.max(2).into()).to_u64(),
            reciprocal_bits,
            cl,
            cwl,
            burst,
            rcd: of(all.rcd_ps),
            rp,
            ras,
            rc: ras + rp,
            rrd_s: of(all.rrd_s_ps),
            rrd_l: of(all.rrd_l_ps),
            faw: of(all.faw_ps),
            col_to_pre: [of(all.rtp_ps), cwl + burst + of(all.wr_ps)],
            col_to_col: [
                [[ccd_l, rtw], [ccd_s, rtw], [burst + cs, (cl + burst + cs).saturating_sub(cwl)]],
                [
                    [cwl + burst + wtr_l, ccd_l_wr],
                    [cwl + burst + wtr_s, ccd_s],
                    [(cwl + burst + cs).saturating_sub(cl), burst + cs],
                ],
            ],
            rank_switch: burst + cs,
            rfc: of(all.rfc_ps),
            refi: of(all.refi_ps),
            act_bus: d.act_cycles * tck,
            col_bus: d.col_cycles * tck,
        };
        let singles = [t.rcd, t.rp, t.ras, t.rrd_s, t.rrd_l, t.faw, t.rfc, t.refi];
        let all = singles.iter().chain(&t.col_to_pre).chain(t.col_to_col.iter().flatten().flatten());
        t.whole = all.into_iter().all(|v| v % tck == 0);
        t
    }

    /// Longest time that a bank can need for an access while no refresh interferes.
    pub(super) fn longest_access(&self) -> u64 {
        let most = |all: &[u64]| all.iter().copied().max().unwrap_or(0);
        let turn = self.col_to_col.iter().flatten().map(|gaps| most(gaps)).max().unwrap_or(0);
        let opens = self.rc + self.faw.max(self.rrd_s).max(self.rrd_l) + self.rcd;
        opens + turn + self.cl.max(self.cwl) + self.burst + most(&self.col_to_pre)
    }

    /// First clock edge at or after `at`, if commands keep to clock edges.
    #[inline]
    pub(super) fn edge(&self, at: u64) -> u64 {
        if !self.whole || self.tck == 1 {
            return at;
        }
        // Division by multiplication: exact up to 2^63, beyond the end of simulated time.
        let product = u128::from(at + self.tck - 1) * u128::from(self.per_tck);
        let clocks = (product >> u64::BITS).to_u64() >> self.reciprocal_bits;
        debug_assert_eq!(clocks, at.div_ceil(self.tck));
        clocks * self.tck
    }
}
