//! Quantities with their unit in the type. In TOML and JSON a quantity is a string ("36 MiB", "3.2 GHz", "15 us"), so
//! that a size can never be read as a time.

use super::{Int, Time};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

macro_rules! quantity {
    (
        $(#[$doc:meta])* $name:ident, $what:literal, $example:literal, [$(($unit:literal, $scale:expr)),+ $(,)?]
        $(, also [$(($other:literal, $of:expr)),+ $(,)?])?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// Units, with which values are printed.
            const UNITS: &'static [(&'static str, u64)] = &[$(($unit, $scale)),+];
            /// Other spellings of units that people write.
            const ALSO: &'static [(&'static str, u64)] = &[$($(($other, $of)),+)?];

            /// Parses a number followed by a unit.
            ///
            /// # Errors
            /// Fails with one clause that says what was expected, when the unit is unknown or the number is negative,
            /// not finite or not a whole number of base units.
            pub fn parse(s: &str) -> Result<$name, String> {
                parse(s, Self::UNITS, Self::ALSO).map($name).map_err(|why| {
                    format!(concat!("expected ", $what, " such as \"", $example, "\", not \"{}\"{}"), s, why)
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&print(self.0, Self::UNITS))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.to_string())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<$name, D::Error> {
                struct V;
                impl de::Visitor<'_> for V {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, " with its unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: de::Error>(self, s: &str) -> Result<$name, E> {
                        $name::parse(s).map_err(E::custom)
                    }
                }
                d.deserialize_any(V)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units: Vec<&str> = Self::UNITS.iter().chain(Self::ALSO).map(|u| u.0).collect();
                json_schema!({
                    "type": "string",
                    "description": concat!($what, " with its unit"),
                    "examples": [$example],
                    "pattern": format!(r"^[0-9][0-9_.]*\s*({})$", units.join("|"))
                })
            }
        }
    };
}

/// Shares as scenarios give them: a number, or a percentage such as "2 %".
pub mod share {
    use schemars::{json_schema, Schema, SchemaGenerator};
    use serde::{de, Deserializer};
    use std::fmt;

    struct ShareReader;

    impl<'de> de::Visitor<'de> for ShareReader {
        type Value = Option<f64>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number such as 0.02, or a percentage such as \"2 %\"")
        }
        fn visit_f64<E: de::Error>(self, x: f64) -> Result<Option<f64>, E> {
            Ok(Some(x))
        }
        fn visit_u64<E: de::Error>(self, n: u64) -> Result<Option<f64>, E> {
            Ok(Some(super::Int::to_f64(n)))
        }
        fn visit_i64<E: de::Error>(self, n: i64) -> Result<Option<f64>, E> {
            Ok(Some(super::Int::to_f64(n)))
        }
        fn visit_str<E: de::Error>(self, s: &str) -> Result<Option<f64>, E> {
            let number = s.trim().strip_suffix('%').and_then(|n| n.trim_end().parse::<f64>().ok());
            match number.filter(|n| n.is_finite()) {
                Some(n) => Ok(Some(n / 100.0)),
                None => Err(E::invalid_value(de::Unexpected::Str(s), &self)),
            }
        }
        fn visit_unit<E: de::Error>(self) -> Result<Option<f64>, E> {
            Ok(None)
        }
        fn visit_none<E: de::Error>(self) -> Result<Option<f64>, E> {
            Ok(None)
        }
    }

    /// Reads a share.
    ///
    /// # Errors
    /// Fails with one clause that says what was expected.
    pub fn read<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        let given = read_optional(d)?;
        given.ok_or_else(|| de::Error::invalid_type(de::Unexpected::Unit, &ShareReader))
    }

    /// Reads a share that may be absent.
    ///
    /// # Errors
    /// Fails with one clause that says what was expected.
    pub fn read_optional<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
        d.deserialize_any(ShareReader)
    }

    /// Schema of a share.
    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "title": "share", "examples": [0.02, "2 %"] })
    }

    /// Schema of a share that may be absent.
    pub fn schema_optional(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string", "null"], "title": "share", "examples": [0.02, "2 %"] })
    }
}

