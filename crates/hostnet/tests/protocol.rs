//! Tests of the protocol table: every row satisfies the invariants, and the memory system behaves as the rows say.

use crate::common::{small, Rig};
use hostnet::kernel::{CoreId, LineAddr, NodeId, Time};
use hostnet::memory::array::Replacement;
use hostnet::memory::protocol::{
    transition, CopyState, DataHolder, DramAction, LineRequest, LlcAction, LlcProtocol, PrivateAction, Transition,
    HELD, REQUESTS,
};
use hostnet::memory::spec::{
    CleanVictim, DeviceRead, HierarchySpec, LlcRole, LlcSpec, ModifiedRead, ReadHit, StoreHit, UpgradeMiss,
};
use hostnet::memory::{Agent, Inbound, Outbound, Sweep, TxnOp};

/// Hierarchies whose LLCs differ in their protocols.
fn hierarchies() -> [HierarchySpec; 10] {
    let of = |change: fn(&mut LlcSpec)| {
        let mut h = small();
        h.llc.quirks.clean_victim = CleanVictim::Drop;
        change(&mut h.llc);
        h
    };
    [
        of(|_| ()),
        of(|llc| llc.quirks.read_hit = ReadHit::Migrate),
        of(|llc| llc.role = LlcRole::Inclusive),
        of(|llc| llc.role = LlcRole::StrictlyInclusive),
        of(|llc| llc.quirks.store_hit = StoreHit::Retain),
        of(|llc| llc.quirks.device_read = DeviceRead::Demote),
        of(|llc| (llc.quirks.read_hit, llc.quirks.device_read) = (ReadHit::Migrate, DeviceRead::Demote)),
        of(|llc| llc.quirks.device_read = DeviceRead::Install),
        of(|llc| (llc.quirks.device_read, llc.quirks.upgrade_miss) = (DeviceRead::Install, UpgradeMiss::Fetch)),
        of(|llc| (llc.quirks.read_hit, llc.quirks.modified_read) = (ReadHit::Migrate, ModifiedRead::Take)),
    ]
}

fn protocol(h: &HierarchySpec) -> LlcProtocol {
    LlcProtocol::of(&h.llc).expect("a valid protocol")
}

fn every_row() -> impl Iterator<Item = (LlcProtocol, LineRequest, CopyState, CopyState, Transition)> {
    hierarchies().into_iter().flat_map(|h| rows_of(protocol(&h)))
}

fn rows_of(h: LlcProtocol) -> impl Iterator<Item = (LlcProtocol, LineRequest, CopyState, CopyState, Transition)> {
    REQUESTS.into_iter().flat_map(move |r| {
        HELD.into_iter().flat_map(move |p| HELD.into_iter().map(move |l| (h, r, p, l, transition(r, p, l, h))))
    })
}

/// Each key of the protocol with its other values, in each protocol: the plan changes, or the key is said to be without
/// effect, or the combination is refused.
#[test]
fn a_key_that_is_not_of_a_protocol_cannot_change_it() {
    type Change = fn(&mut LlcSpec, bool);
    let keys: [(&str, Change); 6] = [
        ("read_hit", |llc, a| llc.quirks.read_hit = if a { ReadHit::Migrate } else { ReadHit::Retain }),
        ("store_hit", |llc, a| llc.quirks.store_hit = if a { StoreHit::Retain } else { StoreHit::Move }),
        ("inclusive_ways", |llc, a| llc.quirks.inclusive_ways = u32::from(a)),
        ("device_read_ages", |llc, a| llc.quirks.device_read_ages = a),
        ("upgrade_miss", |llc, a| llc.quirks.upgrade_miss = if a { UpgradeMiss::Fetch } else { UpgradeMiss::Grant }),
        ("modified_read", |llc, a| llc.quirks.modified_read = if a { ModifiedRead::Take } else { ModifiedRead::Share }),
    ];
    let srrip = |mut h: HierarchySpec| {
        h.llc.replacement = Replacement::Srrip;
        h
    };
    let (mut changed, mut unused, mut refused) = (0, 0, 0);
    for h in hierarchies().into_iter().chain(hierarchies().map(srrip)) {
        for (key, change) in keys {
            for a in [false, true] {
                let mut other = h.llc.clone();
                change(&mut other, a);
                if other == h.llc {
                    continue;
                }
                match (LlcProtocol::of(&other), other.unused(key)) {
                    (Ok(new), Some(why)) => {
                        assert_eq!(new, protocol(&h), "{key}: {why}");
                        unused += 1;
                    }
                    (Ok(new), None) => {
                        assert_ne!(new, protocol(&h), "{key} in {h:?}");
                        changed += 1;
                    }
                    (Err(_), _) => refused += 1,
                }
            }
        }
    }
    // Of ten protocols, two are not of a victim LLC, two install lines, three migrate lines, and one takes modified ones: it
    // cannot do so without migrating. Half of all have SRRIP.
    assert_eq!((changed, unused, refused), (2 * (7 + 8 + 8 + 2 + 3) + 10, 2 * (2 + 2) + 10, 2 * (1 + 2 + 8 + 7)));
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
fn rig_with(spec: &HierarchySpec, private: CopyState, llc: CopyState, upgrades: bool) -> Option<(Rig, LineAddr)> {
    let mut r = Rig::new(spec, 0b1111);
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
        let installs = spec.llc.quirks.device_read == DeviceRead::Install;
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
    let of = |spec: HierarchySpec| rows_of(protocol(&spec)).map(move |row| (spec.clone(), row));
    for (spec, (h, ask, private, llc, t)) in hierarchies().into_iter().flat_map(of) {
        let Some((mut r, line)) = rig_with(&spec, private, llc, ask == LineRequest::Upgrade) else { continue };
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
