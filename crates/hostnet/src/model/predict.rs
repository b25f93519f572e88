//! Predictive model: the throughput of cores and a device on a host, computed from the host's description and the
//! offered traffic alone. The model goes beyond section 6.1 of "Understanding the Host Network" (SIGCOMM'24), whose
//! formulae need measured queue occupancies: here the occupancies are part of the fixed point.
//!
//! Cores form a closed loop: all their credits N are in flight, so x L(x) = N for a rate x. The latency L is the
//! unloaded latency plus the wait at a channel, which is modelled as a server that takes vacations to write. In an
//! unsaturated channel a read finds the channel writing with a probability equal to the writes' share of time. The read
//! then waits for half a write burst, or for one write where writes use the gaps between reads and yield to reads.
//! Banks add the time to open rows, and to serve other streams in the same bank. A saturated channel delays the
//! requests whose bursts are bounded: reads where there are more reads than writes, otherwise writes. Writes wait first
//! at the CHA, which delays the device, and at cores and device once the buffers of the CHA are full.

use serde::{Deserialize, Serialize};

use super::domain::LINE;

/// Description of a host. Times are in ns; counts are in lines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictHost {
    /// Memory channels.
    pub channels: f64,
    /// Number of banks of one channel, including all ranks.
    pub banks: f64,
    /// Number of banks of a channel that a stream of consecutive lines uses at a time.
    pub banks_per_stream: f64,
    /// Lines in a row of a bank.
    pub lines_per_row: f64,
    /// Time of a line on the channel.
    pub t_trans_ns: f64,
    /// Time from opening a row to a column command (tRCD).
    pub t_rcd_ns: f64,
    /// Time to close a row (tRP).
    pub t_rp_ns: f64,
    /// Shortest time from opening a row to closing it (tRAS).
    pub t_ras_ns: f64,
    /// Time from a write command to its data (tCWL).
    pub t_cwl_ns: f64,
    /// Write recovery, from a write's data to closing its row (tWR).
    pub t_wr_ns: f64,
    /// Time to turn the channel from writes to reads.
    pub t_wtr_ns: f64,
    /// Time to turn the channel from reads to writes.
    pub t_rtw_ns: f64,
    /// Length of a refresh (tRFC).
    pub t_rfc_ns: f64,
    /// Interval of refreshes (tREFI).
    pub t_refi_ns: f64,
    /// Entries of a channel's read queue.
    pub rpq: f64,
    /// Entries of a channel's write queue.
    pub wpq: f64,
    /// Number of lines between the watermarks at which a write burst starts and ends.
    pub write_drain: f64,
    /// Longest burst of writes, in lines.
    pub write_burst: f64,
    /// Shortest burst of reads, in lines.
    pub read_burst: f64,
    /// Whether writes below the watermark are issued while no read waits, and yield to an arriving read.
    pub writes_yield: bool,
    /// Share of a stream's write-backs that leave the caches separately from the neighbouring line, because LLC slices
    /// scatter them.
    pub victims_apart: f64,
    /// Line fill buffers of a core.
    pub lfb_credits: f64,
    /// Time from the end of a miss until the next miss occupies the line fill buffer, in ns.
    pub lfb_retry_ns: f64,
    /// Entries of the IIO's write buffer.
    pub iio_write_credits: f64,
    /// Entries of the IIO's read buffer.
    pub iio_read_credits: f64,
    /// Largest number of writes that may wait at the CHA.
    pub cha_buffer: f64,
    /// Whether waiting writes of cores and devices take turns, each in a half of the buffer at the CHA. Otherwise they go in
    /// the order of their arrival.
    #[serde(default)]
    pub writes_in_turn: bool,
    /// Lines that the LLC holds.
    pub llc_lines: f64,
    /// Latency of a core's read without contention.
    pub c2m_read_ns: f64,
    /// Latency of a device's read without contention.
    pub p2m_read_ns: f64,
    /// Latency of a device's write without contention.
    pub p2m_write_ns: f64,
}

