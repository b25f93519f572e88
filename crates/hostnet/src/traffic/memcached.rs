//! memcached's text protocol over UDP: the frame header, requests, and the value sizes in replies.
//!
//! Source: memcached's doc/protocol.txt, sections "UDP protocol", "Storage commands" and "Retrieval command". A capture
//! may have cut the packet short, so every parser reports what it could read.

use crate::kernel::Int;

/// Frame header: the eight bytes in front of every UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Request ID, chosen by the client; a reply carries the ID of its request.
    pub id: u16,
    /// Number of this datagram within its message, from 0.
    pub sequence: u16,
    /// Number of datagrams in the message.
    pub count: u16,
}

/// Splits a payload into the frame header and the body; `None` where the header is cut off or invalid.
pub fn header(payload: &[u8]) -> Option<(Header, &[u8])> {
    let (h, body) = payload.split_first_chunk::<8>()?;
    let word = |i: usize| u16::from_be_bytes([h[i], h[i + 1]]);
    let header = Header { id: word(0), sequence: word(2), count: word(4) };
    // The last word is reserved and zero.
    (word(6) == 0 && header.sequence < header.count).then_some((header, body))
}

/// Frame header of a reply that is one datagram.
pub fn alone(id: u16) -> [u8; 8] {
    let [a, b] = id.to_be_bytes();
    [a, b, 0, 0, 0, 1, 0, 0]
}

/// Longest key that memcached accepts, in bytes.
pub const KEY_MAX: usize = 250;

/// A request, in the detail that the simulator needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum MemcachedRequest<'a> {
    /// Retrieval (get, gets, gat, gats) with its keys, as text separated by spaces.
    Get(Keys<'a>),
    /// Storage: set, add, replace, append, prepend, cas.
    Set { key: &'a [u8], value_len: u32 },
    /// Any other command of the text protocol (delete, incr, touch, stats, ...).
    Other,
}

/// Keys that a retrieval asks for; at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keys<'a>(&'a [u8]);

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        word(&mut self.0)
    }
}

/// Parses a request's body. `cut` says that the capture did not keep all of the body; the parser then omits a last key
/// that may be incomplete. `None` where the body is not a request of the text protocol.
pub fn request(body: &[u8], cut: bool) -> Option<MemcachedRequest<'_>> {
    let (mut line, whole) = match body.iter().position(|&b| b == b'\n') {
        Some(end) => (body[..end].strip_suffix(b"\r").unwrap_or(&body[..end]), true),
        None if cut => (body, false),
        None => return None,
    };
    if !whole {
        // Every word up to the last space is complete.
        line = &line[..line.iter().rposition(|&b| b == b' ')?];
    }
    let command = word(&mut line)?;
    match command {
        b"get" | b"gets" => keys(line),
        b"gat" | b"gats" => {
            number(word(&mut line)?)?; // expiry
            keys(line)
        }
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
            let key = key(word(&mut line)?)?;
            number(word(&mut line)?)?; // flags
            word(&mut line)?; // expiry, may be negative
            let value_len = match word(&mut line) {
                Some(w) => number(w)?,
                None => return None,
            };
            Some(MemcachedRequest::Set { key, value_len })
        }
        b"delete" | b"incr" | b"decr" | b"touch" | b"stats" | b"version" | b"verbosity" | b"flush_all"
        | b"cache_memlimit" | b"mg" | b"ms" | b"md" | b"ma" | b"mn" | b"me" => Some(MemcachedRequest::Other),
        _ => None,
    }
}

/// State of a reply after one of its datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum ReplyState {
    /// The reply has ended: every value has been seen.
    Ended,
    /// The next datagram begins with this many bytes of value data.
    Continues { skip: u32 },
    /// The capture was cut short, or the datagram is not a reply to a retrieval.
    Unknown,
}

/// Reports key and length of each value that a reply's datagram announces. `len` is the body's length on the wire
/// (`body` may hold less), `skip` the number of value bytes left over from the previous datagram.
pub fn reply<'a>(body: &'a [u8], len: usize, skip: u32, mut value: impl FnMut(&'a [u8], u32)) -> ReplyState {
    let mut at = skip.to_usize();
    loop {
        if at >= len {
            let skip = u32::try_from(at - len).unwrap_or(u32::MAX);
            return ReplyState::Continues { skip };
        }
        let Some(rest) = body.get(at..) else {
            return ReplyState::Unknown;
        };
        let Some(end) = rest.iter().position(|&b| b == b'\n') else {
            return ReplyState::Unknown;
        };
        let mut line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        match word(&mut line) {
            Some(b"END") => return ReplyState::Ended,
            Some(b"VALUE") => {
                let fields =
                    (word(&mut line).and_then(key), word(&mut line).and_then(number), word(&mut line).and_then(number));
                let (Some(key), Some(_), Some(bytes)) = fields else {
                    return ReplyState::Unknown;
                };
                value(key, bytes);
                at += end + 1 + bytes.to_usize() + 2;
            }
            _ => return ReplyState::Unknown,
        }
    }
}

