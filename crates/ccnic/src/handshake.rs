//! The messages by which a host and a NIC process agree: reading and writing bytes, no more.
//!
//! ```text
//! host -> NIC   magic "CCNC" | version | bytes | features | required | term | words | rss words | words.. | rss words..
//!               beside it: the region's descriptor and, in event mode, one socket per queue pair
//! NIC -> host   magic "CCNC" | version | bytes | status   | features | sentence
//! ```
//!
//! Every field is a little-endian u32 up to the sentence. The version's upper half must be equal;
//! a lower half that is newer may bring further words, which must be zero for an older NIC, and
//! features, of which the NIC agrees to those it knows. `required` ones it must know.

use crate::config::Config;
use crate::error::Error;
use crate::rss::Rss;

const MAGIC: u32 = u32::from_le_bytes(*b"CCNC");
/// First word of a request for the NIC's counters.
const STATS: u32 = u32::from_le_bytes(*b"CCST");
/// Version of the protocol: incompatible changes above, compatible ones below.
pub const VERSION: u32 = 3 << 16;
/// Longest message, in bytes.
pub const LONGEST: usize = 1024;
const HEAD: usize = 8;
const ANSWER_HEAD: usize = 5;

/// Set of features beyond moving packets that one side has, or that both have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u32);

impl Features {
    /// The NIC completes and verifies checksums as [`Offload`](crate::Offload) says.
    pub const CHECKSUM: Features = Features(1);
    /// The NIC cuts long packets into frames.
    pub const SEGMENT: Features = Features(2);
    /// The sides wake each other.
    pub const EVENT: Features = Features(4);
    /// The NIC spreads flows as [`Rss`] says.
    pub const RSS: Features = Features(8);
    /// The NIC may deliver packets that were merged from several frames.
    pub const MERGED: Features = Features(16);
    /// All features that this version knows.
    pub const ALL: Features = Features(31);

    /// True when the set has all features of `wanted`.
    pub fn has(self, wanted: Features) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Features that both sets have.
    pub fn and(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }

    /// Features that a host with this configuration can use.
    pub(crate) fn offer(config: &Config) -> Features {
        let event = if config.poll_us > 0 { Features::EVENT.0 } else { 0 };
        let offload = match config.offload {
            0 => 0,
            1 => Features::CHECKSUM.0 | Features::SEGMENT.0,
            _ => Features::CHECKSUM.0 | Features::SEGMENT.0 | Features::MERGED.0,
        };
        Features(Features::RSS.0 | event | offload)
    }
}

/// A host's request to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The region's configuration.
    pub config: Config,
    /// Receive-side scaling: how the NIC is to spread flows over the queue pairs.
    pub rss: Rss,
    /// Features that the host can use.
    pub features: Features,
    /// Number of the NIC among those of the region, by which its acknowledgements are told from those of its predecessors.
    pub term: u32,
}

/// A request that arrives at a NIC's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A host that wants to be served.
    Hello(Box<Hello>),
    /// A request for the NIC's counters.
    Stats,
}

