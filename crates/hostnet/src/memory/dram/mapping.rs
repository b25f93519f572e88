//! Address mapping: from a line number to channel, bank, row and column.

use super::standards::DeviceWidth;
use super::{ChannelShape, DramSpec};
use crate::kernel::{Int, LineAddr};
use serde::Serialize;

/// Place of a line within its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Number of the bank over all ranks and bank groups of the channel: `(rank * groups + group) * banks_per_group +
    /// bank`.
    pub bank: u8,
    /// Number of the row within the bank.
    pub row: u32,
    /// Number of the line within the row.
    pub column: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    shift: u32,
    mask: u64,
}

impl Field {
    #[inline]
    fn of(self, x: u64) -> u64 {
        (x >> self.shift) & self.mask
    }
}

/// Mapping functions of particular controllers that are not composed of address fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    Skylake,
    SkylakeSp { fine: bool },
    Zsim,
}

impl Vendor {
    fn named(order: &str) -> Option<Vendor> {
        match order.to_ascii_lowercase().as_str() {
            "skylake" => Some(Vendor::Skylake),
            "skylake_sp" => Some(Vendor::SkylakeSp { fine: false }),
            "skylake_sp_fine" => Some(Vendor::SkylakeSp { fine: true }),
            "zsim" => Some(Vendor::Zsim),
            _ => None,
        }
    }
}

/// A compiled mapping: five shifts and masks per line, and one additional multiplication when the number of channels is
/// not a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapper {
    channels: u64,
    /// Reciprocal 2^64 / channels, rounded up, for division by multiplication; 0 for powers of two.
    reciprocal: u64,
    /// Number of consecutive lines on one channel, as a shift of the line number.
    channel_shift: u32,
    channel_bits: u32,
    channel_hash: bool,
    column: Field,
    column_high: Field,
    column_low_bits: u32,
    rank: Field,
    group: Field,
    bank: Field,
    row: Field,
    mop: bool,
    vendor: Option<Vendor>,
    bank_hash: bool,
    group_bits: u32,
    bank_bits: u32,
    rank_bits: u32,
}

fn log2(n: u32) -> u32 {
    n.trailing_zeros()
}

impl Mapper {
    /// Compiles `order`, which lists the address fields from the top bit down by two letters each: `ro ra bg ba co ch`,
    /// where `ba` stands for bank and group if `bg` is absent. Other orders are `MOP4CLXOR`, `skylake`, `skylake_sp`
    /// and `skylake_sp_fine` (see `skylake` and `skylake_sp`), and `zsim` (see `folded`).
    ///
    /// # Errors
    /// Fails with one sentence about the order when a field is unknown, missing or duplicated, or when the row is not on
    /// top.
    pub fn new(
        order: &str,
        channels: u32,
        channel_hash: bool,
        bank_hash: bool,
        shape: &ChannelShape,
    ) -> Result<Mapper, String> {
        let mop = order.eq_ignore_ascii_case("MOP4CLXOR");
        let vendor = Vendor::named(order);
        let lower = if mop || vendor.is_some() { "robabgracoch".to_string() } else { order.to_ascii_lowercase() };
        let fields = split(&lower).ok_or_else(|| {
            format!(
                "mapping = \"{order}\" is none; give ro, ra, bg, ba, co, ch in some order from the top bit down (such as \
                 \"rorababgcoch\"), or MOP4CLXOR, skylake, skylake_sp, skylake_sp_fine, zsim"
            )
        })?;
        if fields.first() != Some(&"ro") && fields.first() != Some(&"ch") {
            return Err(format!("mapping = \"{order}\" must have the row (ro) on top, as in \"rorababgcoch\""));
        }
        let has_group = fields.contains(&"bg");
        let (gb, bb, rb) = (log2(shape.bank_groups), log2(shape.banks_per_group), log2(shape.ranks));
        let cb = log2(shape.lines_per_row);
        let mut m = Mapper {
            channels: u64::from(channels),
            reciprocal: if channels.is_power_of_two() { 0 } else { u64::MAX / u64::from(channels) + 1 },
            channel_shift: 0,
            channel_bits: if channels.is_power_of_two() { log2(channels) } else { 0 },
            channel_hash,
            column: Field::default(),
            column_high: Field::default(),
            column_low_bits: 0,
            rank: Field::default(),
            group: Field::default(),
            bank: Field::default(),
            row: Field::default(),
            mop,
            vendor,
            bank_hash,
            group_bits: gb,
            bank_bits: bb,
            rank_bits: rb,
        };
        let mut pos = 0;
        let take = |pos: &mut u32, bits: u32| {
            let f = Field { shift: *pos, mask: (1u64 << bits) - 1 };
            *pos += bits;
            f
        };
        if mop {
            // Four lines of a row, then rank, group and bank, then the other column bits.
            m.column = take(&mut pos, 2);
            m.rank = take(&mut pos, rb);
            m.group = take(&mut pos, gb);
            m.bank = take(&mut pos, bb);
            m.column_high = take(&mut pos, cb - 2);
            m.column_low_bits = 2;
            m.row = Field { shift: pos, mask: u64::from(u32::MAX) };
            return Ok(m);
        }
        for f in fields.iter().rev() {
            match *f {
                "co" => m.column = take(&mut pos, cb),
                "ra" => m.rank = take(&mut pos, rb),
                "bg" => m.group = take(&mut pos, gb),
                "ba" => {
                    if !has_group {
                        m.group = take(&mut pos, gb);
                    }
                    m.bank = take(&mut pos, bb);
                }
                "ch" => m.channel_shift = pos,
                _ => m.row = take(&mut pos, if fields[0] == "ro" { 32 } else { log2(shape.rows) }),
            }
        }
        Ok(m)
    }

