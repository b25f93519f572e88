//! Classification of packet drops by cause: a state machine over three flags that are sampled with every packet,
//! receive buffer full (F), receive ring full (R) and transmit ring full (T).
//!
//! The first loss of an episode depends on the rings that were full before. Each further loss is classified anew, by
//! the rings that are full at its time, as in the release of "Userspace Networking in gem5" (ISPASS 2024,
//! dev/net/i8254xGBe.cc, `updateDropFSM`).

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

/// State of the drop-cause machine: the rings that were full while no packet was lost, or the cause of the
/// last loss.
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
    /// The last packet was lost because the DMA engine is too slow: the receive ring had room.
    Dma,
    /// The last packet was lost because the core is too slow: the receive ring was full, or had been full before the
    /// receive buffer was.
    Core,
    /// The last packet was lost because transmission is too slow: both rings were full.
    Stalled,
}

use DropState::{Balanced, Both, Core, Dma, Receive, Stalled, Transmit};

/// Next state by the present state and by the flags R and T of a packet that finds the receive buffer full.
const FULL: [(DropState, [DropState; 4]); 7] = [
    //            RT = 00   01       10    11
    (Balanced, [Dma, Dma, Core, Stalled]),
    (Transmit, [Dma, Dma, Core, Stalled]),
    (Receive, [Core; 4]),
    (Both, [Core, Core, Core, Stalled]),
    (Dma, [Dma, Dma, Core, Stalled]),
    (Core, [Dma, Dma, Core, Stalled]),
    (Stalled, [Dma, Dma, Core, Stalled]),
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

    /// The table of the release: states A to H stand for the flags F, R and T of the packet before, and the letters in
    /// a row for the cause of a loss with R and T = 00, 01, 10 and 11 (dma, core, tx).
    #[test]
    fn each_loss_has_the_cause_that_the_release_gives_it() {
        let release = [
            ("000", "ddct"),
            ("001", "ddct"),
            ("010", "cccc"),
            ("011", "ccct"),
            ("100", "ddct"),
            ("101", "ddct"),
            ("110", "ddct"),
            ("111", "ddct"),
        ];
        for (before, causes) in release {
            for (full, cause) in ["100", "101", "110", "111"].into_iter().zip(causes.chars()) {
                let expected = match cause {
                    'd' => DropCause::DmaDrop,
                    'c' => DropCause::CoreDrop,
                    _ => DropCause::TxDrop,
                };
                assert_eq!(after(&[before, full]), Some(expected), "{before} {full}");
            }
        }
    }

    /// A buffer that filled up behind a full receive ring is the core's fault, although the ring has room by then; the
    /// next loss, with the ring still not full, is the DMA engine's.
    #[test]
    fn the_next_loss_of_an_episode_has_a_cause_of_its_own() {
        assert_eq!(after(&["010", "100"]), Some(DropCause::CoreDrop));
        assert_eq!(after(&["010", "100", "100"]), Some(DropCause::DmaDrop));
        assert_eq!(after(&["010", "100", "100", "110"]), Some(DropCause::CoreDrop));
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