/// Traffic offered to a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Offered {
    /// Cores that read memory in a closed loop.
    pub cores: f64,
    /// Number of lines written back for each line that cores read.
    pub core_writes: f64,
    /// Number of consecutive lines of a core's buffer that share a page; the pages of a buffer may lie anywhere in
    /// memory.
    pub core_run: f64,
    /// Throughput of the device on an unloaded host, in GB/s.
    pub device_gbs: f64,
    /// Whether the device writes memory; otherwise the device reads memory.
    pub device_writes: bool,
    /// Number of sequential streams of the device.
    pub device_streams: f64,
    /// Number of consecutive lines of a stream that the device moves before it turns to another stream.
    pub device_run: f64,
    /// Lines of one request of the device.
    pub device_request: f64,
    /// Lines that the device may have under way by its PCIe credits: posted credits of writes, tags of reads. With 0 these
    /// credits bound nothing.
    pub pcie_credits: f64,
    /// Time in ns for which a line holds its PCIe credit beyond its stay in the IIO.
    pub pcie_ns: f64,
    /// Number of lines that the kernel reads for each line of the device while none is cached, each line in a row of
    /// its own.
    pub kernel_reads: f64,
    /// Number of lines that the kernel writes for each line of the device while none is cached, each line in a row of
    /// its own.
    pub kernel_writes: f64,
    /// Number of different lines that the kernel accesses.
    pub kernel_lines: f64,
}

impl Offered {
    /// Lines that the PCIe credits allow; infinite where they bound nothing.
    fn pcie_lines(&self) -> f64 {
        if self.pcie_credits > 0.0 {
            self.pcie_credits
        } else {
            f64::INFINITY
        }
    }
}

/// Predicted performance of a host under the offered traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Lines that pass through the cores' line fill buffers, in GB/s.
    pub c2m_gbs: f64,
    /// Lines that the device moves, in GB/s.
    pub p2m_gbs: f64,
    /// Latency of the cores' domain in ns, including the write-back where there is one.
    pub c2m_ns: f64,
    /// Latency of the device's domain, in ns.
    pub p2m_ns: f64,
    /// Mean occupancy of one channel's read queue.
    pub rpq_occupancy: f64,
    /// Share of lines read that open a row.
    pub row_miss_ratio: f64,
    /// Share of time in which the channels are busy, including turnarounds.
    pub utilisation: f64,
    /// Wait of a write at the CHA for the write queue, in ns.
    pub write_wait_ns: f64,
    /// Wait of every request for admission at the CHA, in ns.
    pub admission_ns: f64,
}

/// Streams of one kind at the banks of a channel.
struct Streams {
    count: f64,
    /// Rate of each stream, in lines per ns and channel.
    rate: f64,
}

/// Probability of `j` other streams in a bank, given their mean number.
fn poisson(mean: f64, j: u32) -> f64 {
    (1..=j).fold((-mean).exp(), |p, i| p * mean / f64::from(i))
}

/// Mean number of banks that `queued` requests to random banks keep busy.
fn busy_banks(banks: f64, queued: f64) -> f64 {
    banks * (1.0 - (1.0 - 1.0 / banks).powf(queued))
}

