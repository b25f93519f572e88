//! Ethernet addresses.

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// An Ethernet (MAC) address, written "02:00:00:00:00:01".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Default address of the host's NIC, a locally administered address (IEEE 802, 8.4).
    pub const HOST: Mac = Mac([2, 0, 0, 0, 0, 1]);
    /// Default address of the generator's port, a locally administered address (IEEE 802, 8.4).
    pub const GENERATOR: Mac = Mac([2, 0, 0, 0, 0, 2]);

    /// Parses an address of six bytes in hexadecimal, separated by colons or hyphens.
    ///
    /// # Errors
    /// Returns one clause that says what was expected.
    pub fn parse(s: &str) -> Result<Mac, String> {
        let byte = |part: &str| match part.len() {
            2 if part.bytes().all(|b| b.is_ascii_hexdigit()) => u8::from_str_radix(part, 16).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = s.split([':', '-']).map(byte).collect();
        let six = bytes.and_then(|b| b.try_into().ok());
        six.map(Mac).ok_or_else(|| format!("expected an Ethernet address such as \"02:00:00:00:00:01\", not \"{s}\""))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Mac, D::Error> {
        let text = Cow::<str>::deserialize(d)?;
        Mac::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Mac {
    fn schema_name() -> Cow<'static, str> {
        "Mac".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "an Ethernet address",
            "examples": ["02:00:00:00:00:01"],
            "pattern": "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        let a = Mac::parse("02:0A:ff:00:10:9c").unwrap();
        assert_eq!(a.0, [0x02, 0x0a, 0xff, 0x00, 0x10, 0x9c]);
        assert_eq!(a.to_string(), "02:0a:ff:00:10:9c");
        assert_eq!(Mac::parse("02-00-00-00-00-01"), Ok(Mac::HOST));
        for bad in
            ["", "02:00:00:00:00", "02:00:00:00:00:01:02", "2:0:0:0:0:1", "0g:00:00:00:00:01", "+2:00:00:00:00:01"]
        {
            assert!(Mac::parse(bad).unwrap_err().contains("Ethernet address"), "{bad}");
        }
    }
}
