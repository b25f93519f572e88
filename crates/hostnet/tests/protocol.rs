//! Tests of the protocol table: every row satisfies the invariants, and the memory system does what the rows say.

use crate::common::{small, Rig};
use hostnet::kernel::{CoreId, LineAddr, NodeId, Time};
use hostnet::memory::protocol::{
    transition, Data, Dram, Habits, Held, Llc, Private, Request, Transition, HELD, REQUESTS,
};
use hostnet::memory::spec::{
    CleanVictim, DeviceRead, HierarchySpec, LlcRole, ModifiedRead, ReadHit, StoreHit, UpgradeMiss,
};
use hostnet::memory::{Agent, Inbound, Op, Outbound, Sweep};

const VICTIM: Habits = Habits {
    role: LlcRole::Victim,
    read_hit: ReadHit::Retain,
    store_hit: StoreHit::Move,
    upgrade_miss: UpgradeMiss::Grant,
    modified_read: ModifiedRead::Share,
    device_read: DeviceRead::Snapshot,
    device_read_ages: false,
};
const ALL: [Habits; 10] = [
    VICTIM,
    Habits { read_hit: ReadHit::Migrate, ..VICTIM },
    Habits { role: LlcRole::Inclusive, ..VICTIM },
    Habits { role: LlcRole::StrictlyInclusive, ..VICTIM },
    Habits { store_hit: StoreHit::Retain, ..VICTIM },
    Habits { device_read: DeviceRead::Demote, ..VICTIM },
    Habits { read_hit: ReadHit::Migrate, device_read: DeviceRead::Demote, ..VICTIM },
    Habits { device_read: DeviceRead::Install, ..VICTIM },
    Habits { device_read: DeviceRead::Install, upgrade_miss: UpgradeMiss::Fetch, ..VICTIM },
    Habits { read_hit: ReadHit::Migrate, modified_read: ModifiedRead::Take, ..VICTIM },
];

fn every_row() -> impl Iterator<Item = (Habits, Request, Held, Held, Transition)> {
    ALL.into_iter().flat_map(|h| {
        REQUESTS.into_iter().flat_map(move |r| {
            HELD.into_iter().flat_map(move |p| HELD.into_iter().map(move |l| (h, r, p, l, transition(r, p, l, h))))
        })
    })
}

#[test]
fn whoever_is_to_write_leaves_no_copy_with_others() {
    for (h, r, p, l, t) in every_row() {
        if matches!(r, Request::Own | Request::Stream | Request::DmaWriteLlc | Request::DmaWriteDram) {
            assert_eq!(t.private, Private::Drop, "{h:?} {r:?} {p:?} {l:?}");
        }
    }
}

#[test]
fn data_comes_from_the_newest_copy() {
    for (h, r, p, l, t) in every_row() {
        let newest = match (p, l) {
            (Held::Dirty, _) => Data::Private,
            (_, Held::Nowhere) => Data::Dram,
            _ => Data::Llc,
        };
        match r {
            Request::Read | Request::Own => assert_eq!(t.data, newest, "{h:?} {r:?} {p:?} {l:?}"),
            // Private copies answer a device first: what they have is never older.
            Request::DmaRead if p != Held::Nowhere => assert_eq!(t.data, Data::Private),
            Request::DmaRead => assert_eq!(t.data, newest),
            Request::Upgrade => assert!(t.data == newest || t.data == Data::Nobody && p != Held::Dirty),
            Request::DmaReadDram => assert!(t.data == Data::Dram && (t.dram == Dram::Written || newest_is_clean(p, l))),
            _ => assert_eq!(t.data, Data::Nobody),
        }
    }
}

fn newest_is_clean(p: Held, l: Held) -> bool {
    p != Held::Dirty && l != Held::Dirty
}

#[test]
fn dirty_data_is_kept_given_on_overwritten_swept_or_written() {
    for (h, r, p, l, t) in every_row() {
        let at = format!("{h:?} {r:?} {p:?} {l:?}: {t:?}");
        let overwritten = matches!(r, Request::Stream | Request::DmaWriteLlc | Request::DmaWriteDram | Request::Sweep);
        if overwritten || t.dram == Dram::Written {
            continue;
        }
        if l == Held::Dirty {
            assert!(!matches!(t.llc, Llc::Drop | Llc::Clean | Llc::FillClean), "{at}");
        }
        if p == Held::Dirty {
            assert!(t.private == Private::Stay || matches!(t.llc, Llc::FillDirty | Llc::Give), "{at}");
        }
    }
}

