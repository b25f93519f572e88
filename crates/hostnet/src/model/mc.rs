//! Analytical latency of requests at the memory controller ("Understanding the Host Network", SIGCOMM'24, section 6.1),
//! computed from counters of a simulation or of real hardware. The model serves requests in order and leaves out
//! scheduling, ranks, bank groups and write recovery.

use super::domain::bound_gbs;
use serde::{Deserialize, Serialize};

/// Parameters of the hardware in the formulae. The defaults are those of the paper's Cascade Lake (DDR4-2933).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hardware {
    /// Channels of the memory controller.
    pub channels: f64,
    /// Time for which one line occupies the channel, in ns.
    pub t_trans_ns: f64,
    /// Time to turn the channel from writes to reads, in ns.
    pub t_wtr_ns: f64,
    /// Time to turn the channel from reads to writes, in ns.
    pub t_rtw_ns: f64,
    /// Time to open a row, in ns.
    pub t_act_ns: f64,
    /// Time to close a row, in ns.
    pub t_pre_ns: f64,
    /// Latency of a core's read without contention, in ns.
    pub c2m_read_ns: f64,
    /// Latency of a core's write-back without contention, in ns.
    pub c2m_write_ns: f64,
    /// Latency of a device's write without contention, in ns.
    pub p2m_write_ns: f64,
    /// Latency of a device's read without contention; None on the paper's machine, where it cannot be measured.
    pub p2m_read_ns: Option<f64>,
    /// Part of a P2M write's latency between the IIO and the CHA, in ns.
    pub iio_to_cha_ns: f64,
}

impl Default for Hardware {
    fn default() -> Self {
        // artifact: host-architecture/understanding-the-host-network, mio/model.py.
        Hardware {
            channels: 2.0,
            t_trans_ns: 2.73,
            t_wtr_ns: 8.18,
            t_rtw_ns: 8.18,
            t_act_ns: 14.32,
            t_pre_ns: 14.32,
            c2m_read_ns: 71.0,
            c2m_write_ns: 10.0,
            p2m_write_ns: 317.0,
            p2m_read_ns: None,
            iio_to_cha_ns: 205.0,
        }
    }
}

/// Inputs of the formulae (Table 2). Counts are sums over channels; rates serve as well, because only ratios matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McCounters {
    /// Mean occupancy of one channel's read pending queue.
    pub rpq_occupancy: f64,
    /// Share of time in which the write pending queue is full.
    #[serde(default)]
    pub wpq_full: f64,
    /// Mean number of writes, of cores and devices, that wait at the CHA for the write queue.
    #[serde(default)]
    pub waiting_writes: f64,
    /// Number of changes from write mode to read mode.
    pub switches: f64,
    /// Lines read.
    pub lines_read: f64,
    /// Lines written.
    pub lines_written: f64,
    /// Activations for reads.
    pub act_read: f64,
    /// Activations for writes.
    pub act_write: f64,
    /// Number of precharges of banks in which another row was open.
    pub pre_conflict: f64,
    /// Share of time in which the read queue is full, for the correction that the authors' code applies in quadrant 4.
    #[serde(default)]
    pub rpq_full: Option<f64>,
    /// Mean number of reads, of cores and devices, that wait at the CHA, for the correction that the authors' code
    /// applies in quadrant 4.
    #[serde(default)]
    pub waiting_reads: Option<f64>,
}

/// Way in which the write formula counts waiting writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteForm {
    /// Formula as printed (Fig. 10): all waiting writes, one fewer in the head-of-line term.
    Printed,
    /// Formula as in the authors' code for the plots: waiting writes per channel, all of them in the head-of-line term.
    #[default]
    Plotted,
}

/// Terms of a latency, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// Latency without contention.
    pub constant: f64,
    /// Time for turning the channel between reads and writes.
    pub switching: f64,
    /// Head-of-line blocking by writes.
    pub write_hol: f64,
    /// Head-of-line blocking by reads.
    pub read_hol: f64,
    /// Time at the top of the queue: opening and closing rows.
    pub top_of_queue: f64,
    /// Admission delay at the CHA, which is measured because the formulae do not cover it.
    pub cha_admission: f64,
}

