//! Device standards as data: organisation and timing of one channel (or sub-channel, or pseudo-channel) of each memory
//! type. Timings are clock counts, so that they can be compared with the standard's speed-bin tables; `Timing` converts
//! them into picoseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory type and speed bin.
///
/// Sources: DDR4 JESD79-4C speed bins and the 8 Gb timing tables (also in Micron's MT40A1G8 / MT40A512M16 data sheet);
/// DDR5 JESD79-5B, 16 Gb x8; HBM2E JESD235D, whose core timings are vendor-specific, so that they are assumed from
/// public HBM2 models; LPDDR5 JESD209-5, bank-group mode, 16 Gb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Standard {
    /// DDR4 with a clock of 1200 MHz and timings 17-17-17.
    #[serde(rename = "DDR4-2400")]
    Ddr4_2400,
    /// DDR4 with a clock of 1333 MHz and timings 19-19-19.
    #[serde(rename = "DDR4-2666")]
    Ddr4_2666,
    /// DDR4 with a clock of 1467 MHz and timings 21-21-21.
    #[serde(rename = "DDR4-2933")]
    Ddr4_2933,
    /// DDR4 with a clock of 1600 MHz and timings 22-22-22.
    #[serde(rename = "DDR4-3200")]
    Ddr4_3200,
    /// DDR5 with a clock of 2400 MHz, timings 40-39-39, and two 32-bit sub-channels.
    #[serde(rename = "DDR5-4800")]
    Ddr5_4800,
    /// DDR5 with a clock of 2800 MHz, timings 46-45-45, and two 32-bit sub-channels.
    #[serde(rename = "DDR5-5600")]
    Ddr5_5600,
    /// HBM2E with 3.2 Gb/s per pin and 64-bit pseudo-channels, two to a channel.
    #[serde(rename = "HBM2E-3200")]
    Hbm2e3200,
    /// LPDDR5 with 6.4 Gb/s per pin and one 16-bit channel.
    #[serde(rename = "LPDDR5-6400")]
    Lpddr5_6400,
}

/// Width of one DRAM device in bits. The width determines the page size, and through it the number of banks, tRRD and
/// tFAW.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeviceWidth {
    /// 8 bits.
    #[serde(rename = "x8")]
    X8,
    /// 16 bits.
    #[serde(rename = "x16")]
    X16,
}

/// Organisation and timing of one scheduling channel of a standard. Times are clocks of `tck_ps` unless the name ends
/// in `_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DramDevice {
    /// Clock period (tCK) in picoseconds.
    pub tck_ps: u64,
    /// Number of independent command and data buses behind one channel of the configuration.
    pub subchannels: u32,
    /// Number of bank groups of a rank.
    pub bank_groups: u32,
    /// Number of banks of a bank group.
    pub banks_per_group: u32,
    /// Number of 64 B lines per open row (all devices of the rank together).
    pub lines_per_row: u32,
    /// Number of rows of a bank.
    pub rows: u32,
    /// Number of data-bus clocks that one 64 B line takes.
    pub burst: u64,
    /// Read command to data (CL).
    pub cl: u64,
    /// Write command to data (CWL).
    pub cwl: u64,
    /// Activate to column command (tRCD).
    pub rcd: u64,
    /// Precharge to activate (tRP).
    pub rp: u64,
    /// Activate to precharge (tRAS).
    pub ras: u64,
    /// Column command to column command in different bank groups (tCCD_S).
    pub ccd_s: u64,
    /// Column command to column command in one bank group (tCCD_L).
    pub ccd_l: u64,
    /// Write to write in one bank group (tCCD_L_WR).
    pub ccd_l_wr: u64,
    /// Activate to activate in different bank groups (tRRD_S).
    pub rrd_s: u64,
    /// Activate to activate in one bank group (tRRD_L).
    pub rrd_l: u64,
    /// Window in which a rank accepts at most four activates (tFAW).
    pub faw: u64,
    /// Read command to precharge (tRTP).
    pub rtp: u64,
    /// End of write data to precharge (tWR).
    pub wr: u64,
    /// End of write data to read command in different bank groups (tWTR_S).
    pub wtr_s: u64,
    /// End of write data to read command in one bank group (tWTR_L).
    pub wtr_l: u64,
    /// Bubble between a read burst and the following write burst.
    pub rtw: u64,
    /// Bubble between bursts of different ranks.
    pub cs: u64,
    /// Duration of a refresh (tRFC) in nanoseconds.
    pub rfc_ns: u64,
    /// Mean time between refreshes (tREFI) in nanoseconds.
    pub refi_ns: u64,
    /// Number of clocks for which an activate occupies the command bus.
    pub act_cycles: u64,
    /// Number of clocks for which a column command occupies the command bus.
    pub col_cycles: u64,
}

