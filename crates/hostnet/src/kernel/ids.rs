//! Identifiers and addresses as types, so that a core is never taken for a thread, nor a line for a byte.
//!
//! An identifier is an index into a table, such as an [`IdVec`], of the things that it names. Each constructor checks
//! the range of its type, and `index` gives the position in a table.

use super::num::Int;
use std::fmt;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::{Add, AddAssign, Index, IndexMut, Sub};

/// Bytes of a cache line, everywhere.
pub const LINE: u64 = 64;
/// Bytes of a cache line, as a 32-bit number.
pub const LINE_U32: u32 = 64;

/// The address of a cache line: the address of its first byte, divided by 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct LineAddr(pub u64);

impl LineAddr {
    /// The line that holds the byte at `address`.
    pub const fn of_byte(address: u64) -> LineAddr {
        LineAddr(address / LINE)
    }
    /// The address of the first byte of the line.
    pub const fn byte(self) -> u64 {
        self.0 * LINE
    }
    /// The distance of this line from `base`, in lines.
    ///
    /// # Panics
    /// In builds with overflow checks, when `base` lies behind this line.
    #[inline(always)]
    pub const fn offset_from(self, base: LineAddr) -> u64 {
        self.0 - base.0
    }
    /// The distance of this line from `base`, in lines; negative when `base` lies behind this line.
    #[inline(always)]
    pub const fn signed_offset_from(self, base: LineAddr) -> i64 {
        self.0.wrapping_sub(base.0).cast_signed()
    }
    /// The line `offset` lines behind this one, or before it when `offset` is negative.
    #[inline(always)]
    pub const fn offset_by(self, offset: i64) -> LineAddr {
        LineAddr(self.0.wrapping_add_signed(offset))
    }
    /// `n` consecutive lines, of which this one is the first.
    #[inline(always)]
    pub fn span(self, n: impl Into<u64>) -> impl DoubleEndedIterator<Item = LineAddr> + Clone {
        (self.0..self.0 + n.into()).map(LineAddr)
    }
    /// Whether the line is one of the `n` lines from `base` on.
    #[inline(always)]
    pub const fn is_within(self, base: LineAddr, n: u64) -> bool {
        base.0 <= self.0 && self.0 < base.0 + n
    }
}

impl Add<u64> for LineAddr {
    type Output = LineAddr;
    #[inline(always)]
    fn add(self, lines: u64) -> LineAddr {
        LineAddr(self.0 + lines)
    }
}
impl AddAssign<u64> for LineAddr {
    #[inline(always)]
    fn add_assign(&mut self, lines: u64) {
        self.0 += lines;
    }
}
impl Sub<u64> for LineAddr {
    type Output = LineAddr;
    #[inline(always)]
    fn sub(self, lines: u64) -> LineAddr {
        LineAddr(self.0 - lines)
    }
}
impl Sub for LineAddr {
    type Output = u64;
    #[inline(always)]
    fn sub(self, base: LineAddr) -> u64 {
        self.offset_from(base)
    }
}
impl fmt::Display for LineAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A line address of at most 48 bits in six bytes, so that an event that names a line stays small.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShortLine([u16; 3]);

impl From<LineAddr> for ShortLine {
    #[inline]
    fn from(line: LineAddr) -> ShortLine {
        debug_assert!(line.0 >> 48 == 0, "{line} has more than 48 bits");
        ShortLine([line.0.low_u16(), (line.0 >> 16).low_u16(), (line.0 >> 32).low_u16()])
    }
}
impl From<&ShortLine> for LineAddr {
    /// Takes a reference and reads part by part. By value, or with `map` over the parts, the compiler reads all six bytes
    /// at once, across the fields of other events, and keeps every event in memory rather than in registers.
    #[inline(always)]
    fn from(line: &ShortLine) -> LineAddr {
        let [low, middle, high] = line.0;
        LineAddr(u64::from(high) << 32 | u64::from(middle) << 16 | u64::from(low))
    }
}

/// The address of a line as the key of a hash table. A line has fewer than 63 bits, so that an `Option` of the key takes
/// no more room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LineKey(NonZeroU64);