impl PredictHost {
    /// Row-miss ratio of a stream of `rate` that stays in a row for `run` lines, and the time that a line waits for
    /// other streams in its bank. The turns of the streams grow until the bank keeps up, because the scheduler serves
    /// row hits first.
    ///
    /// Single lines, `scattered` per ns over all banks, close rows as well.
    fn bank(&self, rate: f64, run: f64, all: &[Streams], scattered: f64) -> (f64, f64) {
        let cycle = self.t_ras_ns + self.t_rp_ns;
        let others = all.iter().map(|s| s.count).sum::<f64>() - 1.0;
        if rate <= 0.0 {
            return (1.0 / run, 0.0);
        }
        let own = rate / self.banks_per_stream;
        let stays = (-scattered / self.banks / own).exp();
        if others <= 0.0 {
            return (1.0 - stays * (1.0 - 1.0 / run), 0.0);
        }
        let total: f64 = all.iter().map(|s| s.count * s.rate).sum();
        let other = (total - rate).max(0.0) / others / self.banks_per_stream;
        let mean = others * self.banks_per_stream / self.banks;
        let (mut miss, mut wait) = (0.0, 0.0);
        for j in 0..16 {
            let p = poisson(mean, j);
            if j == 0 {
                miss += p / run;
                continue;
            }
            let both = own + f64::from(j) * other;
            let left = 1.0 - both * self.t_trans_ns;
            let turn = if left > 0.05 { both * (cycle - self.t_trans_ns) / left } else { run };
            let turn = turn.max(1.0).min(run.max(1.0));
            let share = f64::from(j) * other / both;
            miss += p * share.min(1.0 / turn).max(1.0 / run);
            wait += p * share * (cycle + (turn - 1.0) * self.t_trans_ns) / 2.0 * (both * cycle).min(1.0);
        }
        (1.0 - stays * (1.0 - miss), wait)
    }

    /// Whether the kernel's lines come from memory. Half of them are written between two uses of a page's structure,
    /// and the LLC keeps as many lines as other writes leave room for.
    fn cold(&self, o: &Offered, kernel: f64, core: f64) -> bool {
        o.kernel_lines / 2.0 * (kernel + core) > self.llc_lines * kernel
    }

    /// The device's credits of the IIO, and the latency of its line without contention.
    fn iio(&self, o: &Offered) -> (f64, f64) {
        if o.device_writes {
            (self.iio_write_credits, self.p2m_write_ns)
        } else {
            (self.iio_read_credits, self.p2m_read_ns)
        }
    }

    /// Rate in lines per ns that the device's credits of IIO and PCIe allow when a line stays in the IIO for `ns`.
    fn credits_allow(&self, o: &Offered, ns: f64) -> f64 {
        (self.iio(o).0 / ns).min(o.pcie_lines() / (ns + o.pcie_ns))
    }

    /// Stay in the IIO, in ns, at which the device's credits allow the rate `y`.
    fn stay_at(&self, o: &Offered, y: f64) -> f64 {
        (self.iio(o).0 / y).min(o.pcie_lines() / y - o.pcie_ns)
    }

    /// Prediction for cores that complete `x` lines per ns; None when the channels cannot carry the load.
    fn at(&self, o: &Offered, x: f64) -> Option<Prediction> {
        let most = (o.device_gbs / LINE).min(self.credits_allow(o, self.iio(o).1));
        let mut y = most;
        let mut found = None;
        // The rate of the device and its latency depend on each other; the map contracts quickly.
        for _ in 0..60 {
            let Some((p, next)) = self.beside(o, x, y, most) else {
                // A device's reads wait with those of the cores, so that their rate falls until the channels carry it.
                return if o.device_writes { None } else { self.beside_waiting_reads(o, x, most) };
            };
            found = Some(p);
            if (next - y).abs() <= 1e-9 * most.max(1e-9) {
                break;
            }
            y += 0.5 * (next - y);
        }
        found
    }

    /// Prediction for cores that complete `x` lines per ns beside a device that reads less than `most`, because its
    /// credits wait for full channels.
    fn beside_waiting_reads(&self, o: &Offered, x: f64, most: f64) -> Option<Prediction> {
        let (mut low, mut high, mut found) = (0.0, most, None);
        for _ in 0..60 {
            let y = 0.5 * (low + high);
            match self.beside(o, x, y, most) {
                Some((p, next)) if next >= y => (low, found) = (y, Some(p)),
                _ => high = y,
            }
        }
        found
    }