impl Hello {
    /// The byte form of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (config, rss) = (self.config.to_words(), self.rss.to_words());
        let words = HEAD + config.len() + rss.len();
        let lengths = [config.len() as u32, rss.len() as u32];
        let head = [MAGIC, VERSION, 4 * words as u32, self.features.0, 0, self.term];
        head.iter().chain(&lengths).chain(&config).chain(&rss).flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// The message that asks for counters.
pub fn stats_request() -> [u8; 12] {
    let mut bytes = [0; 12];
    for (to, word) in bytes.chunks_exact_mut(4).zip([STATS, VERSION, 12]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn word(bytes: &[u8], i: usize) -> Option<u32> {
    let four = bytes.get(4 * i..4 * i + 4)?;
    Some(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn nonsense(why: &str) -> Error {
    Error::Peer(format!("the message is not one of CC-NIC's: {why}"))
}

/// Bytes of the message that begins with `bytes`, once enough of it is there to tell.
pub fn expected(bytes: &[u8]) -> Result<Option<usize>, Error> {
    match word(bytes, 0) {
        None => return Ok(None),
        Some(MAGIC | STATS) => {}
        Some(_) => return Err(nonsense("its first word is unknown")),
    }
    match word(bytes, 2) {
        None => Ok(None),
        Some(n) if (12..=LONGEST as u32).contains(&n) && n % 4 == 0 => Ok(Some(n as usize)),
        Some(n) => Err(nonsense(&format!("it claims {n} bytes"))),
    }
}

fn same_version(theirs: u32, who: &str) -> Result<(), Error> {
    if theirs >> 16 == VERSION >> 16 {
        return Ok(());
    }
    Err(Error::Peer(format!(
        "the {who} speaks version {}.{} of the protocol and this side {}.{}; install the same release on both sides",
        theirs >> 16,
        theirs & 0xffff,
        VERSION >> 16,
        VERSION & 0xffff
    )))
}

/// Reads a whole message to a NIC; every value is checked.
pub fn request(bytes: &[u8]) -> Result<Request, Error> {
    if expected(bytes)? != Some(bytes.len()) {
        return Err(nonsense("it is cut short"));
    }
    let field = |i| word(bytes, i).ok_or_else(|| nonsense("it is cut short"));
    same_version(field(1)?, "host")?;
    if field(0)? == STATS {
        return Ok(Request::Stats);
    }
    let (offered, required) = (field(3)?, field(4)?);
    if required & !Features::ALL.0 != 0 {
        return Err(Error::Peer(format!(
            "the host requires features {:#x} that this NIC does not know",
            required & !Features::ALL.0
        )));
    }
    let (term, words, rss_words) = (field(5)?, field(6)? as usize, field(7)? as usize);
    // The length is bounded, so these sums cannot overflow once they are compared with it.
    if words > LONGEST || rss_words != Rss::WORDS || HEAD + words + rss_words != bytes.len() / 4 {
        return Err(nonsense("its parts do not fill it"));
    }
    let all: Vec<u32> = (HEAD..HEAD + words + rss_words).filter_map(|i| word(bytes, i)).collect();
    let config = Config::from_words(&all[..words])?;
    let mut spread = [0; Rss::WORDS];
    spread.copy_from_slice(&all[words..]);
    let rss = Rss::from_words(&spread, config.served())?;
    Ok(Request::Hello(Box::new(Hello { config, rss, features: Features(offered).and(Features::ALL), term })))
}

/// The NIC's answer: the features it agrees to, or why it refuses.
pub fn answer(outcome: Result<Features, &str>) -> Vec<u8> {
    let (status, features, text) = match outcome {
        Ok(features) => (0, features.0, ""),
        Err(why) => (1, 0, why),
    };
    let mut text = text.as_bytes().to_vec();
    text.truncate(LONGEST - 4 * ANSWER_HEAD);
    text.resize(text.len().next_multiple_of(4), b' ');
    let bytes = (4 * ANSWER_HEAD + text.len()) as u32;
    let head = [MAGIC, VERSION, bytes, status, features];
    head.iter().flat_map(|w| w.to_le_bytes()).chain(text).collect()
}

/// Reads a whole answer, given what was offered: the features agreed.
pub fn read_answer(bytes: &[u8], offered: Features) -> Result<Features, Error> {
    if expected(bytes)? != Some(bytes.len()) || bytes.len() < 4 * ANSWER_HEAD || word(bytes, 0) != Some(MAGIC) {
        return Err(nonsense("the NIC's answer is cut short"));
    }
    let field = |i| word(bytes, i).unwrap_or(0);
    if field(3) != 0 {
        let why = String::from_utf8_lossy(&bytes[4 * ANSWER_HEAD..]);
        let why: String = why.trim_end().chars().filter(|c| !c.is_control()).collect();
        return Err(Error::Peer(format!("the NIC refused the port: {why}")));
    }
    same_version(field(1), "NIC")?;
    Ok(Features(field(4)).and(offered))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        let config = Config { queues: 3, mtu: 1500, poll_us: 50, ..Config::default() };
        Hello { features: Features::offer(&config), rss: Rss::default(), config, term: 7 }
    }

    fn patched(at: usize, value: u32) -> Vec<u8> {
        let mut bytes = hello().to_bytes();
        bytes[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let bytes = hello().to_bytes();
        assert_eq!(&bytes[..4], b"CCNC");
        assert_eq!(expected(&bytes[..11]).expect("so far so good"), None);
        assert_eq!(request(&bytes).expect("its own form"), Request::Hello(Box::new(hello())));
        assert_eq!(request(&stats_request()).expect("its own form"), Request::Stats);
    }

    #[test]
    fn another_major_version_is_refused_and_a_newer_minor_one_is_not() {
        let e = request(&patched(1, 2 << 16 | 7)).expect_err("incompatible");
        assert!(e.to_string().contains("version 2.7") && e.to_string().contains("3.0"), "{e}");
        assert!(request(&patched(1, VERSION | 9)).is_ok());
        assert!(request(&patched(4, 1 << 20)).is_err(), "a required feature that is unknown");
        let Ok(Request::Hello(h)) = request(&patched(3, u32::MAX)) else { panic!("unknown offers are ignored") };
        assert_eq!(h.features, Features::ALL);
    }

    #[test]
    fn words_that_are_missing_have_defaults_and_unknown_ones_must_be_zero() {
        let whole = hello();
        let (config, rss) = (whole.config.to_words(), whole.rss.to_words());
        let message = |config: &[u32]| -> Vec<u8> {
            let n = HEAD + config.len() + rss.len();
            let head = [MAGIC, VERSION, 4 * n as u32, 0, 0, 0, config.len() as u32, rss.len() as u32];
            head.iter().chain(config).chain(&rss).flat_map(|w| w.to_le_bytes()).collect()
        };
        let Ok(Request::Hello(h)) = request(&message(&config[..27])) else { panic!("an older host") };
        assert_eq!((h.config.mtu, h.config.poll_us, h.config.queues), (0, 0, 3));
        assert!(request(&message(&[&config[..], &[0, 0]].concat())).is_ok());
        assert!(request(&message(&[&config[..], &[0, 5]].concat())).is_err());
    }

    #[test]
    fn answers_carry_features_or_a_sentence() {
        assert_eq!(read_answer(&answer(Ok(Features(5))), Features::ALL).expect("accepted"), Features(5));
        assert_eq!(read_answer(&answer(Ok(Features(5))), Features(4)).expect("accepted"), Features(4), "offered only");
        let long = "no ".repeat(1000);
        let e = read_answer(&answer(Err(&long)), Features::ALL).expect_err("refused");
        assert!(e.to_string().starts_with("the NIC refused the port: no no"), "{e}");
        assert!(read_answer(b"CCNC", Features::ALL).is_err());
    }
}
