//! Keys that belong to one scheduler of the memory controllers, or to one protocol of the LLC: who writes such a key beside
//! another choice reads one sentence, and who takes it from a preset or a platform reads none.

use crate::common::platforms;
use hostnet::config::resolve;
use hostnet::config::Scenario;
use std::path::PathBuf;

fn shipped(name: &str) -> String {
    std::fs::read_to_string(platforms().join(format!("../scenarios/{name}.toml"))).expect("a shipped scenario")
}

/// The shipped scenario `name` with these lines at its end.
fn with(name: &str, lines: &str) -> Result<Scenario, String> {
    resolve(&format!("{}\n{lines}\n", shipped(name)), "dir/test.toml", &[platforms()]).map_err(|e| e.to_string())
}

/// The sentence about it, without the name of the file.
fn refused(name: &str, lines: &str) -> String {
    let e = with(name, lines).map(drop).expect_err(lines);
    assert!(e.ends_with('.') && !e.contains(['\n', '`']), "{e}");
    e.strip_prefix("dir/test.toml: ").expect(&e).to_owned()
}

const COMMANDS: &str = "scheduler = \"hit_first\", \"first_ready\"";
const MODES: &str = "scheduler = \"hit_first\", \"first_ready\", \"transaction\"";
const ALL_BUT_QUEUES: &str = "scheduler = \"hit_first\", \"first_ready\", \"transaction\", \"on_arrival\"";
const QUEUES: &str = "quirks.bank_queue above 0";

/// Every key that a scheduler leaves without effect, written beside that scheduler.
#[test]
fn a_key_of_another_scheduler_is_refused_with_those_that_have_it() {
    let idle = format!("{MODES}, {QUEUES}");
    let of_modes = [
        ("writes_yield = true", MODES),
        ("refresh_turns = true", MODES),
        ("min_read_burst = 8", MODES),
        ("min_write_burst = 8", MODES),
        ("max_write_burst = 8", MODES),
        ("age_cap_ns = 500", COMMANDS),
    ];
    let of_rows = [("page_idle_ns = 100.0", ALL_BUT_QUEUES), ("entry_release = \"data\"", ALL_BUT_QUEUES)];
    let on_arrival = of_modes.into_iter().chain([("write_idle = 0.5", idle.as_str()), ("row_hit_limit = 4", QUEUES)]);
    let table = [
        ("hit_first", 0, vec![("row_hit_limit = 4", QUEUES)]),
        ("first_ready", 0, vec![("row_hit_limit = 4", QUEUES)]),
        ("transaction", 0, vec![("age_cap_ns = 500", COMMANDS), ("row_hit_limit = 4", QUEUES)]),
        ("on_arrival", 0, on_arrival.collect()),
        ("hit_first", 8, of_modes.into_iter().chain(of_rows).collect()),
    ];
    let mut seen = 0;
    for (scheduler, queue, keys) in table {
        for (line, owners) in keys {
            let said = refused(
                "quadrant1",
                &format!("[override.memory]\nscheduler = \"{scheduler}\"\n[override.memory.quirks]\nbank_queue = {queue}\n{line}"),
            );
            let here = match queue {
                0 => format!("scheduler = \"{scheduler}\""),
                n => format!("quirks.bank_queue = {n}, which takes the place of scheduler"),
            };
            let says =
                format!("override.memory.quirks.{line} has no effect with {here}; it is for {owners}; leave it out.");
            assert_eq!(said, says);
            seen += 1;
        }
    }
    assert_eq!(seen, 1 + 1 + 2 + 8 + 8);
    let queues = "has no effect with quirks.bank_queue = 8, which takes the place of scheduler; it is for scheduler = ";
    for line in ["write_low = 0.3", "scheduler = \"transaction\""] {
        let said = refused("quadrant1", &format!("[override.memory]\n{line}\nquirks.bank_queue = 8"));
        assert!(said.starts_with(&format!("override.memory.{line} {queues}")), "{said}");
    }
    for line in ["page_idle_ns = 100.0", "row_access_limit = 4"] {
        let said = refused("quadrant1", &format!("[override.memory]\npage_policy = \"closed\"\nquirks.{line}"));
        let closed = "has no effect with page_policy = \"closed\", which leaves no row open; leave it out.";
        assert_eq!(said, format!("override.memory.quirks.{line} {closed}"));
    }
    with("quadrant1", "[override.memory]\npage_policy = \"closed\"")
        .expect("a platform's own timer is nobody's mistake");
}