    /// Channel of a line, and the number of the line within the channel.
    #[inline]
    pub fn channel(&self, line: LineAddr) -> (usize, u64) {
        let LineAddr(line) = line;
        match self.vendor {
            None => {}
            Some(Vendor::Skylake) => return ((line & SKYLAKE_CHANNEL).count_ones().to_usize() & 1, line),
            Some(Vendor::Zsim) => return ((folded(line) % self.channels).to_usize(), line),
            Some(Vendor::SkylakeSp { .. }) => {
                let high = line >> SP_GRANULE;
                let inner = high >> self.channel_bits << SP_GRANULE | line & ((1 << SP_GRANULE) - 1);
                return ((high & (self.channels - 1)).to_usize(), inner);
            }
        }
        let low = line & ((1u64 << self.channel_shift) - 1);
        let high = line >> self.channel_shift;
        if self.reciprocal == 0 {
            let inner = high >> self.channel_bits;
            let mut ch = high & (self.channels - 1);
            if self.channel_hash {
                // Row and bank bits spread strides that are multiples of the number of channels.
                let mut h = inner;
                h ^= h >> 24;
                h ^= h >> 12;
                h ^= h >> 6;
                h ^= h >> 3;
                ch = (ch ^ h) & (self.channels - 1);
            }
            return (ch.to_usize(), (inner << self.channel_shift) | low);
        }
        // The result is exact for high < 2^64 / channels, that is for every address below 2^58 bytes.
        let inner = ((u128::from(high) * u128::from(self.reciprocal)) >> 64).to_u64();
        let mut ch = high - inner * self.channels;
        if self.channel_hash {
            ch += crate::kernel::rng::mix(inner) % self.channels;
            if ch >= self.channels {
                ch -= self.channels;
            }
        }
        (ch.to_usize(), (inner << self.channel_shift) | low)
    }

    /// Bank, row and column of the line with number `inner` within its channel.
    #[inline]
    pub fn decode(&self, inner: u64) -> Decoded {
        match self.vendor {
            None => {}
            Some(Vendor::Skylake) => return skylake(inner),
            Some(Vendor::Zsim) => return zsim(inner, self.group_bits + self.bank_bits, self.rank_bits),
            Some(Vendor::SkylakeSp { fine }) => return skylake_sp(inner, self.rank_bits, fine),
        }
        let mut row = self.row.of(inner);
        let column = self.column.of(inner) | (self.column_high.of(inner) << self.column_low_bits);
        let mut rank = self.rank.of(inner);
        let mut group = self.group.of(inner);
        let mut bank = self.bank.of(inner);
        if self.mop {
            rank ^= column & ((1 << self.rank_bits) - 1);
            group ^= (column >> self.rank_bits) & ((1 << self.group_bits) - 1);
            bank ^= (column >> (self.rank_bits + self.group_bits)) & ((1 << self.bank_bits) - 1);
            // Ramulator's version folds the remaining column bits into the row as well.
            row ^= column >> (self.rank_bits + self.group_bits + self.bank_bits);
        }
        if self.bank_hash {
            // Permutation-based interleaving (Zhang, Zhu, Zhang, MICRO 2000).
            group ^= row & ((1 << self.group_bits) - 1);
            bank ^= (row >> self.group_bits) & ((1 << self.bank_bits) - 1);
        }
        Decoded {
            bank: ((((rank << self.group_bits) | group) << self.bank_bits) | bank).to_u8(),
            row: row.low_u32(),
            column: column.to_u32(),
        }
    }
}

