//! Ledger of lost packets: the place and the cause of each loss, and when it happened.

use crate::kernel::Time;

/// Place where a packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropPlace {
    /// The NIC's buffer for received frames.
    ReceiveBuffer,
    /// A receive ring that holds no descriptor for the frame.
    DescriptorRing,
    /// Admission to a queue whose packets have an objective.
    Admission,
    /// The queue of a switch in front of the host.
    SwitchQueue,
    /// The receive buffer of a socket.
    Socket,
}

impl DropPlace {
    /// The place in words, as in results.
    pub fn name(self) -> &'static str {
        match self {
            DropPlace::ReceiveBuffer => "receive buffer",
            DropPlace::DescriptorRing => "descriptor ring",
            DropPlace::Admission => "admission to the queue",
            DropPlace::SwitchQueue => "switch queue",
            DropPlace::Socket => "socket",
        }
    }
}

/// Cause of a packet's loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// The receive buffer is full because the host takes packets more slowly than the wire delivers them.
    BufferFull,
    /// The receive ring is empty: software has posted no descriptor in time.
    NoDescriptor,
    /// The packet would miss its latency objective, because too many packets wait (NeBuLa).
    TooLate,
    /// A queue of a switch in the network is full.
    QueueFull,
    /// The receive DMA of the NIC is slower than the wire.
    DmaDrop,
    /// Software on the core is slower than the wire.
    CoreDrop,
    /// Transmission is slower than the wire and has stalled software.
    TxDrop,
    /// The receive buffer of a socket is full.
    SocketFull,
}

impl DropCause {
    /// One sentence that explains the cause to users.
    pub fn sentence(self) -> &'static str {
        match self {
            DropCause::BufferFull => "The host takes packets more slowly than the wire brings them.",
            DropCause::NoDescriptor => "Software has given no buffer back in time.",
            DropCause::TooLate => "So many packets wait that this one would miss its objective.",
            DropCause::DmaDrop => "The NIC's receive DMA is slower than the wire; the receive ring had room (DmaDrop).",
            DropCause::CoreDrop => "The core is slower than the wire; the receive ring was full (CoreDrop).",
            DropCause::TxDrop => "Transmission is slower than the wire; its ring was full (TxDrop).",
            DropCause::SocketFull => "The application receives more slowly than the kernel does (socket full).",
            DropCause::QueueFull => "Senders together are faster than the link to the host.",
        }
    }
}

/// Losses with the same place and cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Place of the losses.
    pub place: DropPlace,
    /// Cause of the losses.
    pub cause: DropCause,
    /// Packets lost since the beginning of the run.
    pub ever: u64,
    /// Packets lost since the start of the window.
    pub count: u64,
    /// Time of the first loss in the window.
    pub first: Time,
    /// Time of the last loss in the window.
    pub last: Time,
}

/// Losses of one component.
#[derive(Clone, Debug, Default)]
pub struct DropLedger {
    losses: Vec<Loss>,
}

impl DropLedger {
    /// Counts a packet that is lost at `place` because of `cause` at `now`.
    #[cold]
    pub fn record(&mut self, place: DropPlace, cause: DropCause, now: Time) {
        let known = self.losses.iter().position(|l| l.place == place && l.cause == cause);
        let i = known.unwrap_or_else(|| {
            self.losses.push(Loss { place, cause, ever: 0, count: 0, first: now, last: now });
            self.losses.len() - 1
        });
        let l = &mut self.losses[i];
        if l.count == 0 {
            l.first = now;
        }
        l.last = now;
        l.count += 1;
        l.ever += 1;
    }

    /// Starts a new window: clears the windows' counts and keeps the counts of the whole run.
    pub fn restart(&mut self) {
        self.losses.iter_mut().for_each(|l| l.count = 0);
    }

    /// Packets lost since the beginning of the run.
    pub fn total(&self) -> u64 {
        self.losses.iter().map(|l| l.ever).sum()
    }
    /// Packets lost in the window.
    pub fn count(&self) -> u64 {
        self.losses.iter().map(|l| l.count).sum()
    }
    /// Packets lost for `cause` in the window.
    pub fn of(&self, cause: DropCause) -> u64 {
        self.losses.iter().filter(|l| l.cause == cause).map(|l| l.count).sum()
    }
    /// The kind of loss that occurred first since the beginning of the run.
    pub fn first_ever(&self) -> Option<&Loss> {
        self.losses.first()
    }
    /// Kinds of losses that occurred in the window.
    pub fn losses(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|l| l.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DropCause::{BufferFull, NoDescriptor};
    use DropPlace::{DescriptorRing, ReceiveBuffer};

    #[test]
    fn losses_are_kept_by_place_and_cause_with_their_times() {
        let mut l = DropLedger::default();
        for ns in [5, 9, 12] {
            l.record(ReceiveBuffer, BufferFull, Time::ns(ns));
        }
        l.record(DescriptorRing, NoDescriptor, Time::ns(7));
        assert_eq!((l.count(), l.of(BufferFull), l.of(NoDescriptor)), (4, 3, 1));
        let seen: Vec<_> = l.losses().map(|x| (x.place, x.count, x.first, x.last)).collect();
        let first = (ReceiveBuffer, 3, Time::ns(5), Time::ns(12));
        assert_eq!(seen, [first, (DescriptorRing, 1, Time::ns(7), Time::ns(7))]);
    }

    #[test]
    fn a_window_forgets_times_and_counts_but_not_the_total() {
        let mut l = DropLedger::default();
        l.record(ReceiveBuffer, BufferFull, Time::ns(5));
        l.restart();
        assert_eq!((l.count(), l.total(), l.losses().count()), (0, 1, 0));
        assert_eq!(l.first_ever().map(|x| (x.place, x.cause, x.ever)), Some((ReceiveBuffer, BufferFull, 1)));
        l.record(ReceiveBuffer, BufferFull, Time::ns(20));
        let x = l.losses().next().expect("a loss");
        assert_eq!((x.count, x.first, x.ever), (1, Time::ns(20), 2));
    }
}
