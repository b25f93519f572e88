//! Tests of plans: each scheduler has the keys that change what it does, and no others.

use super::super::plan::SchedulerPlan;
use super::*;
use serde_json::{json, Value};
use std::collections::BTreeSet;

/// Keys that some scheduler has, each with other values than those of `base`.
fn values() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("scheduler", vec![json!("hit_first"), json!("first_ready"), json!("transaction"), json!("on_arrival")]),
        ("write_low", vec![json!(0.0), json!(0.7)]),
        ("write_idle", vec![json!(0.5), json!(1.0)]),
        ("writes_yield", vec![json!(true)]),
        ("refresh_turns", vec![json!(true)]),
        ("min_read_burst", vec![json!(64)]),
        ("min_write_burst", vec![json!(16)]),
        ("max_write_burst", vec![json!(2)]),
        ("age_cap_ns", vec![json!(0), json!(40)]),
        ("page_idle_ns", vec![json!(20.0)]),
        ("entry_release", vec![json!("activate"), json!("data")]),
        ("bank_queue", vec![json!(0), json!(1), json!(3)]),
        ("row_hit_limit", vec![json!(1)]),
    ]
}

fn base(scheduler: Scheduler, bank_queue: u32) -> DramSpec {
    let quirks = DramQuirks { bank_queue, refresh: true, age_cap_ns: 2000, ..quiet().quirks };
    DramSpec { scheduler, ranks: 2, rpq: 16, wpq: 16, write_high: 0.8, write_low: 0.2, quirks, ..quiet() }
}

fn with(spec: &DramSpec, key: &str, value: &Value) -> DramSpec {
    let mut table = serde_json::to_value(spec).unwrap();
    let quirk = table["quirks"].get(key).is_some();
    *(if quirk { &mut table["quirks"][key] } else { &mut table[key] }) = value.clone();
    serde_json::from_value(table).unwrap()
}

/// Commands and completions of random requests with bursts, gaps and rows in favour, over several refreshes.
fn behaviour(spec: &DramSpec) -> (Vec<(u64, DramCommand, usize)>, Vec<u64>, Stats) {
    let mut b = Bench::new(spec);
    let mut rng = RandomStream::new(3, "dram test", 0);
    let mut clock = 0;
    for _ in 0..4000 {
        clock += if rng.below(40) == 0 { 300 } else { rng.below(9) };
        let write = rng.below(5) < 2;
        while !b.ch.ch.can_accept(write) {
            clock += 1;
            b.run(clock);
        }
        b.at(clock, write, 5 * rng.below(6) as u8, u32::from(rng.below(6) == 0));
    }
    b.run(clock + 100_000);
    let times = b.done.iter().map(|d| d.at.0).collect();
    (b.ch.ch.log.clone(), times, b.ch.ch.stats(b.ch.ch.clock))
}

#[test]
fn k01_a_scheduler_has_the_keys_that_change_what_it_does_and_ignores_or_refuses_the_others() {
    use Scheduler::{FirstReady, HitFirst, OnArrival, Transaction};
    let of_plans: BTreeSet<String> = SchedulerPlan::choices()
        .flat_map(|(_, plan)| serde_json::to_value(plan).unwrap().as_object().unwrap().clone())
        .map(|(key, _)| key)
        .chain(["scheduler".into()])
        .collect();
    assert_eq!(of_plans, values().into_iter().map(|(key, _)| key.into()).collect());
    let (mut effective, mut refused) = (0, Vec::new());
    for (scheduler, bank_queue) in [(HitFirst, 0), (FirstReady, 0), (Transaction, 0), (OnArrival, 0), (HitFirst, 8)] {
        let own = base(scheduler, bank_queue);
        let (plan, before) = (own.plan().unwrap().scheduler, behaviour(&own));
        for (key, values) in values() {
            let (mut changes, mut valid) = (0, 0);
            for value in values {
                let other = with(&own, key, &value);
                if other == own {
                    continue;
                }
                let at = format!("{key} = {value} with {scheduler:?} and bank_queue = {bank_queue}");
                match (other.plan(), other.unused(key)) {
                    (Err(why), _) => refused.push(why),
                    (Ok(new), Some(why)) if bank_queue == 0 || key != "bank_queue" => {
                        assert_eq!(new.scheduler, plan, "{at}: {why}");
                    }
                    (Ok(_), _) => {
                        valid += 1;
                        changes += u32::from(behaviour(&other) != before);
                    }
                }
            }
            assert!(valid == 0 || changes > 0, "{key} has no effect with {scheduler:?} and bank_queue = {bank_queue}");
            effective += u32::from(changes > 0);
        }
    }
    // Ten keys of hit_first and first_ready besides `scheduler` and the number of command queues, nine of transaction, three of
    // on_arrival, and three of command queues.
    assert_eq!(effective, 2 * 12 + 11 + 5 + 3);
    // A transaction, and a request on arrival, are never between their activate and their column command.
    let needs = "quirks.entry_release = \"activate\" needs scheduler = \"hit_first\" or \"first_ready\"";
    assert_eq!(refused.iter().filter(|why| why.starts_with(needs)).count(), 2, "{refused:?}");
    assert_eq!(refused.len(), 2);
}

#[test]
fn k02_a_key_of_other_schedulers_names_those_that_have_it() {
    let of = |scheduler, bank_queue, key| base(scheduler, bank_queue).unused(key);
    let says = |text: &str| Some(text.to_owned());
    assert_eq!(
        of(Scheduler::Transaction, 0, "age_cap_ns"),
        says("has no effect with scheduler = \"transaction\"; it is for scheduler = \"hit_first\", \"first_ready\"")
    );
    assert_eq!(
        of(Scheduler::FirstReady, 8, "scheduler"),
        says(
            "has no effect with quirks.bank_queue = 8, which takes the place of scheduler; it is for scheduler = \"hit_first\", \
             \"first_ready\", \"transaction\", \"on_arrival\""
        )
    );
    assert_eq!(
        of(Scheduler::OnArrival, 0, "row_hit_limit"),
        says("has no effect with scheduler = \"on_arrival\"; it is for quirks.bank_queue above 0")
    );
    for (scheduler, bank_queue, key) in [
        (Scheduler::HitFirst, 0, "age_cap_ns"),
        (Scheduler::OnArrival, 0, "write_low"),
        (Scheduler::OnArrival, 0, "rpq"),
        (Scheduler::Transaction, 8, "row_hit_limit"),
    ] {
        assert_eq!(of(scheduler, bank_queue, key), None, "{key}");
    }
}
