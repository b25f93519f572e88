//! Tests of the protocol table: every row satisfies the invariants, and the memory system behaves as the rows say.

use crate::common::{small, Rig};
use hostnet::kernel::{CoreId, LineAddr, NodeId, Time};
use hostnet::memory::protocol::{
    transition, CopyState, DataHolder, DramAction, LineRequest, LlcAction, LlcProtocol, PrivateAction, Transition,
    HELD, REQUESTS,
};
use hostnet::memory::spec::{
    CleanVictim, DeviceRead, HierarchySpec, LlcRole, ModifiedRead, ReadHit, StoreHit, UpgradeMiss,
};
use hostnet::memory::{Agent, Inbound, Outbound, Sweep, TxnOp};

const VICTIM: LlcProtocol = LlcProtocol {
    role: LlcRole::Victim,
    read_hit: ReadHit::Retain,
    store_hit: StoreHit::Move,
    upgrade_miss: UpgradeMiss::Grant,
    modified_read: ModifiedRead::Share,
    device_read: DeviceRead::Snapshot,
    device_read_ages: false,
};
const ALL: [LlcProtocol; 10] = [
    VICTIM,
    LlcProtocol { read_hit: ReadHit::Migrate, ..VICTIM },
    LlcProtocol { role: LlcRole::Inclusive, ..VICTIM },
    LlcProtocol { role: LlcRole::StrictlyInclusive, ..VICTIM },
    LlcProtocol { store_hit: StoreHit::Retain, ..VICTIM },
    LlcProtocol { device_read: DeviceRead::Demote, ..VICTIM },
    LlcProtocol { read_hit: ReadHit::Migrate, device_read: DeviceRead::Demote, ..VICTIM },
    LlcProtocol { device_read: DeviceRead::Install, ..VICTIM },
    LlcProtocol { device_read: DeviceRead::Install, upgrade_miss: UpgradeMiss::Fetch, ..VICTIM },
    LlcProtocol { read_hit: ReadHit::Migrate, modified_read: ModifiedRead::Take, ..VICTIM },
];

fn every_row() -> impl Iterator<Item = (LlcProtocol, LineRequest, CopyState, CopyState, Transition)> {
    ALL.into_iter().flat_map(|h| {
        REQUESTS.into_iter().flat_map(move |r| {
            HELD.into_iter().flat_map(move |p| HELD.into_iter().map(move |l| (h, r, p, l, transition(r, p, l, h))))
        })
    })
}

#[test]
fn whoever_is_to_write_leaves_no_copy_with_others() {
    for (h, r, p, l, t) in every_row() {
        if matches!(r, LineRequest::Own | LineRequest::Stream | LineRequest::DmaWriteLlc | LineRequest::DmaWriteDram) {
            assert_eq!(t.private, PrivateAction::Drop, "{h:?} {r:?} {p:?} {l:?}");
        }
    }
}

#[test]
fn data_comes_from_the_newest_copy() {
    for (h, r, p, l, t) in every_row() {
        let newest = match (p, l) {
            (CopyState::Dirty, _) => DataHolder::Private,
            (_, CopyState::Nowhere) => DataHolder::Dram,
            _ => DataHolder::Llc,
        };
        match r {
            LineRequest::Read | LineRequest::Own => assert_eq!(t.data, newest, "{h:?} {r:?} {p:?} {l:?}"),
            // Private copies answer a device first, because they are never older.
            LineRequest::DmaRead if p != CopyState::Nowhere => assert_eq!(t.data, DataHolder::Private),
            LineRequest::DmaRead => assert_eq!(t.data, newest),
            LineRequest::Upgrade => assert!(t.data == newest || t.data == DataHolder::Nobody && p != CopyState::Dirty),
            LineRequest::DmaReadDram => {
                assert!(t.data == DataHolder::Dram && (t.dram == DramAction::Written || newest_is_clean(p, l)))
            }
            _ => assert_eq!(t.data, DataHolder::Nobody),
        }
    }
}