impl Terms {
    /// The sum of all terms, in ns.
    pub fn total(&self) -> f64 {
        self.constant + self.queueing() + self.cha_admission
    }

    /// Part of the latency that the memory controller causes.
    pub fn queueing(&self) -> f64 {
        self.switching + self.write_hol + self.read_hol + self.top_of_queue
    }

    /// Name and value of the largest term besides the constant.
    pub fn dominant(&self) -> (&'static str, f64) {
        [
            ("switching", self.switching),
            ("write head-of-line blocking", self.write_hol),
            ("read head-of-line blocking", self.read_hol),
            ("row activation at the top of the queue", self.top_of_queue),
            ("admission at the CHA", self.cha_admission),
        ]
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .expect("five terms")
    }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else {
        0.0
    }
}

impl McCounters {
    /// Checks the inputs; the error names the invalid input in one sentence.
    pub fn check(&self) -> Result<(), String> {
        let named = [
            ("rpq_occupancy", self.rpq_occupancy),
            ("wpq_full", self.wpq_full),
            ("waiting_writes", self.waiting_writes),
            ("switches", self.switches),
            ("lines_read", self.lines_read),
            ("lines_written", self.lines_written),
            ("act_read", self.act_read),
            ("act_write", self.act_write),
            ("pre_conflict", self.pre_conflict),
            ("rpq_full", self.rpq_full.unwrap_or(0.0)),
            ("waiting_reads", self.waiting_reads.unwrap_or(0.0)),
        ];
        if let Some((name, v)) = named.iter().find(|(_, v)| !v.is_finite() || *v < 0.0) {
            return Err(format!("{name} = {v} is not a count"));
        }
        for (name, v) in [("wpq_full", self.wpq_full), ("rpq_full", self.rpq_full.unwrap_or(0.0))] {
            if v > 1.0 {
                return Err(format!("{name} = {v} is not a share of the time, which is at most 1"));
            }
        }
        Ok(())
    }

    /// Conflict precharges of reads and of writes. Hardware counts both together, so they are apportioned in proportion
    /// to the activations.
    fn precharges(&self) -> (f64, f64) {
        let reads = ratio(self.act_read, self.act_read + self.act_write);
        (self.pre_conflict * reads, self.pre_conflict * (1.0 - reads))
    }

    /// Counters with the read queue's occupancy corrected for the time in which it is full and reads wait at the CHA.
    /// The paper does not mention this correction; its code applies it in quadrant 4. None without `rpq_full` and
    /// `waiting_reads`.
    pub fn with_reads_at_cha(&self, hw: &Hardware) -> Option<McCounters> {
        let (full, waiting) = (self.rpq_full?, self.waiting_reads?);
        let rpq_occupancy = (1.0 - full) * self.rpq_occupancy + full * waiting / hw.channels;
        Some(McCounters { rpq_occupancy, ..*self })
    }
}

/// Latency of a read domain: `constant_ns` and the queueing delay in the read pending queue.
pub fn read_latency(hw: &Hardware, c: &McCounters, constant_ns: f64) -> Terms {
    let (pre_read, _) = c.precharges();
    let o = c.rpq_occupancy;
    Terms {
        constant: constant_ns,
        switching: o * ratio(c.switches, c.lines_read) * hw.t_wtr_ns,
        write_hol: o * ratio(c.lines_written, c.lines_read) * hw.t_trans_ns,
        read_hol: (o - 1.0).max(0.0) * hw.t_trans_ns,
        top_of_queue: ratio(c.act_read, c.lines_read) * hw.t_act_ns + ratio(pre_read, c.lines_read) * hw.t_pre_ns,
        cha_admission: 0.0,
    }
}

