//! Placement by a table: each class of lines that a device writes has a destination of its own, which a scenario names
//! without any code.

use super::{ddio, idio::IdioSpec, DataPlane, DeviceKind, DeviceTransfer, PlacementSpec, Settings, Ways};
use crate::memory::Inbound;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Destination of a class of lines, in the words of a scenario: "dram", "llc", "mlc", and the latter two with ways, such as
/// "llc 2-5".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Destination {
    /// DRAM; cached copies are invalidated.
    Dram,
    /// The LLC: these ways, or `placement.ways`.
    Llc(Option<Ways>),
    /// The L2 of the packet's core, by a hint, on the line's way through these ways of the LLC.
    Mlc(Option<Ways>),
}

impl TryFrom<String> for Destination {
    type Error = String;
    fn try_from(text: String) -> Result<Destination, String> {
        let (place, ways) = text.split_once(' ').map_or((&*text, None), |(place, ways)| (place, Some(ways)));
        let ways = ways.map(Ways::parse).transpose()?;
        match (place, ways) {
            ("dram", None) => Ok(Destination::Dram),
            ("dram", Some(_)) => Err(format!("\"{text}\": DRAM has no ways")),
            ("llc", ways) => Ok(Destination::Llc(ways)),
            ("mlc", ways) => Ok(Destination::Mlc(ways)),
            _ => Err(format!("\"{text}\" is no destination (valid: dram, llc, mlc, and ways such as \"llc 2-5\")")),
        }
    }
}

impl From<Destination> for String {
    fn from(d: Destination) -> String {
        d.to_string()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, ways) = match self {
            Destination::Dram => ("dram", &None),
            Destination::Llc(ways) => ("llc", ways),
            Destination::Mlc(ways) => ("mlc", ways),
        };
        f.write_str(place)?;
        ways.map_or(Ok(()), |w| write!(f, " {}-{}", w.first, w.first + w.count - 1))
    }
}

impl JsonSchema for Destination {
    fn schema_name() -> Cow<'static, str> {
        "Destination".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "destination of written lines: dram, llc or mlc, the latter two with ways where they are not placement.ways",
            "examples": ["dram", "llc", "mlc", "llc 2-5"],
            "pattern": r"^(dram|(llc|mlc)( [0-9]+(-[0-9]+)?)?)$"
        })
    }
}

/// Destination of each class of lines that devices write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TableSpec {
    /// First line of each packet, which holds its headers: "dram", "llc", "mlc" (the L2 of the packet's core), or the latter
    /// two with ways, such as "llc 2-5". "llc" by default.
    pub header: Destination,
    /// Other lines of each packet, and lines that RDMA NICs and SSDs write, which are for no core: "mlc" is "llc" for them. "llc"
    /// by default.
    pub payload: Destination,
    /// Other lines of packets of class 1, whose DSCP `placement.idio.class1_dscp` lists; as `payload` when absent.
    pub payload_class1: Option<Destination>,
    /// Used descriptors and completions that a NIC behind PCIe writes back. "llc" by default.
    pub descriptor: Destination,
}

impl Default for TableSpec {
    fn default() -> TableSpec {
        let llc = Destination::Llc(None);
        TableSpec { header: llc, payload: llc, payload_class1: None, descriptor: llc }
    }
}