/// Line-number bits 2, 3, 6, 7, 12 and 13: address bits 8, 9, 12, 13, 18 and 19.
const SKYLAKE_CHANNEL: u64 = 0b11_0000_1100_1100;

/// XOR functions of Intel's Skylake with two channels of two-rank DDR4 (Pessl et al., "DRAMA", USENIX Security 2016):
/// bank group bit 0 is address bits 7 ^ 14, group bit 1 is 15 ^ 19, the rank is 16 ^ 20, and the bank is 17 ^ 21 and 18
/// ^ 22.
#[inline]
fn skylake(line: u64) -> Decoded {
    let folded = line ^ line >> 4; // bits 9 to 12 of the line number with 13 to 16
    let group = ((line >> 1 ^ line >> 8) & 1) | (folded >> 9 & 1) << 1;
    let rank = folded >> 10 & 1;
    let bank = folded >> 11 & 3;
    let column = (line & 3) | (line >> 3 & 31) << 2;
    Decoded { bank: (rank << 4 | group << 2 | bank).to_u8(), row: (line >> 13).low_u32(), column: column.to_u32() }
}

/// Number of consecutive lines on one channel of `skylake_sp`, 256 B, as a shift.
const SP_GRANULE: u32 = 2;

/// Mapping for open pages on Skylake, Cascade Lake and Cooper Lake servers, as Linux decodes addresses from errors
/// (`skx_edac`, by Intel). Channels alternate every 256 B, and ranks every 8 KiB of a channel. Within the rank the bank
/// group is bits 13 ^ 20 and 17 ^ 21, and the bank is 18 ^ 22 and 19 ^ 23, so that 8 KiB of a channel lie in one row.
/// With fine grain the first group bit is 6 ^ 20, and 16 KiB lie in rows of two groups.
#[inline]
fn skylake_sp(inner: u64, rank_bits: u32, fine: bool) -> Decoded {
    let rank = inner >> 7 & ((1 << rank_bits) - 1);
    let line = inner >> (7 + rank_bits) << 7 | inner & 127;
    let (first, column) = if fine { (line & 1, line >> 1 & 127) } else { (line >> 7 & 1, line & 127) };
    let group = (first | line >> 10 & 2) ^ line >> 14 & 3;
    let bank = line >> 12 & 3 ^ line >> 16 & 3;
    let row = line >> 14 << 3 | line >> 8 & 7;
    Decoded { bank: (rank << 4 | group << 2 | bank).to_u8(), row: row.low_u32(), column: column.to_u32() }
}

/// A mapping of address fields, which suits every organisation.
const ANY: &str = "rorabacobgch";