/// Latency of a write domain: `constant_ns` and, while the write pending queue is full, the time until it admits the
/// write.
pub fn write_latency(hw: &Hardware, c: &McCounters, constant_ns: f64, form: WriteForm) -> Terms {
    let (_, pre_write) = c.precharges();
    let (n, ahead) = match form {
        WriteForm::Printed => (c.waiting_writes, (c.waiting_writes - 1.0).max(0.0)),
        WriteForm::Plotted => (c.waiting_writes / hw.channels, c.waiting_writes / hw.channels),
    };
    let p = c.wpq_full;
    Terms {
        constant: constant_ns,
        switching: p * n * ratio(c.switches, c.lines_written) * hw.t_rtw_ns,
        read_hol: p * n * ratio(c.lines_read, c.lines_written) * hw.t_trans_ns,
        write_hol: p * ahead * hw.t_trans_ns,
        top_of_queue: p
            * (ratio(c.act_write, c.lines_written) * hw.t_act_ns + ratio(pre_write, c.lines_written) * hw.t_pre_ns),
        cha_admission: 0.0,
    }
}

/// Traffic class with a formula of its own (section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FormulaClass {
    /// Reads of cores.
    #[serde(rename = "c2m-read")]
    C2mRead,
    /// Reads of cores whose lines are written back.
    #[serde(rename = "c2m-readwrite")]
    C2mReadWrite,
    /// Reads of devices.
    #[serde(rename = "p2m-read")]
    P2mRead,
    /// Writes of devices.
    #[serde(rename = "p2m-write")]
    P2mWrite,
}

/// Latency of `class` by its formula, plus a measured admission delay. None for a class whose constant the hardware
/// description lacks.
pub fn latency(
    hw: &Hardware,
    c: &McCounters,
    class: FormulaClass,
    form: WriteForm,
    cha_admission_ns: f64,
) -> Option<Terms> {
    let mut t = match class {
        FormulaClass::C2mRead => read_latency(hw, c, hw.c2m_read_ns),
        FormulaClass::C2mReadWrite => read_latency(hw, c, hw.c2m_read_ns + hw.c2m_write_ns),
        FormulaClass::P2mRead => read_latency(hw, c, hw.p2m_read_ns?),
        FormulaClass::P2mWrite => write_latency(hw, c, hw.p2m_write_ns, form),
    };
    t.cha_admission = cha_admission_ns;
    Some(t)
}

/// Throughput in GB/s of `credits` credits at the latency `t`.
pub fn throughput_gbs(t: &Terms, credits: f64) -> f64 {
    bound_gbs(credits, t.total())
}

