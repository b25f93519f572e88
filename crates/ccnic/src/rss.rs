//! Receive-side scaling: which queue pair a received flow belongs to.

use crate::error::Error;

/// How a NIC that receives from elsewhere (the overlay) spreads flows over the queue pairs: the
/// Toeplitz hash of a packet's addresses and ports selects an entry of a table of queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rss {
    /// The hash's key.
    pub key: [u8; 40],
    /// Queue pairs by the low bits of the hash.
    pub table: [u8; Rss::ENTRIES],
    /// Fields that are hashed, [`Rss::IP`] and [`Rss::PORTS`]; zero: everything goes to the table's first queue.
    pub fields: u32,
    /// False until a table is given: queues are then taken modulo those that are served.
    given: bool,
}

impl Rss {
    /// Entries of the table.
    pub const ENTRIES: usize = 128;
    /// Source and destination address of IPv4 and IPv6.
    pub const IP: u32 = 1;
    /// With [`Rss::IP`]: the ports of TCP and UDP, too, unless the packet is a fragment.
    pub const PORTS: u32 = 2;
    pub(crate) const WORDS: usize = 2 + 10 + Rss::ENTRIES / 4;

    /// A key, a table and fields.
    pub fn new(key: [u8; 40], table: [u8; Rss::ENTRIES], fields: u32) -> Rss {
        Rss { key, table, fields, given: true }
    }

    /// Checks the table against the queue pairs that are served.
    pub fn check(&self, served: u32) -> Result<(), Error> {
        let wrong = self.given.then(|| self.table.iter().find(|q| u32::from(**q) >= served)).flatten();
        match wrong {
            Some(q) => Err(Error::Config(format!(
                "rss: the table names queue {q}, but the NIC serves {served}; the last one is {}",
                served - 1
            ))),
            None if self.fields & !(Rss::IP | Rss::PORTS) != 0 => {
                Err(Error::Config(format!("rss: fields = {:#x} has unknown bits; the valid ones are 0x3", self.fields)))
            }
            None => Ok(()),
        }
    }

    /// A copy with this key and these fields, and a table of the queue pairs that are served.
    pub(crate) fn within(&self, served: u32) -> Rss {
        // At most 64 queue pairs are served.
        let table = if self.given { self.table.map(|q| q % served as u8) } else { self.table };
        Rss { table, ..self.clone() }
    }

    /// The queue pair of a frame, given its first bytes, and the hash (0: nothing to hash).
    pub fn queue(&self, frame: &[u8], served: u32) -> (u32, u32) {
        let hash = self.hash(frame);
        let entry = u32::from(self.table[hash as usize % Rss::ENTRIES]);
        (entry % served.max(1), hash)
    }

    /// The Toeplitz hash of the frame's configured fields.
    pub fn hash(&self, frame: &[u8]) -> u32 {
        let mut tuple = [0u8; 36];
        let n = self.tuple(frame, &mut tuple).unwrap_or(0);
        toeplitz(&self.key, &tuple[..n])
    }

    /// Gathers the fields that are hashed in `out`; returns the number of bytes.
    fn tuple(&self, frame: &[u8], out: &mut [u8; 36]) -> Option<usize> {
        if self.fields & Rss::IP == 0 {
            return None;
        }
        let mut at = 12;
        let mut kind = frame.get(at..at + 2)?;
        if kind == [0x81, 0] {
            at += 4;
            kind = frame.get(at..at + 2)?;
        }
        let ip = frame.get(at + 2..)?;
        let (addresses, protocol, ports) = match kind {
            [8, 0] => {
                let header = usize::from(ip.first()? & 15) * 4;
                let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff != 0;
                (ip.get(12..20)?, *ip.get(9)?, if fragment { None } else { ip.get(header..header + 4) })
            }
            [0x86, 0xdd] => (ip.get(8..40)?, *ip.get(6)?, ip.get(40..44)),
            _ => return None,
        };
        let n = addresses.len();
        out[..n].copy_from_slice(addresses);
        match ports {
            Some(p) if self.fields & Rss::PORTS != 0 && (protocol == 6 || protocol == 17) => {
                out[n..n + 4].copy_from_slice(p);
                Some(n + 4)
            }
            _ => Some(n),
        }
    }

    /// The message form.
    pub(crate) fn to_words(&self) -> [u32; Rss::WORDS] {
        let mut words = [0; Rss::WORDS];
        (words[0], words[1]) = (self.fields, self.given.into());
        for (word, four) in words[2..].iter_mut().zip(self.key.chunks(4).chain(self.table.chunks(4))) {
            *word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        }
        words
    }