    /// Prediction for cores that complete `x` lines per ns beside a device that moves `y` of at most `most`, and the rate
    /// that the device's credits allow at the latency found; None when the channels cannot carry the load.
    fn beside(&self, o: &Offered, x: f64, y: f64, most: f64) -> Option<(Prediction, f64)> {
        let base = self.c2m_read_ns;
        let lines = self.t_trans_ns / (1.0 - self.t_rfc_ns / self.t_refi_ns);
        let turning = self.t_wtr_ns + self.t_rtw_ns;
        let core_writes = o.core_writes * x;
        let (dr, dw) = if o.device_writes { (0.0, y) } else { (y, 0.0) };
        let cold = self.cold(o, y * o.kernel_writes, core_writes);
        let (kr, kw) = if cold { (y * o.kernel_reads, y * o.kernel_writes) } else { (0.0, 0.0) };
        let (reads, writes) = ((x + dr + kr) / self.channels, (core_writes + dw + kw) / self.channels);
        let scattered = (kr + kw) / self.channels;
        let kinds = 1.0 + o.core_writes;
        let core = x / self.channels / o.cores.max(1.0);
        let device = y / self.channels / o.device_streams.max(1.0);
        let all = [
            Streams { count: o.cores * kinds, rate: core },
            Streams { count: if y > 0.0 { o.device_streams } else { 0.0 }, rate: device },
        ];
        let core_run = (o.core_run / self.channels / self.banks_per_stream).min(self.lines_per_row).max(1.0);
        let (miss, bank_wait) = self.bank(core, core_run, &all, scattered);
        let device_run = (o.device_run / self.channels / self.banks_per_stream).max(1.0);
        let device_miss = self.bank(device, device_run, &all, scattered).0;
        let miss_reads = if reads > 0.0 { (x * miss + dr * device_miss + kr) / (x + dr + kr) } else { 0.0 };
        // Lines of a stream are adjacent in the write queue unless other streams interleave there; each write-back
        // that the caches scatter opens a row.
        let core_writers = if o.core_writes > 0.0 { o.cores } else { 0.0 };
        let writers = core_writers + if dw > 0.0 { o.device_streams } else { 0.0 };
        let apart = (writers * self.banks_per_stream / self.wpq).min(1.0);
        // The kernel's lines between them let the replacement states of neighbouring sets drift apart.
        let core_apart = if kw > 0.0 { 1.0 } else { apart.max(self.victims_apart) };
        let opened = core_writes * core_apart + dw * apart + kw;
        let miss_writes = if writes > 0.0 { opened / (core_writes + dw + kw) } else { 0.0 };
        let held_read = miss_reads * (self.t_ras_ns + self.t_rp_ns) + (1.0 - miss_reads) * self.t_trans_ns;
        let write_cycle = self.t_rcd_ns + self.t_cwl_ns + self.t_trans_ns + self.t_wr_ns + self.t_rp_ns;
        let held_write = miss_writes * write_cycle + (1.0 - miss_writes) * self.t_trans_ns;
        // Bus and banks both limit the rate, and the wait for one does not entirely hide the wait for the other.
        let queued = self.rpq.min((o.cores * self.lfb_credits + dr * self.p2m_read_ns) / self.channels);
        let per_read = lines.hypot(held_read / busy_banks(self.banks, queued.max(1.0)));
        let per_write = lines.hypot(held_write / busy_banks(self.banks, self.wpq));
        // Writes that arrive while the queue drains lengthen the write burst.
        let burst = (self.write_drain / (1.0 - (writes * per_write).min(0.9))).min(self.write_burst);
        let vacation = burst * per_write + turning;
        let write_cost = per_write + turning / burst;
        let (read_load, write_load) = (reads * per_read, writes * write_cost);
        let batch = if reads > 0.0 { (x + dr * o.device_request / self.channels) / (x + dr) } else { 1.0 };
        // Gaps between reads take writes; the channel turns from reads only for the other writes. Reads that wait
        // meanwhile leave no gaps until they have been served.
        let free = (1.0 - read_load).max(1e-9);
        let gaps = free * (-turning * reads / batch).exp() / per_write;
        let in_gaps = if !self.writes_yield {
            0.0
        } else if gaps >= writes {
            1.0
        } else {
            let (fit, forced) = (gaps / writes, (write_load / free).min(1.0));
            fit * (1.0 - forced) / (1.0 - fit * forced)
        };
        let away = in_gaps * (per_write + self.t_wtr_ns) + (1.0 - in_gaps) * vacation / 2.0;
        let reads_wait = reads * self.write_burst >= writes * self.read_burst;
        let (mut write_wait, mut admission) = (0.0, 0.0);
        let mut next = most;
        let wait = if reads_wait {
            let left = 1.0 - write_load;
            if read_load >= left {
                return None;
            }
            let load = read_load / left;
            // Reads that accumulate during a write burst are served before the next burst, as long as the channel
            // keeps up.
            write_load * away / (1.0 - read_load) + per_read / left * load * batch / (2.0 * (1.0 - load))
        } else {
            if read_load >= 1.0 {
                return None;
            }
            // Rate at which the channels can write beside these reads, and the device's part of it.
            let carried = (1.0 - read_load) / write_cost * self.channels;
            let room = (carried - core_writes) * dw / (dw + kw).max(1e-12);
            let due = if self.writes_in_turn { most.min(carried / 2.0) } else { 0.0 };
            if room < due || (room <= 0.0 && most > 0.0) {
                return None;
            }
            if dw > 0.0 && room < most {
                next = room;
                let delay = self.stay_at(o, next) - self.p2m_write_ns;
                let (waiting, rate) = if self.writes_in_turn {
                    (0.5 * self.cha_buffer, next)
                } else {
                    (self.cha_buffer, core_writes + next)
                };
                write_wait = delay.min(waiting / rate);
                admission = delay - write_wait;
            }
            let writing = write_load.min(1.0 - read_load);
            (writing * away + read_load * per_read * batch / 2.0) / (1.0 - read_load)
        };
        let refresh = self.t_rfc_ns * self.t_rfc_ns / (2.0 * self.t_refi_ns);
        let wait = wait + bank_wait + refresh + miss * (self.t_rcd_ns + self.t_rp_ns);
        let p2m_ns = self.iio(o).1 + if o.device_writes { write_wait } else { wait } + admission;
        next = next.min(self.credits_allow(o, p2m_ns));
        // A write-back needs admission of its own. Writes in turn let the device alone wait for admission.
        let c2m_ns = base + wait + if self.writes_in_turn { 0.0 } else { admission * kinds };
        let found = Prediction {
            c2m_gbs: x * LINE,
            p2m_gbs: y * LINE,
            c2m_ns,
            p2m_ns,
            rpq_occupancy: (reads * (wait + lines)).min(self.rpq),
            row_miss_ratio: miss_reads,
            utilisation: (read_load + write_load).min(1.0),
            write_wait_ns: write_wait,
            admission_ns: admission,
        };
        Some((found, next))
    }