/// Error of an estimate in percent of the measured value; positive for an overestimate.
pub fn error_pct(estimated: f64, measured: f64) -> f64 {
    100.0 * (estimated - measured) / measured
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters in round numbers, so that each term can be checked by hand.
    fn counters() -> McCounters {
        McCounters {
            rpq_occupancy: 5.0,
            wpq_full: 0.5,
            waiting_writes: 40.0,
            switches: 10.0,
            lines_read: 1000.0,
            lines_written: 400.0,
            act_read: 300.0,
            act_write: 100.0,
            pre_conflict: 200.0,
            rpq_full: None,
            waiting_reads: None,
        }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn every_read_term_is_the_specifications() {
        let t = read_latency(&Hardware::default(), &counters(), 71.0);
        near(t.switching, 5.0 * (10.0 / 1000.0) * 8.18);
        near(t.write_hol, 5.0 * (400.0 / 1000.0) * 2.73);
        near(t.read_hol, 4.0 * 2.73);
        // Three quarters of the activations, and hence of the 200 precharges, are those of reads.
        near(t.top_of_queue, (300.0 / 1000.0) * 14.32 + (150.0 / 1000.0) * 14.32);
        near(t.total(), 71.0 + 0.409 + 5.46 + 10.92 + 4.296 + 2.148);
        assert_eq!(t.dominant().0, "read head-of-line blocking");
    }

    #[test]
    fn an_almost_empty_read_queue_has_nobody_ahead() {
        let c = McCounters { rpq_occupancy: 0.4, ..counters() };
        near(read_latency(&Hardware::default(), &c, 71.0).read_hol, 0.0);
    }

    #[test]
    fn every_write_term_is_the_specifications() {
        let (hw, c) = (Hardware::default(), counters());
        let t = write_latency(&hw, &c, 317.0, WriteForm::Printed);
        near(t.switching, 0.5 * 40.0 * (10.0 / 400.0) * 8.18);
        near(t.read_hol, 0.5 * 40.0 * (1000.0 / 400.0) * 2.73);
        near(t.write_hol, 0.5 * 39.0 * 2.73);
        near(t.top_of_queue, 0.5 * ((100.0 / 400.0) * 14.32 + (50.0 / 400.0) * 14.32));
        near(t.total(), 317.0 + 4.09 + 136.5 + 53.235 + 2.685);
        // The plotted form: 20 writes a channel, and all of them in the head-of-line term.
        let p = write_latency(&hw, &c, 317.0, WriteForm::Plotted);
        near(p.switching, 0.5 * 20.0 * (10.0 / 400.0) * 8.18);
        near(p.read_hol, 0.5 * 20.0 * 2.5 * 2.73);
        near(p.write_hol, 0.5 * 20.0 * 2.73);
        near(p.top_of_queue, t.top_of_queue);
    }

    #[test]
    fn a_write_queue_that_is_never_full_admits_at_once() {
        let c = McCounters { wpq_full: 0.0, ..counters() };
        near(write_latency(&Hardware::default(), &c, 317.0, WriteForm::Plotted).total(), 317.0);
    }

    #[test]
    fn a_host_without_writes_has_no_write_terms() {
        let c = McCounters { lines_written: 0.0, act_write: 0.0, switches: 0.0, ..counters() };
        let t = read_latency(&Hardware::default(), &c, 71.0);
        assert_eq!((t.write_hol, t.switching), (0.0, 0.0));
        assert!(write_latency(&Hardware::default(), &c, 317.0, WriteForm::Plotted).total().is_finite());
    }

    #[test]
    fn classes_take_their_formula_and_constant() {
        let (hw, c) = (Hardware::default(), counters());
        let of = |class, admission| latency(&hw, &c, class, WriteForm::Plotted, admission).map(|t| t.total());
        let read = of(FormulaClass::C2mRead, 0.0).unwrap();
        near(of(FormulaClass::C2mReadWrite, 0.0).unwrap(), read + 10.0);
        near(of(FormulaClass::C2mReadWrite, 25.0).unwrap(), read + 35.0);
        assert_eq!(of(FormulaClass::P2mRead, 0.0), None);
        let known = Hardware { p2m_read_ns: Some(500.0), ..hw };
        near(latency(&known, &c, FormulaClass::P2mRead, WriteForm::Plotted, 0.0).unwrap().total(), read - 71.0 + 500.0);
    }

    #[test]
    fn a_full_read_queue_hides_reads_at_the_cha() {
        let c = McCounters { rpq_full: Some(0.25), waiting_reads: Some(120.0), ..counters() };
        // 0.75 x 5 + 0.25 x 60
        near(c.with_reads_at_cha(&Hardware::default()).unwrap().rpq_occupancy, 18.75);
        assert_eq!(counters().with_reads_at_cha(&Hardware::default()), None);
    }

    #[test]
    fn estimates_and_errors_have_their_sign() {
        let t = Terms { constant: 100.0, ..Terms::default() };
        near(throughput_gbs(&t, 12.0), 7.68);
        near(error_pct(7.68, 6.4), 20.0);
        near(error_pct(5.76, 6.4), -10.0);
    }

    #[test]
    fn counters_that_make_no_sense_are_named() {
        let c = McCounters { lines_read: -1.0, ..counters() };
        assert_eq!(c.check().unwrap_err(), "lines_read = -1 is not a count");
        let c = McCounters { wpq_full: 1.5, ..counters() };
        assert!(c.check().unwrap_err().contains("wpq_full = 1.5 is not a share"));
        assert!(counters().check().is_ok());
    }
}