impl TableSpec {
    /// The classes with their destinations; payload of class 1 has that of other payload where it has none of its own.
    fn classes(&self) -> [(&'static str, Destination); 4] {
        [
            ("header", self.header),
            ("payload", self.payload),
            ("payload_class1", self.payload_class1.unwrap_or(self.payload)),
            ("descriptor", self.descriptor),
        ]
    }

    /// Whether some class goes to the L2 of a core.
    pub fn hints(&self) -> bool {
        self.classes().iter().any(|(_, to)| matches!(to, Destination::Mlc(_)))
    }

    /// Whether destinations depend on the core, or on the code that stands for class 1 instead of a core.
    pub fn reads_codes(&self) -> bool {
        self.hints() || self.payload_class1.is_some()
    }

    fn check(&self, llc_ways: u32) -> Result<(), String> {
        for (class, to) in self.classes() {
            let (Destination::Llc(Some(w)) | Destination::Mlc(Some(w))) = to else { continue };
            if w.first + w.count > llc_ways {
                return Err(format!(
                    "placement.table.{class} = \"{to}\" is not within the LLC's ways, 0 to {}",
                    llc_ways - 1
                ));
            }
        }
        if let Some(to @ Destination::Mlc(_)) = self.payload_class1 {
            return Err(format!(
                "placement.table.payload_class1 = \"{to}\" has no core to go to: tags of these lines name none; give \"llc\" or \"dram\""
            ));
        }
        Ok(())
    }
}

/// The data plane of a table.
#[derive(Clone, Debug)]
pub struct Table {
    spec: TableSpec,
    /// Ways of the classes that name none.
    ways: Ways,
}

impl Table {
    fn inbound(&self, to: Destination, t: &DeviceTransfer) -> Inbound {
        let mask = |ways: Option<Ways>| ways.unwrap_or(self.ways).mask();
        match to {
            Destination::Dram => Inbound::Dram,
            Destination::Llc(ways) => Inbound::Llc { ways: mask(ways) },
            Destination::Mlc(ways) => match t.tag.core().filter(|_| t.device == DeviceKind::Nic) {
                Some(core) => Inbound::Hint { ways: mask(ways), core },
                None => Inbound::Llc { ways: mask(ways) },
            },
        }
    }
}

impl DataPlane for Table {
    fn new(s: &PlacementSpec) -> Table {
        Table { spec: s.table.clone().unwrap_or_default(), ways: s.ways }
    }
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        ddio::check_ways(s, llc_ways)?;
        let Some(table) = &s.table else {
            return Err(
                "placement.policy = \"table\" needs the table placement.table, such as { header = \"mlc\" }".into()
            );
        };
        if s.iat.is_some() {
            return Err("placement.iat needs placement.policy = \"ddio\"".into());
        }
        let own = IdioSpec::default();
        let used = |i: &IdioSpec| IdioSpec {
            class1_dscp: i.class1_dscp.clone(),
            quirks: super::idio::IdioQuirks {
                hint_queue: i.quirks.hint_queue,
                hint_overflow: i.quirks.hint_overflow,
                ..own.quirks.clone()
            },
            ..own.clone()
        };
        if s.idio.as_ref().is_some_and(|i| used(i) != *i) {
            return Err(
                "placement.idio has keys of IDIO's own control beside placement.policy = \"table\", which uses class1_dscp, \
                 quirks.hint_queue and quirks.hint_overflow alone; leave the others out"
                    .into(),
            );
        }
        let class_1 = s.idio.as_ref().is_some_and(|i| !i.class1_dscp.is_empty());
        if table.payload_class1.is_some() && !class_1 {
            return Err(
                "placement.table.payload_class1 has no effect: placement.idio.class1_dscp lists no packets; leave it out".into(),
            );
        }
        if let (to @ Destination::Mlc(_), None, true) = (table.payload, table.payload_class1, class_1) {
            return Err(format!(
                "placement.table.payload = \"{to}\" has no core to go to for packets of placement.idio.class1_dscp; give \
                 placement.table.payload_class1 as well"
            ));
        }
        table.check(llc_ways)
    }

    fn write(&mut self, t: &DeviceTransfer) -> Inbound {
        let s = &self.spec;
        let to = match t.device {
            DeviceKind::Nic if t.tag.is_descriptor() => s.descriptor,
            DeviceKind::Nic if t.tag.is_header() => s.header,
            DeviceKind::Nic if t.tag.core().is_none() => s.payload_class1.unwrap_or(s.payload),
            DeviceKind::Nic | DeviceKind::Rdma | DeviceKind::Storage => s.payload,
        };
        self.inbound(to, t)
    }

    fn ways(&self) -> u32 {
        self.way_mask().count_ones()
    }

    fn first_way(&self) -> u32 {
        self.ways.first
    }

    fn way_mask(&self) -> u32 {
        let ways = |to| match to {
            Destination::Dram => 0,
            Destination::Llc(ways) | Destination::Mlc(ways) => ways.unwrap_or(self.ways).mask(),
        };
        self.spec.classes().into_iter().fold(0, |mask, (_, to)| mask | ways(to))
    }