/// Checks that a processor's mapping suits memory `m` with channels of shape `s`.
///
/// # Errors
/// Fails with one clause that begins with the key and the value that do not suit it.
pub(super) fn check(m: &DramSpec, s: &ChannelShape) -> Result<(), String> {
    let Some(v) = Vendor::named(&m.mapping) else { return Ok(()) };
    let (mapping, q) = (&m.mapping, &m.quirks);
    let instead = |key: &str| format!("; set another {key}, or a mapping of address fields such as \"{ANY}\"");
    let hashes = [("channel_hash", q.channel_hash), ("bank_hash", q.bank_hash)];
    if let Some((key, _)) = hashes.into_iter().find(|(_, on)| *on) {
        let whose = q.preset.map_or(String::new(), |p| format!(", which quirks.preset = {} may set,", shown(p)));
        return Err(format!(
            "quirks.{key} = true{whose} does not go with mapping = \"{mapping}\", which is a hash itself; set quirks.{key} = false, \
             or a mapping of address fields such as \"{ANY}\""
        ));
    }
    if v == Vendor::Zsim {
        return Ok(());
    }
    if (s.bank_groups, s.banks_per_group, s.lines_per_row) != (4, 4, 128) {
        let (key, value) = match (q.bank_groups, q.banks_per_group, m.standard.device(DeviceWidth::X8).lines_per_row) {
            (_, _, lines) if lines != 128 => ("standard", shown(m.standard)),
            (0 | 4, 0 | 4, _) => ("device_width", shown(m.device_width)),
            (0 | 4, n, _) => ("quirks.banks_per_group", n.to_string()),
            (n, ..) => ("quirks.bank_groups", n.to_string()),
        };
        return Err(format!(
            "{key} = {value} does not go with mapping = \"{mapping}\", which is for the 4 groups of 4 banks of x8 DDR4{}",
            instead(key)
        ));
    }
    let suits = match v {
        Vendor::Skylake => [("channels", m.channels, m.channels == 2, "2"), ("ranks", s.ranks, s.ranks == 2, "2")],
        _ => [
            ("channels", m.channels, m.channels.is_power_of_two(), "1, 2, 4, 8 or 16"),
            ("ranks", s.ranks, s.ranks <= 4, "1, 2 or 4"),
        ],
    };
    match suits.into_iter().find(|(_, _, suits, _)| !suits) {
        Some((key, n, _, valid)) => Err(format!(
            "{key} = {n} does not go with mapping = \"{mapping}\", which is for {valid} {key}{}",
            instead(key)
        )),
        None => Ok(()),
    }
}

/// A choice as a scenario writes it, in quotes.
fn shown(choice: impl Serialize) -> String {
    serde_json::to_string(&choice).unwrap_or_default()
}

/// XOR of a line number's 16-bit groups, with which zsim selects one of several banks or controllers.
#[inline]
fn folded(line: u64) -> u64 {
    (line ^ line >> 16 ^ line >> 32 ^ line >> 48) & 0xffff
}

/// zsim's order rank:col:bank, applied to the whole line number including the channel's bits (`splitAddrs = false`):
/// the bank is lowest, then 1024 columns, then the rank; the row is on top.
#[inline]
fn zsim(line: u64, bank_bits: u32, rank_bits: u32) -> Decoded {
    let bank = line & ((1 << bank_bits) - 1);
    let column = line >> bank_bits & 1023;
    let rank = line >> (bank_bits + 10) & ((1 << rank_bits) - 1);
    Decoded {
        bank: (rank << bank_bits | bank).to_u8(),
        row: (line >> (bank_bits + 10 + rank_bits)).low_u32(),
        column: column.to_u32(),
    }
}

