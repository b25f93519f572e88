//! Why a packet is lost that finds the receive buffer full, as a state machine over three flags that are sampled with every
//! packet: receive buffer full (F), receive ring full (R), transmit ring full (T). It remembers what filled up first.

use crate::meter::drops::DropCause;

/// The flags that a packet finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Full {
    pub buffer: bool,
    pub receive_ring: bool,
    pub transmit_ring: bool,
}

/// What the machine remembers: the rings that were full while nothing was lost, or why packets are being lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// 000: nothing is full.
    #[default]
    Balanced,
    /// 001: the transmit ring is.
    Transmit,
    /// 010: the receive ring is.
    Receive,
    /// 011: both rings are.
    Both,
    /// The DMA engine is too slow: the buffer filled while the receive ring had room.
    Dma,
    /// The core is too slow: the receive ring filled first.
    Core,
    /// Transmission is too slow: its ring filled first, and the core stalled.
    Stalled,
}

use State::{Balanced, Both, Core, Dma, Receive, Stalled, Transmit};

/// The next state by the present one, and by R and T, of a packet that finds the buffer full.
const FULL: [(State, [State; 4]); 7] = [
    //            RT = 00   01       10    11
    (Balanced, [Dma, Dma, Core, Stalled]),
    (Transmit, [Dma, Dma, Stalled, Stalled]),
    (Receive, [Dma, Dma, Core, Core]),
    (Both, [Dma, Dma, Stalled, Stalled]),
    (Dma, [Dma; 4]),
    (Core, [Core; 4]),
    (Stalled, [Stalled; 4]),
];

/// The same of a packet that finds room.
const ROOM: [State; 4] = [Balanced, Transmit, Receive, Both];

impl State {
    /// The state after a packet that found these flags.
    #[must_use]
    pub fn next(self, found: Full) -> State {
        let rings = usize::from(found.receive_ring) << 1 | usize::from(found.transmit_ring);
        if found.buffer {
            FULL[self as usize].1[rings]
        } else {
            ROOM[rings]
        }
    }

    /// Why packets are lost in this state.
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

    /// The flags as the specification writes them: FRT.
    fn found(frt: &str) -> Full {
        let on = |i: usize| frt.as_bytes()[i] == b'1';
        Full { buffer: on(0), receive_ring: on(1), transmit_ring: on(2) }
    }

    fn after(flags: &[&str]) -> Option<DropCause> {
        flags.iter().fold(State::default(), |s, f| s.next(found(f))).cause()
    }

    #[test]
    fn the_table_has_a_row_for_each_state() {
        for (i, (state, _)) in FULL.iter().enumerate() {
            assert_eq!(*state as usize, i);
        }
    }

    /// gem5net.f.drop_fsm: "FIFO fills while rings are not full -> DmaDrop".
    #[test]
    fn a_buffer_that_fills_before_the_receive_ring_is_the_dma_engines_fault() {
        for before in ["000", "001", "010", "011"] {
            for full in ["100", "101"] {
                assert_eq!(after(&[before, full]), Some(DropCause::DmaDrop), "{before} {full}");
            }
        }
    }

    /// gem5net.f.drop_fsm: "RX ring was full first because the core is slow -> CoreDrop".
    #[test]
    fn a_receive_ring_that_fills_first_is_the_cores_fault() {
        for full in ["110", "111"] {
            assert_eq!(after(&["010", full]), Some(DropCause::CoreDrop), "{full}");
        }
    }

    /// gem5net.f.drop_fsm: "TX ring was full, stalling the core and then filling RX ring -> TxDrop".
    #[test]
    fn a_transmit_ring_that_fills_first_is_transmissions_fault() {
        for before in ["001", "011"] {
            for full in ["110", "111"] {
                assert_eq!(after(&[before, full]), Some(DropCause::TxDrop), "{before} {full}");
            }
        }
    }

    /// gem5net.f.drop_fsm: "from 000 with F=1 and R=1 arriving together, choose TxDrop if T=1 else CoreDrop".
    #[test]
    fn flags_that_come_together_tell_by_the_transmit_ring() {
        assert_eq!(after(&["000", "110"]), Some(DropCause::CoreDrop));
        assert_eq!(after(&["000", "111"]), Some(DropCause::TxDrop));
    }

    /// gem5net.f.drop_fsm: "While in a drop state and F stays 1, remain and keep counting to the same counter".
    #[test]
    fn a_cause_stays_while_the_buffer_is_full() {
        for (before, cause) in [("000", DropCause::DmaDrop), ("010", DropCause::CoreDrop), ("001", DropCause::TxDrop)] {
            let first = if cause == DropCause::DmaDrop { "100" } else { "110" };
            for later in ["100", "101", "110", "111"] {
                assert_eq!(after(&[before, first, later]), Some(cause), "{before} {first} {later}");
            }
        }
    }

    /// gem5net.f.drop_fsm: "when F has become 0, the next received packet moves the machine to the intermediate (or 000)
    /// state that matches R,T".
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