    /// Fixed point of the model: the rate at which all credits of the cores are in flight, or the largest rate that the
    /// channels can carry.
    pub fn predict(&self, o: &Offered) -> Prediction {
        let credits = o.cores * self.lfb_credits;
        let base = self.c2m_read_ns;
        let (mut low, mut high) = (0.0, credits / (base + self.lfb_retry_ns));
        if credits <= 0.0 {
            return self.at(o, 0.0).unwrap_or_default();
        }
        for _ in 0..60 {
            let x = 0.5 * (low + high);
            match self.at(o, x) {
                Some(p) if x * (p.c2m_ns + self.lfb_retry_ns) < credits => low = x,
                _ => high = x,
            }
        }
        self.at(o, low).map_or_else(Prediction::default, |p| {
            // All credits are in use when the channels limit the cores, so the latency follows from Little's law.
            Prediction { c2m_ns: credits / low - self.lfb_retry_ns, ..p }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's Cascade Lake: two channels of DDR4-2933.
    fn host() -> PredictHost {
        PredictHost {
            channels: 2.0,
            banks: 32.0,
            banks_per_stream: 4.0,
            lines_per_row: 128.0,
            t_trans_ns: 2.73,
            t_rcd_ns: 14.32,
            t_rp_ns: 14.32,
            t_ras_ns: 32.0,
            t_cwl_ns: 13.64,
            t_wr_ns: 15.0,
            t_wtr_ns: 8.18,
            t_rtw_ns: 8.18,
            t_rfc_ns: 350.0,
            t_refi_ns: 7800.0,
            rpq: 48.0,
            wpq: 36.0,
            write_drain: 21.6,
            write_burst: 64.0,
            read_burst: 64.0,
            writes_yield: true,
            victims_apart: 1.0,
            lfb_credits: 12.0,
            lfb_retry_ns: 0.0,
            iio_write_credits: 92.0,
            iio_read_credits: 256.0,
            cha_buffer: 162.0,
            writes_in_turn: false,
            llc_lines: 405_504.0,
            c2m_read_ns: 70.0,
            p2m_read_ns: 265.0,
            p2m_write_ns: 300.0,
        }
    }

    fn quadrant(q: u32, cores: f64) -> Offered {
        Offered {
            cores,
            core_writes: if q >= 3 { 1.0 } else { 0.0 },
            core_run: 32768.0,
            device_gbs: 14.0,
            device_writes: q % 2 == 1,
            device_streams: 4.0,
            device_run: 64.0,
            device_request: 8.0,
            ..Offered::default()
        }
    }

    fn alone(q: u32, cores: f64) -> Offered {
        Offered { device_gbs: 0.0, ..quadrant(q, cores) }
    }

    #[test]
    fn one_idle_core_gets_its_credits_over_the_unloaded_latency() {
        // A hundredth of the credits, so that no request queues: 0.12 x 64 / 70, an opened row in 128 lines, and half a
        // refresh for the share of reads that meet one.
        let h = PredictHost { lfb_credits: 0.12, ..host() };
        let p = h.predict(&alone(1, 1.0));
        let latency = 70.0 + (14.32 + 14.32) / 128.0 + 350.0 / 7800.0 * 350.0 / 2.0;
        assert!((p.c2m_gbs / (0.12 * 64.0 / latency) - 1.0).abs() < 1e-3, "{p:?}");
    }

    #[test]
    fn a_device_alone_moves_what_it_offers_until_its_credits_bind() {
        let p = host().predict(&quadrant(1, 0.0));
        assert_eq!((p.p2m_gbs, p.c2m_gbs), (14.0, 0.0));
        // 92 credits at 300 ns carry 19.6 GB/s.
        let p = host().predict(&Offered { device_gbs: 25.0, ..quadrant(1, 0.0) });
        assert!((p.p2m_gbs - 92.0 * 64.0 / 300.0).abs() < 1e-3, "{p:?}");
    }

    /// Cores move as much beside a device whose one credit binds as beside a device that offers what one credit carries in
    /// 300 ns.
    #[test]
    fn a_device_whose_credits_bind_takes_no_more_than_they_carry() {
        let few = PredictHost { iio_write_credits: 1.0, ..host() };
        for cores in [4.0, 6.0, 12.0] {
            let bound = few.predict(&quadrant(1, cores));
            let slow = host().predict(&Offered { device_gbs: 64.0 / 300.0, ..quadrant(1, cores) });
            assert!((bound.p2m_gbs - 64.0 / 300.0).abs() < 1e-9, "{bound:?}");
            assert!((bound.c2m_gbs / slow.c2m_gbs - 1.0).abs() < 1e-9, "{cores} cores: {bound:?}, {slow:?}");
        }
    }

    /// Reads of a device and of cores wait in the same queues, so that each side moves its credits over its own latency.
    /// The cores then get more than beside a device whose credits carry 14 GB/s at any latency.
    #[test]
    fn reads_of_a_device_slow_down_with_those_of_the_cores() {
        let few = PredictHost { iio_read_credits: 58.0, ..host() };
        let ample = host().predict(&quadrant(2, 12.0));
        let p = few.predict(&quadrant(2, 12.0));
        assert!((p.p2m_gbs * p.p2m_ns / (58.0 * 64.0) - 1.0).abs() < 1e-3 && p.p2m_ns > 300.0, "{p:?}");
        assert!((p.p2m_ns - 265.0 - (p.c2m_ns - 70.0)).abs() < 0.02 * p.c2m_ns, "{p:?}");
        assert!(p.c2m_gbs > 1.05 * ample.c2m_gbs, "{p:?}, {ample:?}");
    }

    /// Credits of PCIe are held for the flights as well: 16 lines in 300 + 376 ns, and in 265 + 456 ns where they read.
    #[test]
    fn credits_of_pcie_bind_over_the_time_that_they_are_held() {
        for (q, stays, beyond) in [(1, 300.0, 376.0), (2, 265.0, 456.0)] {
            let o = Offered { pcie_credits: 16.0, pcie_ns: beyond, ..quadrant(q, 0.0) };
            let p = host().predict(&o);
            let waits = p.p2m_ns - stays;
            assert!((p.p2m_gbs - 16.0 * 64.0 / (stays + waits + beyond)).abs() < 1e-6 && waits < 10.0, "{p:?}");
            let ample = host().predict(&Offered { pcie_credits: 1e4, ..o });
            assert_eq!(ample.p2m_gbs, 14.0);
        }
    }

    /// In quadrant 3 the device's writes wait until no more of them come than the channels carry, whichever credits bind.
    #[test]
    fn a_wait_for_the_write_queue_counts_for_credits_of_pcie() {
        let p = host().predict(&Offered { pcie_credits: 100.0, pcie_ns: 373.0, ..quadrant(3, 6.0) });
        assert!((p.p2m_gbs - 100.0 * 64.0 / (p.p2m_ns + 373.0)).abs() < 1e-3 && p.p2m_ns > 400.0, "{p:?}");
        assert!(p.p2m_gbs * p.p2m_ns < 92.0 * 64.0, "{p:?}");
    }

    /// Where both sides write more than the channels carry, turns give each of them half; a side that writes less than half
    /// loses nothing.
    #[test]
    fn writes_in_turn_leave_each_side_its_half() {
        let fair = PredictHost { writes_in_turn: true, ..host() };
        for cores in [6.0, 12.0] {
            let p = fair.predict(&quadrant(3, cores));
            assert!((p.p2m_gbs / p.c2m_gbs - 1.0).abs() < 0.02, "{cores} cores: {p:?}");
            let little = fair.predict(&Offered { device_gbs: 8.0, ..quadrant(3, cores) });
            assert!((little.p2m_gbs - 8.0).abs() < 1e-6, "{cores} cores: {little:?}");
            let waiting = p.write_wait_ns * p.p2m_gbs / 64.0;
            assert!(waiting < 82.0 && p.p2m_gbs * p.p2m_ns < 92.0 * 64.0 * 1.001, "{p:?}");
        }
        let one = (fair.predict(&quadrant(3, 1.0)), host().predict(&quadrant(3, 1.0)));
        assert!((one.0.c2m_gbs / one.1.c2m_gbs - 1.0).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn channels_are_never_asked_for_more_than_they_carry() {
        for q in 1..=4 {
            for cores in [1.0, 3.0, 6.0, 40.0] {
                let p = host().predict(&quadrant(q, cores));
                let lines = p.c2m_gbs * if q >= 3 { 2.0 } else { 1.0 } + p.p2m_gbs;
                assert!(lines <= 2.0 * 64.0 / 2.73 && p.utilisation <= 1.0, "{q} {cores} {p:?}");
                assert!(p.c2m_gbs * p.c2m_ns <= cores * 12.0 * 64.0 * 1.001, "{q} {cores} {p:?}");
            }
        }
    }

    #[test]
    fn only_quadrant_3_is_red_and_only_from_four_cores_on() {
        for q in 1..=4 {
            for cores in 1..=6 {
                let p = host().predict(&quadrant(q, f64::from(cores)));
                let alone = host().predict(&alone(q, f64::from(cores)));
                let red = p.p2m_gbs < 14.0 / 1.03;
                // Section 2.2 names three cores as the border of quadrant 3, where the loss is 6 %.
                assert!(red == (q == 3 && cores >= 4) || (q, cores) == (3, 3), "{q} {cores} {p:?}");
                assert!(alone.c2m_gbs > 1.03 * p.c2m_gbs, "cores lose everywhere: {q} {cores} {p:?}");
            }
        }
    }

    #[test]
    fn writes_wait_at_the_cha_before_anybody_waits_for_it() {
        let p = host().predict(&quadrant(3, 6.0));
        let waiting = p.write_wait_ns * (p.c2m_gbs + p.p2m_gbs) / 64.0;
        assert!((waiting - 162.0).abs() < 1.0 && p.admission_ns > 0.0, "{p:?}");
        // A larger buffer at the CHA takes more writes before the cores lose throughput, at the device's expense.
        let larger = PredictHost { cha_buffer: 250.0, ..host() }.predict(&quadrant(3, 6.0));
        assert!(larger.admission_ns < p.admission_ns, "{larger:?}");
        assert!(larger.c2m_gbs > p.c2m_gbs && larger.p2m_gbs < p.p2m_gbs, "{larger:?}");
    }

    #[test]
    fn writes_that_give_way_cost_reads_little_until_they_fill_the_gaps() {
        let stubborn = PredictHost { writes_yield: false, ..host() };
        let gain = |cores| host().predict(&quadrant(3, cores)).c2m_gbs / stubborn.predict(&quadrant(3, cores)).c2m_gbs;
        assert!(
            gain(1.0) > 1.1 && gain(1.0) > gain(2.0) && gain(6.0) < 1.01,
            "{} {} {}",
            gain(1.0),
            gain(2.0),
            gain(6.0)
        );
    }

    #[test]
    fn a_buffer_that_stays_empty_for_a_while_is_time_lost() {
        let h = PredictHost { lfb_credits: 0.12, lfb_retry_ns: 14.4, ..host() };
        let at_once = PredictHost { lfb_retry_ns: 0.0, ..h }.predict(&alone(1, 1.0));
        let p = h.predict(&alone(1, 1.0));
        assert!((p.c2m_gbs / at_once.c2m_gbs - at_once.c2m_ns / (at_once.c2m_ns + 14.4)).abs() < 1e-3, "{p:?}");
        assert!((p.c2m_ns / at_once.c2m_ns - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_kernel_s_lines_cost_nothing_while_the_llc_holds_them() {
        // Half of the kernel's lines are written between two uses of a page's structure; the LLC has 405,504 lines.
        let with = |q, kernel_lines| {
            let o = Offered { kernel_reads: 3.0 / 64.0, kernel_writes: 2.875 / 64.0, kernel_lines, ..quadrant(q, 3.0) };
            host().predict(&o)
        };
        let (q1, q3) = (host().predict(&quadrant(1, 3.0)), host().predict(&quadrant(3, 3.0)));
        assert_eq!(with(1, 800_000.0).c2m_gbs, q1.c2m_gbs);
        let cold = with(1, 820_000.0);
        assert!(cold.c2m_gbs < q1.c2m_gbs && cold.row_miss_ratio > q1.row_miss_ratio + 0.02, "{cold:?}");
        // Beside cores that store, the LLC's contents are replaced sooner.
        assert!(with(3, 800_000.0).c2m_gbs < q3.c2m_gbs);
    }

    #[test]
    fn small_pages_open_more_rows() {
        let with = |run| host().predict(&Offered { core_run: run, ..alone(1, 1.0) });
        // 64 lines over two channels and four banks leave 8 lines in a row.
        assert!((with(64.0).row_miss_ratio - 1.0 / 8.0).abs() < 1e-12);
        assert!(with(64.0).c2m_gbs < with(32768.0).c2m_gbs);
    }

    #[test]
    fn more_of_anything_never_hurts_its_owner() {
        for q in 1..=4 {
            let c2m = |h: &PredictHost| h.predict(&quadrant(q, 4.0)).c2m_gbs;
            assert!(c2m(&PredictHost { channels: 4.0, ..host() }) > c2m(&host()));
            assert!(c2m(&PredictHost { c2m_read_ns: 90.0, ..host() }) < c2m(&host()) * 1.0001);
        }
    }
}