fn newest_is_clean(p: CopyState, l: CopyState) -> bool {
    p != CopyState::Dirty && l != CopyState::Dirty
}

#[test]
fn dirty_data_is_kept_given_on_overwritten_swept_or_written() {
    for (h, r, p, l, t) in every_row() {
        let at = format!("{h:?} {r:?} {p:?} {l:?}: {t:?}");
        let overwritten = matches!(
            r,
            LineRequest::Stream | LineRequest::DmaWriteLlc | LineRequest::DmaWriteDram | LineRequest::Sweep
        );
        if overwritten || t.dram == DramAction::Written {
            continue;
        }
        if l == CopyState::Dirty {
            assert!(!matches!(t.llc, LlcAction::Drop | LlcAction::Clean | LlcAction::FillClean), "{at}");
        }
        if p == CopyState::Dirty {
            assert!(
                t.private == PrivateAction::Stay || matches!(t.llc, LlcAction::FillDirty | LlcAction::HandOver),
                "{at}"
            );
        }
    }
}

/// A rig whose core 1 and LLC hold the line in the given states, and whose core 0 has a clean copy if it `upgrades`, if
/// the combination can occur.
fn rig_with(h: LlcProtocol, private: CopyState, llc: CopyState, upgrades: bool) -> Option<(Rig, LineAddr)> {
    let mut spec: HierarchySpec = small();
    (spec.llc.role, spec.llc.quirks.read_hit, spec.llc.quirks.clean_victim) = (h.role, h.read_hit, CleanVictim::Drop);
    (spec.llc.quirks.store_hit, spec.llc.quirks.device_read, spec.llc.quirks.modified_read) =
        (h.store_hit, h.device_read, h.modified_read);
    spec.llc.quirks.upgrade_miss = h.upgrade_miss;
    let mut r = Rig::new(&spec, 0b1111);
    let line = r.shared + 3;
    if llc != CopyState::Nowhere {
        r.device_writes(Agent::Io, line, 1, Inbound::Llc { ways: 0b11 });
    }
    match private {
        CopyState::Nowhere => {}
        CopyState::Clean => drop(r.access(1, line, false)),
        CopyState::Dirty => drop(r.access(1, line, true)),
    }
    if llc == CopyState::Clean {
        let keeps = r.m.mem.private_copy(CoreId(1), line);
        r.m.mem.on_sweep(&mut r.m.cal, line, Sweep::WriteBack, r.m.now);
        r.settle();
        if keeps == CopyState::Dirty {
            // The core writes again.
            r.access(1, line, true);
        }
    }
    if llc == CopyState::Nowhere {
        let now = r.m.now;
        r.m.mem.force_out(&mut r.m.cal, line, now);
        r.settle();
    }
    if upgrades {
        let installs = h.device_read == DeviceRead::Install;
        if private == CopyState::Dirty || !installs && private == CopyState::Nowhere {
            return None; // no other cache has a copy, so that no request is made
        }
        r.access(0, line, false);
        if installs {
            r.device_reads(Agent::Io, line, 1, Outbound::Nearest);
        }
        if llc == CopyState::Nowhere {
            let now = r.m.now;
            r.m.mem.force_out(&mut r.m.cal, line, now);
            r.settle();
        }
    }
    let mine = if upgrades { CopyState::Clean } else { CopyState::Nowhere };
    let there = r.m.mem.private_copy(CoreId(1), line) == private
        && r.m.mem.llc_copy(NodeId(0), line) == llc
        && r.m.mem.private_copy(CoreId(0), line) == mine;
    r.m.now += Time::us(1);
    there.then_some((r, line))
}