/// Bit that is set in every key of a line.
const KEY: NonZeroU64 = NonZeroU64::new(1 << 63).expect("not zero");

impl From<LineAddr> for LineKey {
    #[inline(always)]
    fn from(line: LineAddr) -> LineKey {
        debug_assert!(line.0 < KEY.get(), "{line} has more than 63 bits");
        LineKey(KEY | line.0)
    }
}
impl From<LineKey> for LineAddr {
    #[inline(always)]
    fn from(key: LineKey) -> LineAddr {
        LineAddr(key.0.get() & !KEY.get())
    }
}

/// An index into a table of what it names.
pub trait Id: Copy {
    /// The identifier of position `index`.
    ///
    /// # Panics
    /// When the identifier's type has no room for `index`.
    fn new(index: usize) -> Self;
    /// The position in a table.
    fn index(self) -> usize;
}

#[cold]
#[inline(never)]
pub(crate) fn no_room(index: usize, name: &str) -> ! {
    panic!("{name} has no room for {index}")
}

macro_rules! plain_id {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(pub $number);

        impl $name {
            /// The identifier of position `index`.
            ///
            /// # Panics
            /// When the identifier's type has no room for `index`.
            #[inline]
            pub fn new(index: usize) -> $name {
                $name(<$number>::try_from(index).unwrap_or_else(|_| no_room(index, stringify!($name))))
            }
            /// The position in a table.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0.to_usize()
            }
        }

        impl Id for $name {
            #[inline]
            fn new(index: usize) -> $name {
                $name::new(index)
            }
            #[inline(always)]
            fn index(self) -> usize {
                $name::index(self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// An identifier whose number is never zero, so that an `Option` of the identifier takes no additional memory.
macro_rules! niche_id {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        ///  An `Option` of this identifier takes no additional memory.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($number); // the position plus one

        impl $name {
            /// The identifier of position `index`.
            ///
            /// # Panics
            /// When the identifier's type has no room for `index`.
            #[inline(always)]
            pub fn new(index: usize) -> $name {
                let number = std::num::NonZero::new(index + 1).and_then(|n| n.try_into().ok());
                $name(number.unwrap_or_else(|| $crate::kernel::ids::no_room(index, stringify!($name))))
            }
            /// The position in a table.
            #[inline(always)]
            pub fn index(self) -> usize {
                $crate::kernel::Int::to_usize(self.0.get() - 1)
            }
        }

        impl $crate::kernel::Id for $name {
            #[inline(always)]
            fn new(index: usize) -> $name {
                $name::new(index)
            }
            #[inline(always)]
            fn index(self) -> usize {
                $name::index(self)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.index())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.index().fmt(f)
            }
        }
    };
}
pub(crate) use niche_id;

plain_id!(
    /// A core of a machine.
    CoreId(u16)
);
plain_id!(
    /// A hardware thread of a machine: threads of one core need not have neighbouring numbers.
    ThreadId(u16)
);
plain_id!(
    /// A tenant: an application with the stack, the cores and the memory that the application uses.
    TenantId(u8)
);
plain_id!(
    /// A node of a machine: an LLC with its home agent, the memory channels of that home agent, and the cores attached
    /// to it.
    NodeId(u8)
);
plain_id!(
    /// A channel of memory, counted over all nodes of a machine.
    ChannelId(u8)
);
plain_id!(
    /// A queue of a NIC: what one thread receives from and sends through.
    QueueId(u16)
);
plain_id!(
    /// A port of the IIO, and the device behind it.
    PortId(u16)
);
plain_id!(
    /// A read request of a device behind the IIO.
    ReadJobId(u32)
);
plain_id!(
    /// A write of a part of a line, which the IIO completes by a read of that line.
    PartialWriteId(u32)
);
plain_id!(
    /// A region of the address map: memory that one use has to itself.
    RegionId(u16)
);
niche_id!(
    /// A request under way in the memory system.
    TxnId(NonZeroU32)
);
niche_id!(
    /// A packet on its way through a host.
    PacketId(NonZeroU32)
);

/// A table indexed by an identifier: one value for each `I` from zero on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IdVec<I, T> {
    values: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty table.
    pub const fn new() -> IdVec<I, T> {
        IdVec { values: Vec::new(), ids: PhantomData }
    }
    /// A table of `n` copies of `value`.
    pub fn filled(value: T, n: usize) -> IdVec<I, T>
    where
        T: Clone,
    {
        vec![value; n].into()
    }
    /// Appends `value` and returns its identifier.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> I {
        let id = self.next_id();
        self.values.push(value);
        id
    }
    /// The identifier that the next value gets.
    #[inline(always)]
    pub fn next_id(&self) -> I {
        I::new(self.values.len())
    }
    /// The number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }
    /// Whether the table has no value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
    /// The value of `id`, if the table has one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.values.get(id.index())
    }
    /// The value of `id` for writing, if the table has one.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.values.get_mut(id.index())
    }
    /// All identifiers of the table, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone {
        (0..self.values.len()).map(I::new)
    }
    /// All values, in order of their identifiers.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.values.iter()
    }
    /// All values for writing, in order of their identifiers.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.values.iter_mut()
    }
    /// All values with their identifiers, in order.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.values.iter().enumerate().map(|(i, value)| (I::new(i), value))
    }
    /// All values for writing with their identifiers, in order.
    pub fn enumerate_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> {
        self.values.iter_mut().enumerate().map(|(i, value)| (I::new(i), value))
    }
    /// All values as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.values
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> IdVec<I, T> {
        IdVec::new()
    }
}
impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.values[id.index()]
    }
}
impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.values[id.index()]
    }
}
impl<I: Id, T> From<Vec<T>> for IdVec<I, T> {
    fn from(values: Vec<T>) -> IdVec<I, T> {
        IdVec { values, ids: PhantomData }
    }
}
impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(values: It) -> IdVec<I, T> {
        Vec::from_iter(values).into()
    }
}
impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter()
    }
}
impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}
impl<'a, I, T> IntoIterator for &'a mut IdVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.values.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_transaction_or_packet_takes_four_bytes() {
        assert_eq!((size_of::<Option<TxnId>>(), size_of::<Option<PacketId>>()), (4, 4));
        assert_eq!(TxnId::new(u32::MAX as usize - 1).index(), u32::MAX as usize - 1);
    }

    #[test]
    #[should_panic(expected = "TxnId has no room for 4294967295")]
    fn the_number_that_stands_for_no_transaction_is_none() {
        let _ = TxnId::new(u32::MAX as usize);
    }

    #[test]
    #[should_panic(expected = "NodeId has no room for 300")]
    fn an_index_beyond_an_identifier_s_type_is_refused() {
        let _ = NodeId::new(300);
    }

    #[test]
    fn lines_are_64_bytes_apart() {
        let first = LineAddr::of_byte(4096 + 63);
        assert_eq!((first, first.byte(), (first + 2).byte()), (LineAddr(64), 4096, 4224));
        assert_eq!(first.span(3u64).collect::<Vec<_>>(), [64, 65, 66].map(LineAddr));
        assert!((first + 2).is_within(first, 3) && !(first + 3).is_within(first, 3));
        assert_eq!((first + 5) - first, 5);
    }

    #[test]
    fn a_short_line_keeps_48_bits() {
        let line = LineAddr(0xa987_6543_2101);
        assert_eq!((LineAddr::from(&ShortLine::from(line)), size_of::<ShortLine>()), (line, 6));
    }

    #[test]
    fn a_key_of_a_line_keeps_63_bits_and_takes_no_room_beside_none() {
        for line in [0, 7, (1 << 63) - 1].map(LineAddr) {
            assert_eq!(LineAddr::from(LineKey::from(line)), line);
        }
        assert_eq!(size_of::<Option<LineKey>>(), 8);
    }

    #[test]
    fn a_table_hands_out_the_identifiers_that_index_it() {
        let mut table: IdVec<CoreId, &str> = IdVec::new();
        let (a, b) = (table.push("a"), table.push("b"));
        assert_eq!((a, b, table[a], table[b]), (CoreId(0), CoreId(1), "a", "b"));
        assert_eq!(table.ids().collect::<Vec<_>>(), [a, b]);
        assert_eq!(table.get(CoreId(2)), None);
    }
}