// The first unit of each list is the base unit. Parsing is case-sensitive: b is a bit and B is a byte. Prefixes of rates are
// taken in both cases, since nobody means a thousandth of a bit.
quantity!(
    /// A number of bytes.
    Size, "a size", "36 MiB",
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    also [("bytes", 1), ("byte", 1)]
);
quantity!(
    /// A span of time, in picoseconds.
    Span, "a time", "15 us",
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)],
    also [
        ("nsec", 1_000), ("usec", 1_000_000), ("\u{b5}s", 1_000_000), ("\u{3bc}s", 1_000_000),
        ("msec", 1_000_000_000), ("sec", 1_000_000_000_000)
    ]
);
quantity!(
    /// A clock frequency, in hertz.
    Freq, "a frequency", "3.2 GHz",
    [("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)]
);
quantity!(
    /// A rate of requests or packets per second.
    Rate, "a rate", "26 Mrps",
    [("pps", 1), ("kpps", 1_000), ("Mpps", 1_000_000), ("rps", 1), ("krps", 1_000), ("Mrps", 1_000_000)],
    also [("Kpps", 1_000), ("mpps", 1_000_000), ("Krps", 1_000), ("mrps", 1_000_000)]
);
quantity!(
    /// A rate of events per second.
    Pace, "a pace", "50 Mps",
    [("ps", 1), ("kps", 1_000), ("Mps", 1_000_000), ("Gps", 1_000_000_000)]
);
quantity!(
    /// A bandwidth in bits per second.
    Bandwidth, "a bandwidth", "100 Gbps",
    [("bps", 1), ("Kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000), ("Tbps", 1_000_000_000_000)],
    also [
        ("kbps", 1_000), ("mbps", 1_000_000), ("gbps", 1_000_000_000), ("tbps", 1_000_000_000_000),
        ("bit/s", 1), ("kbit/s", 1_000), ("Kbit/s", 1_000), ("mbit/s", 1_000_000), ("Mbit/s", 1_000_000),
        ("gbit/s", 1_000_000_000), ("Gbit/s", 1_000_000_000), ("tbit/s", 1_000_000_000_000),
        ("Tbit/s", 1_000_000_000_000), ("bits/sec", 1), ("Kbits/sec", 1_000), ("Mbits/sec", 1_000_000),
        ("Gbits/sec", 1_000_000_000), ("Tbits/sec", 1_000_000_000_000),
        ("b/s", 1), ("kb/s", 1_000), ("Kb/s", 1_000), ("mb/s", 1_000_000), ("Mb/s", 1_000_000), ("gb/s", 1_000_000_000),
        ("Gb/s", 1_000_000_000), ("tb/s", 1_000_000_000_000), ("Tb/s", 1_000_000_000_000), ("B/s", 8), ("kB/s", 8_000),
        ("KB/s", 8_000), ("mB/s", 8_000_000), ("MB/s", 8_000_000), ("gB/s", 8_000_000_000), ("GB/s", 8_000_000_000),
        ("tB/s", 8_000_000_000_000), ("TB/s", 8_000_000_000_000), ("KiB/s", 8 << 10), ("MiB/s", 8 << 20),
        ("GiB/s", 8 << 30), ("TiB/s", 8 << 40)
    ]
);

quantity!(
    /// A bandwidth in bytes per second.
    ByteRate, "a rate of bytes", "22.4 GB/s",
    [("B/s", 1), ("KB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000)],
    also [
        ("kB/s", 1_000), ("mB/s", 1_000_000), ("gB/s", 1_000_000_000), ("tB/s", 1_000_000_000_000),
        ("TB/s", 1_000_000_000_000), ("KiB/s", 1 << 10), ("MiB/s", 1 << 20), ("GiB/s", 1 << 30), ("TiB/s", 1 << 40)
    ]
);

/// An offered load: packets per second, or bits of their frames per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum OfferedRate {
    /// Packets per second.
    Packets(Rate),
    /// Bits of frames per second.
    Bits(Bandwidth),
}

impl OfferedRate {
    /// Parses a number followed by a unit of rate or bandwidth.
    ///
    /// # Errors
    /// Fails with one clause that says what was expected.
    pub fn parse(s: &str) -> Result<OfferedRate, String> {
        let bits = Bandwidth::parse(s).map(OfferedRate::Bits);
        Rate::parse(s).map(OfferedRate::Packets).or_else(|e| {
            let (units, more) = (e.contains("; units are "), Bandwidth::UNITS.iter().map(|u| u.0));
            bits.map_err(|b| match units {
                // The unit belongs to neither quantity, or the number is invalid for a bandwidth.
                true if b.contains("; units are ") => format!("{e}, {}", more.collect::<Vec<_>>().join(", ")),
                true => b,
                false => e,
            })
        })
    }

    /// Packets per second when a frame has `bytes` bytes on average.
    pub fn packets(self, bytes: f64) -> f64 {
        match self {
            OfferedRate::Packets(r) => r.0.to_f64(),
            OfferedRate::Bits(b) => b.0.to_f64() / (8.0 * bytes),
        }
    }

    /// Whether nothing is offered.
    pub fn is_zero(self) -> bool {
        matches!(self, OfferedRate::Packets(Rate(0)) | OfferedRate::Bits(Bandwidth(0)))
    }
}

impl fmt::Display for OfferedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OfferedRate::Packets(r) => r.fmt(f),
            OfferedRate::Bits(b) => b.fmt(f),
        }
    }
}

impl Serialize for OfferedRate {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for OfferedRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<OfferedRate, D::Error> {
        struct V;
        impl de::Visitor<'_> for V {
            type Value = OfferedRate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with its unit, such as \"26 Mrps\" or \"10 Gbps\"")
            }
            fn visit_str<E: de::Error>(self, s: &str) -> Result<OfferedRate, E> {
                OfferedRate::parse(s).map_err(E::custom)
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for OfferedRate {
    fn schema_name() -> Cow<'static, str> {
        "OfferedRate".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units: Vec<&str> =
            [Rate::UNITS, Rate::ALSO, Bandwidth::UNITS, Bandwidth::ALSO].concat().iter().map(|u| u.0).collect();
        json_schema!({
            "type": "string",
            "description": "a rate of packets or of the bits of their frames with its unit",
            "examples": ["26 Mrps", "10 Gbps"],
            "pattern": format!(r"^[0-9][0-9_.]*\s*({})$", units.join("|"))
        })
    }
}

impl From<Span> for Time {
    fn from(s: Span) -> Time {
        Time(s.0)
    }
}

fn parse(s: &str, units: &[(&str, u64)], also: &[(&str, u64)]) -> Result<u64, String> {
    let s = s.trim();
    let split = s.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(s.len());
    let (number, unit) = (s[..split].replace('_', ""), s[split..].trim());
    let list = || units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let Some(&(_, scale)) = units.iter().chain(also).find(|u| u.0 == unit) else {
        let grouped =
            unit.strip_prefix([',', 'e', 'E']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if grouped {
            return Err("; write the number without commas or exponents, such as 1_500_000".into());
        }
        // Prefixes of sizes are powers of 1024, which people leave out, and case matters.
        let bare = |u: &str| u.to_lowercase().replace('i', "");
        let meant = units.iter().find(|u| bare(u.0) == bare(unit) && !number.is_empty());
        let hint = meant.map_or(String::new(), |u| format!("; did you mean \"{number} {}\"", u.0));
        return Err(format!("; units are {}{hint}", list()));
    };
    let (whole, frac) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || frac.len() > 12 {
        return Err(String::new());
    }
    let whole: u64 = whole.parse().map_err(|_| String::new())?;
    let mut value = whole.checked_mul(scale).ok_or("; it is too large")?;
    if !frac.is_empty() {
        let digits: u128 = frac.parse().map_err(|_| String::new())?;
        let ten = 10u128.pow(frac.len().to_u32());
        if digits * u128::from(scale) % ten != 0 {
            return Err(format!("; it is not a whole number of {}", units[0].0));
        }
        value = value.checked_add((digits * u128::from(scale) / ten).to_u64()).ok_or("; it is too large")?;
    }
    Ok(value)
}

/// Shortest exact form of a value: uses the largest unit that leaves at most three decimals.
fn print(v: u64, units: &[(&str, u64)]) -> String {
    for &(unit, scale) in units.iter().rev() {
        if scale == 1 || v < scale {
            continue;
        }
        if v % scale == 0 {
            return format!("{} {unit}", v / scale);
        }
        if scale % 1000 == 0 && v % (scale / 1000) == 0 {
            let text = format!("{}.{:03}", v / scale, v % scale / (scale / 1000));
            return format!("{} {unit}", text.trim_end_matches('0'));
        }
    }
    format!("{v} {}", units[0].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_and_print_back() {
        assert_eq!(Size::parse("1.25 MiB").unwrap().0, 1_310_720);
        assert_eq!(Freq::parse("3.2 GHz").unwrap().0, 3_200_000_000);
        assert_eq!(Span::parse("13.75 ns").unwrap().0, 13_750);
        assert_eq!(Span::parse("100us").unwrap().0, 100_000_000);
        for text in ["36 MiB", "1280 KiB"] {
            assert_eq!(Size::parse(&Size::parse(text).unwrap().to_string()), Size::parse(text));
        }
        assert_eq!(Freq(3_200_000_000).to_string(), "3.2 GHz");
        assert_eq!(Rate::parse("26 Mpps").unwrap().to_string(), "26 Mrps");
    }

    #[test]
    fn a_rate_is_of_packets_or_of_bits() {
        // 14.88 Mpps of 64-byte frames are 7.62 Gb/s of frame bits.
        let (packets, bits) = (OfferedRate::parse("14.88 Mpps").unwrap(), OfferedRate::parse("10 Gbps").unwrap());
        assert_eq!((packets.packets(64.0), packets.packets(1518.0)), (14.88e6, 14.88e6));
        assert_eq!(bits.packets(64.0), 1e10 / 512.0);
        assert_eq!(bits.to_string(), "10 Gbps");
        let e = OfferedRate::parse("2 GHz").unwrap_err();
        assert!(
            e.contains("a rate such as") && e.contains("Mpps") && e.contains("Gbps") && e.contains("\"2 GHz\""),
            "{e}"
        );
        let e = OfferedRate::parse("0.1 bps").unwrap_err();
        assert!(e.contains("a whole number of bps"), "{e}");
    }

    #[test]
    fn times_and_sizes_read_as_people_write_them() {
        for text in ["1.5 us", "1.5us", "1.5 \u{b5}s", "1.5 \u{3bc}s", "1.5 usec", "1500 nsec", "0.0015 msec"] {
            assert_eq!(Span::parse(text), Ok(Span(1_500_000)), "{text}");
        }
        assert_eq!(Size::parse("1518 bytes"), Ok(Size(1518)));
        for (text, meant) in [("64KB", "64 KiB"), ("64 kB", "64 KiB"), ("1.5 MB", "1.5 MiB"), ("2 gb", "2 GiB")] {
            let e = Size::parse(text).unwrap_err();
            assert!(e.ends_with(&format!("did you mean \"{meant}\"")), "{e}");
        }
        assert!(Freq::parse("3.2 ghz").unwrap_err().ends_with("did you mean \"3.2 GHz\""));
        for text in ["1,500,000 pps", "3,000 Kpps", "1.5e6 pps", "20,5 Gbps"] {
            let e = OfferedRate::parse(text).unwrap_err();
            assert!(e.contains("without commas or exponents") && !e.contains("units are"), "{e}");
        }
    }

    /// A byte has 8 bits, and prefixes of rates are powers of ten.
    #[test]
    fn bandwidths_read_as_people_write_them() {
        for (text, bits) in [
            ("20 Gb/s", 20_000_000_000),
            ("20Gbit/s", 20_000_000_000),
            ("0.4 Tb/s", 400_000_000_000),
            ("64 kbps", 64_000),
            ("64 Kbps", 64_000),
            ("64 kb/s", 64_000),
            ("512 kbit/s", 512_000),
            ("9.6 Mb/s", 9_600_000),
            ("100 MB/s", 800_000_000),
            ("2.5 GB/s", 20_000_000_000),
            ("125 kB/s", 1_000_000),
            ("8 b/s", 8),
            ("8 B/s", 64),
            ("20 gb/s", 20_000_000_000),
            ("20gbps", 20_000_000_000),
            ("20 Gbit/s", 20_000_000_000),
            ("9.41 Gbits/sec", 9_410_000_000),
            ("100 mb/s", 100_000_000),
            ("100 mB/s", 800_000_000),
            ("20 gB/s", 160_000_000_000),
            ("1 KiB/s", 8 * 1024),
            ("3 GiB/s", 3 * 8 * 1024 * 1024 * 1024),
        ] {
            assert_eq!(Bandwidth::parse(text), Ok(Bandwidth(bits)), "{text}");
            assert_eq!(OfferedRate::parse(text), Ok(OfferedRate::Bits(Bandwidth(bits))), "{text}");
        }
        for (text, bytes) in [
            ("22.4 GB/s", 22_400_000_000),
            ("5 kB/s", 5_000),
            ("5 gB/s", 5_000_000_000),
            ("1 TB/s", 1_000_000_000_000),
            ("2 MiB/s", 2 * 1024 * 1024),
        ] {
            assert_eq!(ByteRate::parse(text), Ok(ByteRate(bytes)), "{text}");
        }
        assert_eq!(Bandwidth::parse("20 Gb/s").unwrap().to_string(), "20 Gbps");
        for packets in ["14.88 mpps", "14.88 Mpps", "14880 Kpps"] {
            assert_eq!(OfferedRate::parse(packets), Ok(OfferedRate::Packets(Rate(14_880_000))), "{packets}");
        }
        for neither in ["20 GBps", "20 GBPS", "20 Gib", "20 Gb"] {
            assert!(Bandwidth::parse(neither).is_err(), "{neither} is of bits or of bytes");
        }
        assert!(ByteRate::parse("20 Gb/s").is_err() && ByteRate::parse("20 gb/s").is_err(), "b is a bit");
    }

    #[test]
    fn a_wrong_unit_says_what_was_expected() {
        let e = Size::parse("36 GHz").unwrap_err();
        assert!(e.contains("a size") && e.contains("36 GHz") && e.contains("MiB"), "{e}");
        for bad in ["-1 ns", "ns", "1.2.3 ns", "0.1 ps", "", "9999999999999 s"] {
            assert!(Span::parse(bad).is_err(), "{bad}");
        }
    }
}