/// The behaviour of the memory system, as a row of the table.
fn observe(r: &mut Rig, line: LineAddr, ask: LineRequest) -> (CopyState, CopyState, CopyState, u64, u64) {
    let writes = |r: &Rig| r.m.mem.stats.ledger.written;
    let reads = |r: &Rig| r.dram_transfers() - r.m.mem.stats.ledger.written;
    let before = (reads(r), writes(r));
    match ask {
        LineRequest::Read => drop(r.access(0, line, false)),
        LineRequest::Own | LineRequest::Upgrade => drop(r.access(0, line, true)),
        LineRequest::Stream => {
            r.request(0, line, TxnOp::Stream);
            r.settle();
        }
        LineRequest::DmaRead => r.device_reads(Agent::Io, line, 1, Outbound::Nearest),
        LineRequest::DmaReadDram => r.device_reads(Agent::Nic, line, 1, Outbound::Dram),
        LineRequest::DmaWriteLlc => r.device_writes(Agent::Nic, line, 1, Inbound::Llc { ways: 0b11 }),
        LineRequest::DmaWriteDram => r.device_writes(Agent::Io, line, 1, Inbound::Dram),
        LineRequest::Sweep | LineRequest::Flush | LineRequest::Clean => {
            let op = [Sweep::Sweep, Sweep::Flush, Sweep::WriteBack];
            let i = [LineRequest::Sweep, LineRequest::Flush, LineRequest::Clean]
                .iter()
                .position(|x| *x == ask)
                .expect("one of");
            r.m.mem.on_sweep(&mut r.m.cal, line, op[i], r.m.now);
            r.settle();
        }
    }
    let mem = &r.m.mem;
    (
        mem.private_copy(CoreId(0), line),
        mem.private_copy(CoreId(1), line),
        mem.llc_copy(NodeId(0), line),
        reads(r) - before.0,
        writes(r) - before.1,
    )
}

#[test]
fn the_memory_system_does_what_every_row_says() {
    let mut rows = 0;
    for (h, ask, private, llc, t) in every_row() {
        let Some((mut r, line)) = rig_with(h, private, llc, ask == LineRequest::Upgrade) else { continue };
        rows += 1;
        let (mine, others, left, reads, writes) = observe(&mut r, line, ask);
        let at = format!("{h:?} {ask:?}, others {private:?}, LLC {llc:?}: {t:?}");
        let kept = match t.private {
            PrivateAction::Stay => private,
            PrivateAction::Share if private == CopyState::Nowhere => CopyState::Nowhere,
            PrivateAction::Share => CopyState::Clean,
            PrivateAction::Drop => CopyState::Nowhere,
        };
        assert_eq!(others, kept, "core 1 after {at}");
        let llc_after = match t.llc {
            LlcAction::Stay => llc,
            LlcAction::FillClean => CopyState::Clean,
            LlcAction::FillDirty => CopyState::Dirty,
            LlcAction::HandOver | LlcAction::Drop => CopyState::Nowhere,
            LlcAction::Clean if llc == CopyState::Nowhere => CopyState::Nowhere,
            LlcAction::Clean => CopyState::Clean,
        };
        assert_eq!(left, llc_after, "the LLC after {at}");
        let given = matches!(t.llc, LlcAction::HandOver) && (llc == CopyState::Dirty || private == CopyState::Dirty);
        let wants = match ask {
            LineRequest::Own | LineRequest::Upgrade => CopyState::Dirty,
            LineRequest::Read if given => CopyState::Dirty,
            LineRequest::Read => CopyState::Clean,
            _ => CopyState::Nowhere,
        };
        assert_eq!(mine, wants, "core 0 after {at}");
        assert_eq!(reads, u64::from(t.data == DataHolder::Dram), "reads of DRAM for {at}");
        assert_eq!(writes > 0, t.dram == DramAction::Written, "writes of DRAM for {at}");
        r.m.mem.check().unwrap_or_else(|e| panic!("{at}: {e}"));
        assert_eq!(r.m.mem.in_flight(), 0, "{at}");
    }
    // The other rows cannot occur: a victim cache gives a line away when a core takes it, and no core has a line that a
    // strictly inclusive LLC lacks.
    assert!(rows >= 480, "{rows} of 990 rows have been seen");
}
