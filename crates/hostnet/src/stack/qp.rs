//! Queue pairs: a busy-polled completion queue, a work queue, and buffers that go back to their ring
//! (Sweeper, section III).

use crate::core::{Op, Program};
use crate::placement::sweeper;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Instructions of the queue-pair library per packet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QpSpec {
    /// Taking a packet off the completion queue.
    pub poll_instructions: u32,
    /// Writing a work queue entry.
    pub post_instructions: u32,
    /// Returning a receive buffer.
    pub free_instructions: u32,
}

/// Side effects that a program's `Op::Retire` carries, with the packet they are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The reply is posted to the NIC.
    Post,
    /// The receive buffer returns to the ring.
    FreeRx,
    /// The request is done; nothing is sent.
    Done,
}

impl Effect {
    pub fn tag(self, packet: u32) -> u32 {
        packet << 2 | self as u32
    }
    pub fn of(tag: u32) -> (Effect, u32) {
        ([Effect::Post, Effect::FreeRx, Effect::Done][(tag & 3) as usize], tag >> 2)
    }
}

/// What the application did with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A reply waits in a transmit buffer.
    Reply,
    /// The receive buffer itself is to be sent.
    Forward,
    /// Nothing to send.
    Consumed,
}

impl QpSpec {
    pub fn begin(&self, program: &mut Program) {
        program.compute(self.poll_instructions);
    }

    /// Relinquishes the receive buffer if asked, posts the reply and returns the buffer, in that order.
    /// `rx` is the received packet's first line and its lines.
    pub fn end(&self, program: &mut Program, packet: u32, rx: (u64, u32), o: Outcome, sweep: bool) {
        if o != Outcome::Consumed {
            program.compute(self.post_instructions);
            program.push(Op::Retire { tag: Effect::Post.tag(packet), stores: true });
        }
        if o == Outcome::Forward {
            return; // the buffer is free once the NIC has sent it
        }
        if sweep {
            sweeper::relinquish(program, rx.0, rx.1);
        }
        program.compute(self.free_instructions);
        program.push(Op::Retire { tag: Effect::FreeRx.tag(packet), stores: false });
        if o == Outcome::Consumed {
            program.push(Op::Retire { tag: Effect::Done.tag(packet), stores: true });
        }
    }
}