/// Two-letter fields of `order`, or None when one is unknown, duplicated or missing.
fn split(order: &str) -> Option<Vec<&str>> {
    const KNOWN: [&str; 6] = ["ro", "ra", "bg", "ba", "co", "ch"];
    if !order.is_ascii() || order.len() % 2 != 0 {
        return None;
    }
    let fields: Vec<&str> = (0..order.len() / 2).map(|i| &order[2 * i..2 * i + 2]).collect();
    let once = |f: &&str| fields.iter().filter(|g| *g == f).count() == 1;
    let complete = KNOWN.iter().all(|k| *k == "bg" || fields.contains(k));
    (complete && fields.iter().all(|f| KNOWN.contains(f) && once(f))).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapper() -> Mapper {
        let shape = ChannelShape { ranks: 2, bank_groups: 4, banks_per_group: 4, lines_per_row: 128, rows: 1 << 16 };
        Mapper::new("skylake", 2, false, false, &shape).expect("its shape")
    }

    /// The published functions, written with address bits.
    #[test]
    fn skylake_follows_the_published_functions() {
        let m = mapper();
        for i in 0..4096u64 {
            let line = crate::kernel::rng::mix(i) >> 36;
            let a = |bit: u32| (line << 6) >> bit & 1;
            let (ch, inner) = m.channel(LineAddr(line));
            assert_eq!(ch as u64, a(8) ^ a(9) ^ a(12) ^ a(13) ^ a(18) ^ a(19));
            let group = (a(7) ^ a(14)) | (a(15) ^ a(19)) << 1;
            let bank = (a(17) ^ a(21)) | (a(18) ^ a(22)) << 1;
            let rank = a(16) ^ a(20);
            assert_eq!(u64::from(m.decode(inner).bank), rank << 4 | group << 2 | bank);
        }
    }

    /// Linux's decoding (`skx_edac`) of open pages, written with address bits.
    #[test]
    fn skylake_sp_follows_the_published_functions() {
        for (name, fine) in [("skylake_sp", false), ("skylake_sp_fine", true)] {
            for (channels, ranks) in [(1u64, 1u64), (2, 2), (4, 2), (8, 4)] {
                let shape = ChannelShape {
                    ranks: ranks as u32,
                    bank_groups: 4,
                    banks_per_group: 4,
                    lines_per_row: 128,
                    rows: 1 << 16,
                };
                let m = Mapper::new(name, channels as u32, false, false, &shape).expect("its shape");
                for i in 0..2048u64 {
                    let address = crate::kernel::rng::mix(i) >> 30 << 6;
                    let (ch, inner) = m.channel(LineAddr(address >> 6));
                    assert_eq!(ch as u64, (address >> 8) % channels);
                    let of_channel = ((address >> 8) / channels) << 8 | address & 255;
                    let of_rank = ((of_channel >> 13) / ranks) << 13 | of_channel & 8191;
                    let a = |bit: u32| of_rank >> bit & 1;
                    let group = (a(if fine { 6 } else { 13 }) ^ a(20)) | (a(17) ^ a(21)) << 1;
                    let bank = (a(18) ^ a(22)) | (a(19) ^ a(23)) << 1;
                    let d = m.decode(inner);
                    assert_eq!(u64::from(d.bank), ((of_channel >> 13) % ranks) << 4 | group << 2 | bank);
                    let column = if fine { of_rank >> 7 & 127 } else { of_rank >> 6 & 127 };
                    assert_eq!(u64::from(d.column), column);
                }
            }
        }
    }

    /// The fields as the log of a published run prints them for rank:col:bank: bank bits 2:0, column 12:3, rank 14:13,
    /// row from 15.
    #[test]
    fn zsim_keeps_the_bits_of_the_channel_in_the_bank() {
        let shape = ChannelShape { ranks: 4, bank_groups: 2, banks_per_group: 4, lines_per_row: 128, rows: 1 << 16 };
        for channels in [4u64, 8] {
            let m = Mapper::new("zsim", channels as u32, false, false, &shape).expect("any shape");
            for i in 0..2048u64 {
                let line = crate::kernel::rng::mix(i) >> 26;
                let groups = [line & 0xffff, line >> 16 & 0xffff, line >> 32];
                let (ch, inner) = m.channel(LineAddr(line));
                assert_eq!(ch as u64, (groups[0] ^ groups[1] ^ groups[2]) % channels);
                let d = m.decode(inner);
                assert_eq!(u64::from(d.bank), (line >> 13 & 3) * 8 + line % 8);
                assert_eq!((u64::from(d.column), u64::from(d.row)), (line >> 3 & 1023, line >> 15 & 0xffff_ffff));
            }
        }
    }

    #[test]
    fn skylake_sp_gives_every_line_a_place_of_its_own() {
        for name in ["skylake_sp", "skylake_sp_fine"] {
            let shape =
                ChannelShape { ranks: 2, bank_groups: 4, banks_per_group: 4, lines_per_row: 128, rows: 1 << 16 };
            let m = Mapper::new(name, 2, false, false, &shape).expect("its shape");
            let mut seen = std::collections::HashSet::new();
            for line in 0..1 << 20 {
                let (ch, inner) = m.channel(LineAddr(line));
                let d = m.decode(inner);
                assert!(d.bank < 32 && d.column < 128 && seen.insert((ch, d.bank, d.row, d.column)), "{line}");
            }
        }
    }

    #[test]
    fn skylake_gives_every_line_a_place_of_its_own() {
        let m = mapper();
        let mut seen = std::collections::HashSet::new();
        for line in 0..1 << 17 {
            let (ch, inner) = m.channel(LineAddr(line));
            let d = m.decode(inner);
            assert!(d.bank < 32 && d.column < 128 && seen.insert((ch, d.bank, d.row, d.column)), "{line}");
        }
    }
}