/// A rig whose core 1 and LLC hold the line so, and core 0 a clean copy if it `upgrades`, if that can come about.
fn rig_with(h: Habits, private: Held, llc: Held, upgrades: bool) -> Option<(Rig, LineAddr)> {
    let mut spec: HierarchySpec = small();
    (spec.llc.role, spec.llc.read_hit, spec.llc.clean_victim) = (h.role, h.read_hit, CleanVictim::Drop);
    (spec.llc.store_hit, spec.llc.device_read, spec.llc.modified_read) = (h.store_hit, h.device_read, h.modified_read);
    spec.llc.upgrade_miss = h.upgrade_miss;
    let mut r = Rig::new(&spec, 0b1111);
    let line = r.shared + 3;
    if llc != Held::Nowhere {
        r.device_writes(Agent::Io, line, 1, Inbound::Llc { ways: 0b11 });
    }
    match private {
        Held::Nowhere => {}
        Held::Clean => drop(r.access(1, line, false)),
        Held::Dirty => drop(r.access(1, line, true)),
    }
    if llc == Held::Clean {
        let keeps = r.m.mem.private_copy(CoreId(1), line);
        r.m.mem.on_sweep(&mut r.m.cal, line, Sweep::WriteBack, r.m.now);
        r.settle();
        if keeps == Held::Dirty {
            // The core writes again.
            r.access(1, line, true);
        }
    }
    if llc == Held::Nowhere {
        let now = r.m.now;
        r.m.mem.force_out(&mut r.m.cal, line, now);
        r.settle();
    }
    if upgrades {
        let installs = h.device_read == DeviceRead::Install;
        if private == Held::Dirty || !installs && private == Held::Nowhere {
            return None; // nobody else has a copy, so that no request is made
        }
        r.access(0, line, false);
        if installs {
            r.device_reads(Agent::Io, line, 1, Outbound::Nearest);
        }
        if llc == Held::Nowhere {
            let now = r.m.now;
            r.m.mem.force_out(&mut r.m.cal, line, now);
            r.settle();
        }
    }
    let mine = if upgrades { Held::Clean } else { Held::Nowhere };
    let there = r.m.mem.private_copy(CoreId(1), line) == private
        && r.m.mem.llc_copy(NodeId(0), line) == llc
        && r.m.mem.private_copy(CoreId(0), line) == mine;
    r.m.now += Time::us(1);
    there.then_some((r, line))
}

/// What the memory system does, as a row.
fn observe(r: &mut Rig, line: LineAddr, ask: Request) -> (Held, Held, Held, u64, u64) {
    let writes = |r: &Rig| r.m.mem.stats.ledger.written;
    let reads = |r: &Rig| r.dram_transfers() - r.m.mem.stats.ledger.written;
    let before = (reads(r), writes(r));
    match ask {
        Request::Read => drop(r.access(0, line, false)),
        Request::Own | Request::Upgrade => drop(r.access(0, line, true)),
        Request::Stream => {
            r.request(0, line, Op::Stream);
            r.settle();
        }
        Request::DmaRead => r.device_reads(Agent::Io, line, 1, Outbound::Nearest),
        Request::DmaReadDram => r.device_reads(Agent::Nic, line, 1, Outbound::Dram),
        Request::DmaWriteLlc => r.device_writes(Agent::Nic, line, 1, Inbound::Llc { ways: 0b11 }),
        Request::DmaWriteDram => r.device_writes(Agent::Io, line, 1, Inbound::Dram),
        Request::Sweep | Request::Flush | Request::Clean => {
            let op = [Sweep::Sweep, Sweep::Flush, Sweep::WriteBack];
            let i = [Request::Sweep, Request::Flush, Request::Clean].iter().position(|x| *x == ask).expect("one of");
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
        let Some((mut r, line)) = rig_with(h, private, llc, ask == Request::Upgrade) else { continue };
        rows += 1;
        let (mine, others, left, reads, writes) = observe(&mut r, line, ask);
        let at = format!("{h:?} {ask:?}, others {private:?}, LLC {llc:?}: {t:?}");
        let kept = match t.private {
            Private::Stay => private,
            Private::Share if private == Held::Nowhere => Held::Nowhere,
            Private::Share => Held::Clean,
            Private::Drop => Held::Nowhere,
        };
        assert_eq!(others, kept, "core 1 after {at}");
        let llc_after = match t.llc {
            Llc::Stay => llc,
            Llc::FillClean => Held::Clean,
            Llc::FillDirty => Held::Dirty,
            Llc::Give | Llc::Drop => Held::Nowhere,
            Llc::Clean if llc == Held::Nowhere => Held::Nowhere,
            Llc::Clean => Held::Clean,
        };
        assert_eq!(left, llc_after, "the LLC after {at}");
        let given = matches!(t.llc, Llc::Give) && (llc == Held::Dirty || private == Held::Dirty);
        let wants = match ask {
            Request::Own | Request::Upgrade => Held::Dirty,
            Request::Read if given => Held::Dirty,
            Request::Read => Held::Clean,
            _ => Held::Nowhere,
        };
        assert_eq!(mine, wants, "core 0 after {at}");
        assert_eq!(reads, u64::from(t.data == Data::Dram), "reads of DRAM for {at}");
        assert_eq!(writes > 0, t.dram == Dram::Written, "writes of DRAM for {at}");
        r.m.mem.check().unwrap_or_else(|e| panic!("{at}: {e}"));
        assert_eq!(r.m.mem.in_flight(), 0, "{at}");
    }
    // The others cannot come about: a victim cache gives a line away when a core takes it, and beside a strictly
    // inclusive one no core has what it has not.
    assert!(rows >= 480, "{rows} of 990 rows have been seen");
}
