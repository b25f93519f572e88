//! Numbers and strings as bytes: LEB128 without a sign, zigzag for numbers with a sign, strings behind their length.

/// Bytes to which numbers are appended.
#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }
    pub(crate) fn signed(&mut self, n: i64) {
        self.number((n << 1 ^ n >> 63) as u64);
    }
    pub(crate) fn text(&mut self, s: &str) {
        self.block(s.as_bytes());
    }
    pub(crate) fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Bytes from which numbers are read. Each method returns `None` at the end of the bytes or for a number that is too
/// large.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let n = self.number()?.try_into().ok()?;
        let (block, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the DWARF standard (7.6): 12,857 is b9 64.
    #[test]
    fn numbers_are_leb128() {
        let mut w = Writer::default();
        w.number(12_857);
        w.signed(-1);
        w.number(u64::MAX);
        assert_eq!(w.0[..3], [0xb9, 0x64, 1]);
        let mut r = Reader(&w.0);
        assert_eq!((r.number(), r.signed(), r.number(), r.number()), (Some(12_857), Some(-1), Some(u64::MAX), None));
    }

    #[test]
    fn a_number_beyond_64_bits_is_refused() {
        assert_eq!(Reader(&[0xff; 10]).number(), None);
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None);
    }
}