/// Combinations that cannot be meant, whoever wrote their parts.
#[test]
fn an_invalid_combination_is_refused_with_what_it_needs() {
    for (name, lines, says) in [
        (
            "quadrant1",
            "[override.memory]\nscheduler = \"transaction\"\nquirks.entry_release = \"activate\"",
            "platform.memory.quirks.entry_release = \"activate\" needs scheduler = \"hit_first\" or \"first_ready\"; with \"transaction\", ",
        ),
        (
            "quadrant1",
            "[override.memory]\nscheduler = \"on_arrival\"\nquirks.entry_release = \"activate\"",
            "platform.memory.quirks.entry_release = \"activate\" needs scheduler = \"hit_first\" or \"first_ready\"; with \"on_arrival\", ",
        ),
        ("quadrant1", "[override.memory.quirks]\nwrite_idle = 1.5", "platform.memory.quirks.write_idle = 1.5 is not within 0 to 1."),
        (
            "quadrant1",
            "[override.caches.llc.quirks]\nmodified_read = \"take\"\nread_hit = \"retain\"",
            "platform.caches.llc.quirks.modified_read = \"take\" needs role = \"victim\" and read_hit = \"migrate\".",
        ),
        (
            "quadrant1",
            "[override.caches.llc]\nrole = \"inclusive\"\nquirks.modified_read = \"take\"",
            "platform.caches.llc.quirks.modified_read = \"take\" needs role = \"victim\" and read_hit = \"migrate\".",
        ),
        (
            "quadrant1",
            "[override.caches.llc.quirks]\nupgrade_miss = \"fetch\"",
            "platform.caches.llc.quirks.upgrade_miss = \"fetch\" needs device_read = \"install\".",
        ),
        (
            "quadrant1",
            "[override.caches.llc]\nrole = \"strictly_inclusive\"\nquirks.inclusive_ways = 2",
            "platform.caches.llc.quirks.inclusive_ways = 2 is not within 0 to 0, what 11 ways of role = \"strictly_inclusive\" allow.",
        ),
    ] {
        let said = refused(name, lines);
        assert!(said.starts_with(says), "{said}");
    }
}

#[test]
fn a_key_of_another_llc_is_refused_with_the_choice_that_has_it() {
    for (lines, says) in [
        (
            "role = \"inclusive\"\nquirks.read_hit = \"migrate\"",
            "read_hit = \"migrate\" has no effect with role = \"inclusive\"; it is for role = \"victim\"; leave it out.",
        ),
        (
            "role = \"strictly_inclusive\"\nquirks.store_hit = \"retain\"",
            "store_hit = \"retain\" has no effect with role = \"strictly_inclusive\"; it is for role = \"victim\"; leave it out.",
        ),
        (
            "replacement = \"lru\"\nquirks.device_read_ages = true",
            "device_read_ages = true has no effect with replacement = \"lru\"; it is for replacement = \"srrip\"; leave it out.",
        ),
    ] {
        let said = refused("quadrant1", &format!("[override.caches.llc]\n{lines}"));
        assert_eq!(said, format!("override.caches.llc.quirks.{says}"));
    }
}

/// Values of a preset or of the platform, and defaults, are those of whoever chose them for another scheduler or protocol.
#[test]
fn values_that_only_a_preset_or_the_platform_has_are_left_alone() {
    for (name, lines) in [
        // The platform has bursts of 64, writes that yield, turns at refreshes and an idle time of rows.
        ("quadrant1", "[override.memory]\nscheduler = \"on_arrival\""),
        ("quadrant1", "[override.memory]\nscheduler = \"transaction\""),
        ("quadrant1", "[override.memory.quirks]\nbank_queue = 8"),
        ("quadrant1", "[override.memory]\nscheduler = \"on_arrival\"\nquirks.preset = \"gem5\""),
        ("quadrant1", "[override.memory]\nscheduler = \"on_arrival\"\nquirks.write_idle = 0"),
        ("quadrant1", "[override.caches.llc]\nrole = \"inclusive\""),
        ("quadrant1", "[override.caches.llc]\nrole = \"strictly_inclusive\"\nquirks.preset = \"zsim\""),
    ] {
        let found = with(name, lines).expect(lines);
        // The resolved form holds all values; it is whole, and is taken as it is.
        let form = serde_json::to_string(&found).expect("a scenario is JSON");
        assert_eq!(resolve(&form, "form.json", &[]).expect(lines), found);
    }
}

/// A file of a platform is written by its user, in parts or as a whole; its base is not.
#[test]
fn a_platform_s_own_keys_count_and_those_of_its_base_do_not() {
    let dir: PathBuf = std::env::temp_dir().join(format!("hostnet-choices-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let on = |keys: &str| {
        std::fs::write(dir.join("mine.toml"), format!("name = \"mine\"\nbase = \"cascadelake\"\n{keys}\n"))
            .expect("a file");
        let text = shipped("quadrant1").replacen("platform = \"cascadelake\"", "platform = \"mine\"", 1);
        assert!(text.contains("platform = \"mine\""), "{text}");
        resolve(&text, "dir/test.toml", &[dir.clone(), platforms()]).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(on("[memory]\nscheduler = \"on_arrival\""), Ok(()));
    let said = on("[memory]\nscheduler = \"on_arrival\"\nquirks.max_write_burst = 16")
        .expect_err("a key of another scheduler");
    let says = format!(
        "{}: memory.quirks.max_write_burst = 16 has no effect with scheduler = \"on_arrival\"; it is for {MODES}; leave it out.",
        dir.join("mine.toml").display()
    );
    assert_eq!(said, says);
    std::fs::remove_dir_all(dir).expect("a folder");
    let part = "[platform]\nname = \"cascadelake\"\nmemory.scheduler = \"transaction\"\nmemory.quirks.age_cap_ns = 9\n";
    let text = shipped("quadrant1").replacen("platform = \"cascadelake\"\n", "", 1) + "\n" + part;
    let said = resolve(&text, "dir/test.toml", &[platforms()]).map(drop).expect_err(part).to_string();
    assert_eq!(
        said,
        format!("dir/test.toml: platform.memory.quirks.age_cap_ns = 9 has no effect with scheduler = \"transaction\"; it is for {COMMANDS}; leave it out.")
    );
}