    /// Reads a peer's message.
    pub(crate) fn from_words(words: &[u32; Rss::WORDS], served: u32) -> Result<Rss, Error> {
        let mut bytes = words[2..].iter().flat_map(|w| w.to_le_bytes());
        let key = std::array::from_fn(|_| bytes.next().unwrap_or(0));
        let table = std::array::from_fn(|_| bytes.next().unwrap_or(0));
        let rss = Rss { key, table, fields: words[0], given: words[1] != 0 };
        rss.check(served)?;
        Ok(rss)
    }
}

impl Default for Rss {
    /// Addresses and ports, with a key under which both directions of a flow meet, over all
    /// queues in turn.
    fn default() -> Rss {
        Rss {
            key: std::array::from_fn(|i| [0x6d, 0x5a][i % 2]),
            table: std::array::from_fn(|i| i as u8),
            fields: Rss::IP | Rss::PORTS,
            given: false,
        }
    }
}

/// Sum (without carry) of the 32-bit windows of `key` that start at the set bits of `input`.
fn toeplitz(key: &[u8; 40], input: &[u8]) -> u32 {
    let mut window = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
    let mut hash = 0;
    for (i, byte) in input.iter().enumerate() {
        let next = key.get(i + 4).copied().unwrap_or(0);
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and vectors of Microsoft's "Verifying the RSS Hash Calculation".
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca,
        0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b,
        0xbe, 0xac, 0x01, 0xfa,
    ];

    fn tcp4(from: [u8; 4], to: [u8; 4], ports: [u16; 2]) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        f.extend(from);
        f.extend(to);
        ports.iter().for_each(|p| f.extend(p.to_be_bytes()));
        f
    }

    #[test]
    fn the_hash_is_that_of_the_published_vectors() {
        let cases = [
            ([66, 9, 149, 187], [161, 142, 100, 80], [2794, 1766], 0x51cc_c178, 0x323e_8fc2),
            ([199, 92, 111, 2], [65, 69, 140, 83], [14230, 4739], 0xc626_b0ea, 0xd718_262a),
            ([24, 19, 198, 95], [12, 22, 207, 184], [12898, 38024], 0x5c2b_394a, 0xd2d0_a5de),
        ];
        for (from, to, ports, with_ports, addresses) in cases {
            let frame = tcp4(from, to, ports);
            assert_eq!(Rss::new(KEY, [0; 128], Rss::IP | Rss::PORTS).hash(&frame), with_ports);
            assert_eq!(Rss::new(KEY, [0; 128], Rss::IP).hash(&frame), addresses);
        }
        // 3ffe:2501:200:1fff::7 port 2794 to 3ffe:2501:200:3::1 port 1766.
        let mut six = vec![0; 12];
        six.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
        six.extend([0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7]);
        six.extend([0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1]);
        six.extend([2794u16.to_be_bytes(), 1766u16.to_be_bytes()].concat());
        assert_eq!(Rss::new(KEY, [0; 128], Rss::IP | Rss::PORTS).hash(&six), 0x4020_7d3d);
    }

    #[test]
    fn both_directions_meet_by_default_and_fragments_go_by_address() {
        let rss = Rss::default();
        let (a, b) = ([10, 0, 0, 1], [10, 9, 8, 7]);
        assert_eq!(rss.hash(&tcp4(a, b, [1000, 80])), rss.hash(&tcp4(b, a, [80, 1000])));
        let mut fragment = tcp4(a, b, [1000, 80]);
        fragment[20] = 0x20;
        let mut other = tcp4(a, b, [1, 2]);
        other[20] = 0x20;
        assert_eq!(rss.hash(&fragment), rss.hash(&other));
        for n in 0..38 {
            rss.hash(&tcp4(a, b, [1, 2])[..n]); // short frames are no panic
        }
    }

    #[test]
    fn a_table_that_names_a_queue_that_is_not_served_is_refused() {
        let rss = Rss::new(KEY, [3; 128], Rss::IP);
        assert!(rss.check(4).is_ok());
        assert!(rss.check(3).expect_err("queue 3").to_string().contains("queue 3"));
        assert_eq!(rss.queue(&tcp4([1; 4], [2; 4], [3, 4]), 4).0, 3);
        assert_eq!(Rss::from_words(&rss.to_words(), 4).expect("its own form"), rss);
    }
}