    /// Sets the ways of the classes that name none.
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        if !s.prefetch.is_empty() {
            return Err("the control plane sets prefetch, which needs placement.policy = \"idio\"".into());
        }
        self.ways.count = s.ways.unwrap_or(self.ways.count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{CoreId, LineAddr};
    use crate::memory::{Agent, Tag};

    fn placement(text: &str) -> Result<PlacementSpec, String> {
        let s: PlacementSpec = toml::from_str(text).map_err(|e| e.to_string())?;
        <Table as DataPlane>::check(&s, 12).map(|()| s)
    }

    fn line(device: DeviceKind, tag: Tag) -> DeviceTransfer {
        DeviceTransfer { tag, ..DeviceTransfer::of(Agent::Io, device, LineAddr(0)) }
    }

    #[test]
    fn each_class_of_lines_goes_where_the_table_says() {
        let s = placement(
            "policy = \"table\"\nways = \"2-3\"\nidio.class1_dscp = [8]\n[table]\nheader = \"mlc\"\npayload = \"llc 4-7\"\npayload_class1 \
             = \"dram\"\ndescriptor = \"llc\"",
        );
        let mut p = <Table as DataPlane>::new(&s.expect("a valid table"));
        let tag = |class_1, header| Tag::new(CoreId(5), class_1, header, false);
        for (device, tag, to) in [
            (DeviceKind::Nic, tag(false, true), Inbound::Hint { ways: 0b1100, core: CoreId(5) }),
            (DeviceKind::Nic, tag(true, true), Inbound::Hint { ways: 0b1100, core: CoreId(5) }),
            (DeviceKind::Nic, tag(false, false), Inbound::Llc { ways: 0b1111_0000 }),
            (DeviceKind::Nic, tag(true, false), Inbound::Dram),
            (DeviceKind::Nic, tag(false, false).of_descriptor(), Inbound::Llc { ways: 0b1100 }),
            (DeviceKind::Nic, tag(true, false).of_descriptor(), Inbound::Llc { ways: 0b1100 }),
            (DeviceKind::Storage, Tag::default(), Inbound::Llc { ways: 0b1111_0000 }),
            (DeviceKind::Rdma, Tag::default(), Inbound::Llc { ways: 0b1111_0000 }),
        ] {
            assert_eq!(p.write(&line(device, tag)), to, "{device:?} {tag:?}");
        }
        assert_eq!((p.way_mask(), p.ways()), (0b1111_1100, 6));
        let three = Settings { ways: Some(3), ..Settings::default() };
        p.set(&three).expect("ways of the classes that name none");
        assert_eq!(p.write(&line(DeviceKind::Nic, tag(false, false).of_descriptor())), Inbound::Llc { ways: 0b1_1100 });
        assert_eq!(p.write(&line(DeviceKind::Nic, tag(false, false))), Inbound::Llc { ways: 0b1111_0000 });
    }

    #[test]
    fn a_table_that_cannot_work_is_refused() {
        for (table, says) in [
            ("", "needs the table placement.table"),
            ("table.header = \"l2\"", "\"l2\" is no destination (valid: dram, llc, mlc"),
            ("table.header = \"dram 0-1\"", "DRAM has no ways"),
            (
                "table.payload = \"llc 8-12\"",
                "placement.table.payload = \"llc 8-12\" is not within the LLC's ways, 0 to 11",
            ),
            (
                "table.payload_class1 = \"mlc\"\nidio.class1_dscp = [8]",
                "placement.table.payload_class1 = \"mlc\" has no core",
            ),
            ("table.payload_class1 = \"dram\"", "placement.idio.class1_dscp lists no packets"),
            ("table.payload = \"mlc\"\nidio.class1_dscp = [8]", "give placement.table.payload_class1"),
            ("table.payload = \"mlc\"\nidio.interval = \"2 us\"", "keys of IDIO's own control"),
        ] {
            let why = placement(&format!("policy = \"table\"\n{table}")).expect_err(table);
            assert!(why.contains(says), "{table}: {why}");
        }
    }

    #[test]
    fn destinations_print_as_they_read() {
        for text in ["dram", "llc", "mlc", "llc 2-5", "mlc 0-0"] {
            assert_eq!(Destination::try_from(text.to_owned()).map(String::from), Ok(text.into()));
        }
    }
}