fn keys(line: &[u8]) -> Option<MemcachedRequest<'_>> {
    let keys = Keys(line);
    let mut n = 0;
    for k in keys {
        key(k)?;
        n += 1;
    }
    (n > 0).then_some(MemcachedRequest::Get(keys))
}

fn key(k: &[u8]) -> Option<&[u8]> {
    (k.len() <= KEY_MAX && k.iter().all(|b| !b.is_ascii_control())).then_some(k)
}

fn number(w: &[u8]) -> Option<u32> {
    std::str::from_utf8(w).ok()?.parse().ok()
}

/// Takes the next word from the front of `line`.
fn word<'a>(line: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = line.iter().position(|&b| b != b' ')?;
    let rest = &line[start..];
    let end = rest.iter().position(|&b| b == b' ').unwrap_or(rest.len());
    *line = &rest[end..];
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(body: &[u8], cut: bool) -> Option<Vec<&[u8]>> {
        match request(body, cut)? {
            MemcachedRequest::Get(keys) => Some(keys.collect()),
            _ => None,
        }
    }

    #[test]
    fn the_header_is_four_big_endian_words() {
        let (h, body) = header(b"\x12\x34\0\x01\0\x03\0\0get a\r\n").unwrap();
        assert_eq!(h, Header { id: 0x1234, sequence: 1, count: 3 });
        assert_eq!(body, b"get a\r\n");
        assert_eq!(header(b"\x12\x34\0\0\0\x01\0"), None, "seven bytes");
        assert_eq!(header(b"\0\0\0\x01\0\x01\0\0"), None, "sequence beyond count");
        assert_eq!(header(b"\0\0\0\0\0\x01\0\x01"), None, "reserved word");
    }

    #[test]
    fn retrievals_yield_their_keys() {
        assert_eq!(get(b"get a\r\n", false).unwrap(), [b"a"]);
        assert_eq!(get(b"gets k1 k22  k333\r\n", false).unwrap(), [&b"k1"[..], b"k22", b"k333"]);
        assert_eq!(get(b"gat 60 k1 k2\r\n", false).unwrap(), [b"k1", b"k2"]);
        assert_eq!(get(b"get\r\n", false), None);
        assert_eq!(get(&[b"get ", &[b'x'; 251][..], b"\r\n"].concat(), false), None);
    }

    #[test]
    fn a_key_that_the_snap_length_may_have_cut_is_left_out() {
        assert_eq!(get(b"get k1 k2 k", true).unwrap(), [b"k1", b"k2"]);
        assert_eq!(get(b"get k", true), None);
        assert_eq!(get(b"get k1", false), None, "complete datagram without a line end");
    }

    #[test]
    fn storage_commands_yield_key_and_length() {
        let set = |b| request(b, true);
        let expected = Some(MemcachedRequest::Set { key: b"k", value_len: 512 });
        assert_eq!(set(b"set k 0 0 512\r\nvvvv"), expected);
        assert_eq!(set(b"cas k 7 -1 512 99 noreply\r\nvv"), expected);
        assert_eq!(set(b"set k 0 0 512 no"), expected, "cut after the length");
        assert_eq!(set(b"set k 0 0 51"), None, "the length itself may be cut");
        assert_eq!(set(b"set k 0 0 x\r\n"), None);
    }

    #[test]
    fn other_commands_and_other_protocols() {
        assert_eq!(request(b"delete k\r\n", false), Some(MemcachedRequest::Other));
        assert_eq!(request(b"\x80\0\0\x01\r\n", false), None);
        assert_eq!(request(b"", true), None);
    }

    #[test]
    fn values_are_found_across_the_datagrams_of_a_reply() {
        let mut seen = Vec::new();
        let mut feed = |body: &'static [u8], len, skip| reply(body, len, skip, |k, n| seen.push((k, n)));
        let first = b"VALUE a 0 3\r\nxyz\r\nVALUE bb 0 10\r\n01234";
        assert_eq!(feed(first, first.len(), 0), ReplyState::Continues { skip: 7 });
        let last = b"56789\r\nVALUE c 0 0 77\r\n\r\nEND\r\n";
        assert_eq!(feed(last, last.len(), 7), ReplyState::Ended);
        assert_eq!(seen, [(&b"a"[..], 3), (b"bb", 10), (b"c", 0)]);
    }

    #[test]
    fn a_reply_that_the_capture_cut_gives_what_it_still_holds() {
        let mut seen = Vec::new();
        let end = reply(b"VALUE a 0 400\r\nxyz", 422, 0, |k, n| seen.push((k, n)));
        assert_eq!((end, &seen[..]), (ReplyState::Unknown, &[(&b"a"[..], 400)][..]));
        assert_eq!(reply(b"VALUE a 0 40", 422, 0, |_, _| ()), ReplyState::Unknown);
        assert_eq!(reply(b"STORED\r\n", 8, 0, |_, _| ()), ReplyState::Unknown);
        assert_eq!(reply(b"END\r\n", 5, 0, |_, _| ()), ReplyState::Ended);
    }
}
