//! Classification of packet drops by cause: a state machine over three flags that are sampled with every packet,
//! receive buffer full (F), receive ring full (R) and transmit ring full (T). The state remembers which resource filled
//! up first.

use crate::meter::drops::DropCause;

/// Flags that a packet samples on arrival: which resources are full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FullFlags {
    /// Whether the NIC's packet buffer is full.
    pub buffer: bool,
    /// Whether the receive ring is full.
    pub receive_ring: bool,
    /// Whether the transmit ring is full.
    pub transmit_ring: bool,
}

/// State of the drop-cause machine: the rings that were full while no packet was lost, or the cause for which packets
/// are being lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DropState {
    /// RT = 00, no drops: neither ring is full.
    #[default]
    Balanced,
    /// RT = 01, no drops: the transmit ring is full.
    Transmit,
    /// RT = 10, no drops: the receive ring is full.
    Receive,
    /// RT = 11, no drops: both rings are full.
    Both,
    /// Drops because the DMA engine is too slow: the receive buffer filled up while the receive ring had room.
    Dma,
    /// Drops because the core is too slow: the receive ring filled up first.
    Core,
    /// Drops because transmission is too slow: the transmit ring filled up first and stalled the core.
    Stalled,
}

use DropState::{Balanced, Both, Core, Dma, Receive, Stalled, Transmit};

/// Next state by the present state and by the flags R and T of a packet that finds the receive buffer full.
const FULL: [(DropState, [DropState; 4]); 7] = [
    //            RT = 00   01       10    11
    (Balanced, [Dma, Dma, Core, Stalled]),
    (Transmit, [Dma, Dma, Stalled, Stalled]),
    (Receive, [Dma, Dma, Core, Core]),
    (Both, [Dma, Dma, Stalled, Stalled]),
    (Dma, [Dma; 4]),
    (Core, [Core; 4]),
    (Stalled, [Stalled; 4]),
];

/// Next state by the flags R and T of a packet that finds room in the receive buffer.
const ROOM: [DropState; 4] = [Balanced, Transmit, Receive, Both];

impl DropState {
    /// State that follows for a packet that found the flags `found`.
    #[must_use]
    pub fn next(self, found: FullFlags) -> DropState {
        let rings = usize::from(found.receive_ring) << 1 | usize::from(found.transmit_ring);
        if found.buffer {
            FULL[self as usize].1[rings]
        } else {
            ROOM[rings]
        }
    }

    /// Cause for which packets are lost in this state; None in a state without drops.
    pub fn cause(self) -> Option<DropCause> {
        match self {
            Dma => Some(DropCause::DmaDrop),
            Core => Some(DropCause::CoreDrop),
            Stalled => Some(DropCause::TxDrop),
            Balanced | Transmit | Receive | Both => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags in the order F, R, T, each as 0 or 1.
    fn found(frt: &str) -> FullFlags {
        let on = |i: usize| frt.as_bytes()[i] == b'1';
        FullFlags { buffer: on(0), receive_ring: on(1), transmit_ring: on(2) }
    }

    fn after(flags: &[&str]) -> Option<DropCause> {
        flags.iter().fold(DropState::default(), |s, f| s.next(found(f))).cause()
    }

    #[test]
    fn the_table_has_a_row_for_each_state() {
        for (i, (state, _)) in FULL.iter().enumerate() {
            assert_eq!(*state as usize, i);
        }
    }

    /// The receive buffer fills up while the receive ring has room: `DmaDrop`.
    #[test]
    fn a_buffer_that_fills_before_the_receive_ring_is_the_dma_engines_fault() {
        for before in ["000", "001", "010", "011"] {
            for full in ["100", "101"] {
                assert_eq!(after(&[before, full]), Some(DropCause::DmaDrop), "{before} {full}");
            }
        }
    }

    /// The receive ring was full first because the core is slow: `CoreDrop`.
    #[test]
    fn a_receive_ring_that_fills_first_is_the_cores_fault() {
        for full in ["110", "111"] {
            assert_eq!(after(&["010", full]), Some(DropCause::CoreDrop), "{full}");
        }
    }

    /// The transmit ring was full, stalled the core and then filled the receive ring: `TxDrop`.
    #[test]
    fn a_transmit_ring_that_fills_first_is_transmissions_fault() {
        for before in ["001", "011"] {
            for full in ["110", "111"] {
                assert_eq!(after(&[before, full]), Some(DropCause::TxDrop), "{before} {full}");
            }
        }
    }

    /// When F and R become 1 together in state 000, the cause is `TxDrop` if T is 1, and `CoreDrop` otherwise.
    #[test]
    fn flags_that_come_together_tell_by_the_transmit_ring() {
        assert_eq!(after(&["000", "110"]), Some(DropCause::CoreDrop));
        assert_eq!(after(&["000", "111"]), Some(DropCause::TxDrop));
    }

    /// While F stays 1 in a drop state, the state and its cause remain.
    #[test]
    fn a_cause_stays_while_the_buffer_is_full() {
        for (before, cause) in [("000", DropCause::DmaDrop), ("010", DropCause::CoreDrop), ("001", DropCause::TxDrop)] {
            let first = if cause == DropCause::DmaDrop { "100" } else { "110" };
            for later in ["100", "101", "110", "111"] {
                assert_eq!(after(&[before, first, later]), Some(cause), "{before} {first} {later}");
            }
        }
    }

    /// When F has become 0, the next packet moves the machine to the state without drops that matches R and T.
    #[test]
    fn room_in_the_buffer_ends_a_cause() {
        for (flags, state) in [("000", Balanced), ("001", Transmit), ("010", Receive), ("011", Both)] {
            for before in [Dma, Core, Stalled, Balanced, Both] {
                assert_eq!(before.next(found(flags)), state);
            }
            assert_eq!(state.cause(), None);
        }
    }
}