/// 8 Gb DDR4 of JESD79-4C with the values that all speed bins share; `device` fills in the others.
const DDR4: DramDevice = DramDevice {
    tck_ps: 0,
    subchannels: 1,
    bank_groups: 4,
    banks_per_group: 4,
    lines_per_row: 128,
    rows: 1 << 16,
    burst: 4,
    cl: 0,
    cwl: 0,
    rcd: 0,
    rp: 0,
    ras: 0,
    ccd_s: 4,
    ccd_l: 0,
    ccd_l_wr: 0,
    rrd_s: 4,
    rrd_l: 0,
    faw: 0,
    rtp: 0,
    wr: 0,
    wtr_s: 0,
    wtr_l: 0,
    rtw: 2,
    cs: 2,
    rfc_ns: 350,
    refi_ns: 7800,
    act_cycles: 1,
    col_cycles: 1,
};

impl Standard {
    /// Device data of this standard with devices of `width`.
    pub fn device(self, width: DeviceWidth) -> DramDevice {
        use Standard::*;
        let x16 = width == DeviceWidth::X16;
        // tRRD_S, tRRD_L, tFAW depend on the page size (1 KiB for x8, 2 KiB for x16).
        let ddr4 = |tck, bin: u64, cwl, ras, ccd_l, rtp, wr, wtr_s, wtr_l, act8: [u64; 3], act16: [u64; 3]| {
            let [rrd_s, rrd_l, faw] = if x16 { act16 } else { act8 };
            DramDevice {
                tck_ps: tck,
                bank_groups: if x16 { 2 } else { 4 },
                cl: bin,
                rcd: bin,
                rp: bin,
                cwl,
                ras,
                ccd_l,
                ccd_l_wr: ccd_l,
                rtp,
                wr,
                wtr_s,
                wtr_l,
                rrd_s,
                rrd_l,
                faw,
                ..DDR4
            }
        };
        // tFAW: 1 KiB page max(32 nCK, 13.3 / 11.4 ns), 2 KiB page max(40 nCK, 16.7 / 14.3 ns).
        let ddr5 = |tck, cl, rcd, ras, ccd_l, rtp, wr, wtr_s, wtr_l| DramDevice {
            tck_ps: tck,
            subchannels: 2,
            bank_groups: if x16 { 4 } else { 8 },
            banks_per_group: 4,
            lines_per_row: 64,
            rows: 1 << 16,
            burst: 8,
            cl,
            cwl: cl - 2,
            rcd,
            rp: rcd,
            ras,
            ccd_s: 8,
            ccd_l,
            ccd_l_wr: 2 * ccd_l,
            rrd_s: 8,
            rrd_l: ccd_l,
            faw: if x16 { 40 } else { 32 },
            rtp,
            wr,
            wtr_s,
            wtr_l,
            rtw: 2,
            cs: 2,
            rfc_ns: 295,
            refi_ns: 3900,
            act_cycles: 2,
            col_cycles: 2,
        };
        match self {
            Ddr4_2400 => ddr4(833, 17, 12, 39, 6, 9, 18, 3, 9, [4, 6, 26], [7, 8, 36]),
            Ddr4_2666 => ddr4(750, 19, 14, 43, 7, 10, 20, 4, 10, [4, 7, 28], [8, 9, 40]),
            Ddr4_2933 => ddr4(682, 21, 16, 47, 8, 11, 22, 4, 11, [4, 8, 31], [8, 10, 44]),
            Ddr4_3200 => ddr4(625, 22, 16, 52, 8, 12, 24, 4, 12, [4, 8, 34], [9, 11, 48]),
            Ddr5_4800 => ddr5(416, 40, 39, 77, 12, 18, 72, 6, 24),
            Ddr5_5600 => ddr5(357, 46, 45, 90, 14, 21, 84, 7, 28),
            // A line is two BL4 bursts of 32 B on a 64-bit pseudo-channel.
            Hbm2e3200 => DramDevice {
                tck_ps: 625,
                subchannels: 2,
                bank_groups: 4,
                banks_per_group: 4,
                lines_per_row: 16,
                rows: 1 << 15,
                burst: 4,
                cl: 23,
                cwl: 12,
                rcd: 23,
                rp: 23,
                ras: 53,
                ccd_s: 4,
                ccd_l: 6,
                ccd_l_wr: 6,
                rrd_s: 4,
                rrd_l: 7,
                faw: 26,
                rtp: 8,
                wr: 26,
                wtr_s: 5,
                wtr_l: 13,
                rtw: 2,
                cs: 2,
                rfc_ns: 350,
                refi_ns: 3900,
                act_cycles: 1,
                col_cycles: 1,
            },
            // Command clock of 800 MHz, BL32 on 16 pins.
            Lpddr5_6400 => DramDevice {
                tck_ps: 1250,
                subchannels: 1,
                bank_groups: 4,
                banks_per_group: 4,
                lines_per_row: 32,
                rows: 1 << 16,
                burst: 4,
                cl: 17,
                cwl: 9,
                rcd: 15,
                rp: 15,
                ras: 34,
                ccd_s: 4,
                ccd_l: 8,
                ccd_l_wr: 8,
                rrd_s: 4,
                rrd_l: 4,
                faw: 16,
                rtp: 6,
                wr: 28,
                wtr_s: 5,
                wtr_l: 10,
                rtw: 2,
                cs: 2,
                rfc_ns: 280,
                refi_ns: 3900,
                act_cycles: 2,
                col_cycles: 1,
            },
        }
    }
}
