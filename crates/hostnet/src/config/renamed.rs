//! Renamed and moved keys and renamed choices: for one version hostnet accepts the old name, with a warning that names
//! the new one.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Old and new name of a key or a choice, as `RENAMED` has them.
pub type Renamed = (Cow<'static, str>, Cow<'static, str>);

/// Old and new name of each renamed key (`path`, then the key's new name) and of each renamed choice (`path = word`,
/// then the new word). A new name with a dot is a path below the old key's table. A path names the tables from the scenario's root, without indices or kinds; a platform's keys
/// begin with `platform`, in a scenario and in a platform's file.
const RENAMED: &[(&str, &str)] = &[
    ("tenant.app.between", "gap_instructions"),
    ("platform.nodes.protocol", "quirks"),
    ("tenant.app.costs", "quirks"),
    ("platform.caches.llc.quirks.writebacks = at_once", "immediate"),
    ("platform.caches.llc.write_order = turns", "round_robin"),
    ("platform.memory.quirks.overflow = apart", "separate"),
    ("traffic.spread = turns", "round_robin"),
    ("tenant.app.order = drawn", "random"),
];

/// Tables, and their keys that are in the table `quirks` below them since this version.
const MOVED: &[(&[&str], &[&str])] = &[
    (&["platform.poll_mode"], &["receive_branches", "transmit_branches", "poll_serialises", "free_serialises"]),
    (&["ccnic", "tenant.ccnic", "platform.ccnic"], &["metadata", "free_threshold"]),
    (&["platform.iio"], &["register_answer"]),
    (&["platform.core"], &["rob_holds", "serialise_cycles", "taken_branch_cycles"]),
    (&["platform.tcp"], &["piece", "line", "head", "poll_budget", "merge"]),
    (
        &["peripheral"],
        &[
            "overhead",
            "message_overhead",
            "pause_response",
            "transmit_buffer",
            "xoff",
            "xon",
            "interleave",
            "command_latency",
        ],
    ),
    (
        &["platform.caches.llc"],
        &[
            "read_hit",
            "store_hit",
            "upgrade_miss",
            "modified_read",
            "clean_victim",
            "clean_victim_cleans",
            "write_back_uses",
            "device_read",
            "device_read_ages",
            "device_ways",
            "inclusive_ways",
            "nic_credits",
            "writebacks",
            "response_cycles",
            "mshrs",
        ],
    ),
    (
        &["platform.memory"],
        &[
            "bank_groups",
            "banks_per_group",
            "channel_hash",
            "bank_hash",
            "page_idle_ns",
            "row_access_limit",
            "age_cap_ns",
            "bank_queue",
            "row_hit_limit",
            "rpq_full_mark",
            "wpq_full_mark",
            "entry_release",
            "overflow",
            "write_idle",
            "writes_yield",
            "refresh_turns",
            "min_read_burst",
            "min_write_burst",
            "max_write_burst",
            "refresh",
            "alignment",
            "timing",
        ],
    ),
    (&["platform.core"], &["l2_mshrs", "lfb_targets", "lfb_retry", "combining_buffers"]),
    (&["platform.core.prefetch"], &["pattern", "into", "network", "waiting", "reserve", "adjacent", "ownership"]),
    (&["platform.core.l1_prefetch"], &["recent", "instructions", "longest", "trigger", "misses", "stores"]),
    (
        &["platform.iio"],
        &[
            "line_header",
            "fetch_partial",
            "write_back_interval",
            "write_back_buffer",
            "shared_with_cores",
            "register_write",
        ],
    ),
    (&["platform.pcie"], &["lane_rate", "cut_through", "train"]),
    (
        &["peripheral.rings", "client.ethernet.rings", "platform.ethernet.rings"],
        &[
            "receive_cache",
            "transmit_cache",
            "replenish",
            "write_back_idle",
            "transmit_write_back",
            "fetch_delay",
            "write_back_delay",
            "write_back_completion",
            "receive_turnaround",
            "transmit_packets",
            "transmit_turnaround",
            "queue_requests",
            "queue_turnaround",
            "one_engine",
            "strip_fcs",
            "transmit_buffer",
            "throttle",
        ],
    ),
    (
        &["ccnic", "tenant.ccnic", "platform.ccnic"],
        &[
            "nic_requests",
            "idle_queues",
            "tx_home",
            "rx_home",
            "buffer_home",
            "pool_scope",
            "nic_batch",
            "lazy_release",
            "free_check",
            "own_ahead",
            "read_ahead",
            "host_prefetch",
            "nic_prefetch",
            "large_buffer",
            "small_buffer",
            "small_share",
            "stack",
            "bulk",
            "cache",
            "costs",
        ],
    ),
    (
        &["platform.poll_mode"],
        &[
            "transmit_burst",
            "allocate_instructions",
            "detach_instructions",
            "mempool_cache",
            "mempool_shared",
            "mempool",
            "mbuf_lines",
            "prefetch",
            "rearm",
            "free_threshold",
            "free_sent",
        ],
    ),
    (&["platform.queue_pair"], &["empty_poll_instructions", "batch_of", "batch_polls", "send_completions"]),
    (
        &["placement.idio", "client.placement.idio"],
        &["burst", "average", "hint_queue", "hint_overflow", "invalidate", "invalidate_form", "status", "sticky"],
    ),
];

/// Every renamed key and choice. A choice follows the keys, so that it is found under the present name of its key.
pub static ALL: LazyLock<Vec<Renamed>> = LazyLock::new(|| {
    let moved = MOVED
        .iter()
        .flat_map(|(tables, keys)| tables.iter().flat_map(|table| keys.iter().map(move |key| (table, key))));
    let moved = moved.map(|(table, key)| (format!("{table}.{key}").into(), format!("quirks.{key}").into()));
    moved.chain(RENAMED.iter().map(|(old, new)| ((*old).into(), (*new).into()))).collect()
});

/// Replaces the old names in `root` by the new ones, and returns a sentence without its full stop for each. `below` is
/// the path at which `root` stands: empty for a scenario, `platform` for a platform's file. `table` is [`ALL`], or a
/// table of a test.
///
/// # Errors
/// A clause that names both keys when a table has the old and the new one.
pub fn rename(root: &mut Value, below: &str, table: &[Renamed]) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for (old, new) in table {
        let (path, word) = old.split_once(" = ").map_or((&**old, None), |(path, word)| (path, Some(word)));
        let path: Vec<&str> = path.split('.').collect();
        match path.strip_prefix(&["platform"]) {
            Some(rest) if below == "platform" => {
                replace(root, "", rest, word, new, &mut notes)?;
                if word.is_none() {
                    provenance(root, &rest.join("."), new);
                }
            }
            _ if below == "platform" => {}
            Some(rest) => {
                for place in [&["platform"][..], &["override"], &["client", "platform"]] {
                    replace(root, "", &[place, rest].concat(), word, new, &mut notes)?;
                }
                for place in ["/platform", "/client/platform"] {
                    if let Some(platform) = root.pointer_mut(place).filter(|_| word.is_none()) {
                        provenance(platform, &rest.join("."), new);
                    }
                }
            }
            None => replace(root, "", &path, word, new, &mut notes)?,
        }
    }
    Ok(notes)
}

/// Renames, in every element of the lists along the path, the key at `path` below `table`, or the choice `word` of that
/// key; `at` is the path of `table`.
fn replace(
    table: &mut Value,
    at: &str,
    path: &[&str],
    word: Option<&str>,
    new: &str,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    if let Some(list) = table.as_array_mut() {
        let mut elements = list.iter_mut().enumerate();
        return elements.try_for_each(|(i, of)| replace(of, &format!("{at}[{i}]"), path, word, new, notes));
    }
    let (Some(map), [key, rest @ ..]) = (table.as_object_mut(), path) else { return Ok(()) };
    let dotted = |key: &str| if at.is_empty() { key.into() } else { format!("{at}.{key}") };
    if !rest.is_empty() {
        return map.get_mut(*key).map_or(Ok(()), |below| replace(below, &dotted(key), rest, word, new, notes));
    }
    if let Some(word) = word {
        if let Some(choice) = map.get_mut(*key).filter(|choice| **choice == *word) {
            *choice = new.into();
            let key = dotted(key);
            notes.push(format!(
                "{key} = \"{word}\" is now {key} = \"{new}\"; the old name is accepted in this version only"
            ));
        }
        return Ok(());
    }
    let Some(value) = map.remove(*key) else { return Ok(()) };
    let (old_path, new_path) = (dotted(key), dotted(new));
    let (tables, last) = new.rsplit_once('.').map_or((None, new), |(tables, last)| (Some(tables), last));
    let mut map = map;
    for table in tables.into_iter().flat_map(|tables| tables.split('.')) {
        let below = map.entry(table).or_insert_with(|| Value::Object(Map::new()));
        let Some(below) = below.as_object_mut() else {
            return Err(format!("{old_path} is the old name of {new_path}, which needs a table {table}"));
        };
        map = below;
    }
    if map.insert(last.into(), value).is_some() {
        return Err(format!("{old_path} is the old name of {new_path}, which is given too; remove {old_path}"));
    }
    notes.push(format!("{old_path} is now {new_path}; the old name is accepted in this version only"));
    Ok(())
}

/// Renames the key at `old`, or the table there, in the paths of a platform's table `provenance`.
fn provenance(platform: &mut Value, old: &str, new: &str) {
    let Some(sources) = platform.get_mut("provenance").and_then(Value::as_object_mut) else { return };
    let renamed = old.rsplit_once('.').map_or(new.to_owned(), |(table, _)| format!("{table}.{new}"));
    let of_key = |path: &&String| path.strip_prefix(old).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    for path in sources.keys().filter(of_key).cloned().collect::<Vec<_>>() {
        if let Some(source) = sources.remove(&path) {
            sources.insert(format!("{renamed}{}", &path[old.len()..]), source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{rename, Renamed};
    use serde_json::json;

    const TABLE: &[(&str, &str)] = &[
        ("tenant.app.sort", "order"),
        ("platform.memory.door", "queue"),
        ("platform.memory.queue = apart", "separate"),
        ("platform.old", "memory"),
        ("platform.memory.shared", "habits.shared"),
    ];

    fn table() -> Vec<Renamed> {
        TABLE.iter().map(|(old, new)| ((*old).into(), (*new).into())).collect()
    }

    #[test]
    fn an_old_key_gets_its_new_name_and_a_sentence_wherever_it_stands() {
        let mut s = json!({
            "tenant": [{"app": {"x": 1}}, {"app": {"sort": 2}}],
            "override": {"memory": {"door": 3}},
            "client": {"platform": {"memory": {"door": 4}, "provenance": {"memory.door": "assumed: a"}}},
        });
        let notes = rename(&mut s, "", &table()).expect("no key is given twice");
        assert_eq!(
            s,
            json!({
                "tenant": [{"app": {"x": 1}}, {"app": {"order": 2}}],
                "override": {"memory": {"queue": 3}},
                "client": {"platform": {"memory": {"queue": 4}, "provenance": {"memory.queue": "assumed: a"}}},
            })
        );
        let now = |old: &str, new: &str| format!("{old} is now {new}; the old name is accepted in this version only");
        let wanted = [
            now("tenant[1].app.sort", "tenant[1].app.order"),
            now("override.memory.door", "override.memory.queue"),
            now("client.platform.memory.door", "client.platform.memory.queue"),
        ];
        assert_eq!(notes, wanted);
    }

    #[test]
    fn a_platforms_file_has_its_keys_and_their_sources_renamed() {
        let mut p = json!({
            "memory": {"door": 3},
            "provenance": {"memory.door": "assumed: a", "memory.doors": "assumed: b", "memory": "assumed: c"},
        });
        let notes = rename(&mut p, "platform", &table()).expect("no key is given twice");
        assert_eq!(notes, ["memory.door is now memory.queue; the old name is accepted in this version only"]);
        assert_eq!(
            p,
            json!({
                "memory": {"queue": 3},
                "provenance": {"memory.queue": "assumed: a", "memory.doors": "assumed: b", "memory": "assumed: c"},
            })
        );
    }

    #[test]
    fn a_table_is_renamed_with_the_sources_below_it() {
        let mut p = json!({"old": {"x": 1}, "provenance": {"old.x": "assumed: a", "old": "assumed: b"}});
        rename(&mut p, "platform", &table()).expect("no key is given twice");
        assert_eq!(p, json!({"memory": {"x": 1}, "provenance": {"memory.x": "assumed: a", "memory": "assumed: b"}}));
    }

    #[test]
    fn an_old_choice_of_a_key_gets_its_new_name_under_either_name_of_the_key() {
        let mut s = json!({"override": {"memory": {"door": "apart"}}, "platform": {"memory": {"queue": "shared"}}});
        let notes = rename(&mut s, "", &table()).expect("no key is given twice");
        assert_eq!(
            s,
            json!({"override": {"memory": {"queue": "separate"}}, "platform": {"memory": {"queue": "shared"}}})
        );
        let of = "override.memory.queue";
        let wanted =
            format!("{of} = \"apart\" is now {of} = \"separate\"; the old name is accepted in this version only");
        assert_eq!(notes[1..], [wanted]);
    }

    #[test]
    fn old_and_new_name_together_are_refused() {
        let mut s = json!({"override": {"memory": {"door": 3, "queue": 3}}});
        let why = rename(&mut s, "", &table()).expect_err("both names are given");
        let wanted = "override.memory.door is the old name of override.memory.queue, which is given too; remove override.memory.door";
        assert_eq!(why, wanted);
    }

    #[test]
    fn new_names_say_nothing() {
        let mut s = json!({"override": {"memory": {"queue": 3}}, "tenant": "no list"});
        let before = s.clone();
        assert_eq!(rename(&mut s, "", &table()), Ok(Vec::new()));
        assert_eq!(s, before);
    }

    #[test]
    fn a_moved_key_joins_the_table_that_has_it_now_and_so_does_its_source() {
        let mut p = json!({
            "memory": {"shared": true, "habits": {"size": 1}},
            "provenance": {"memory.shared": "assumed: a"},
        });
        let notes = rename(&mut p, "platform", &table()).expect("no key is given twice");
        assert_eq!(notes, ["memory.shared is now memory.habits.shared; the old name is accepted in this version only"]);
        assert_eq!(
            p,
            json!({
                "memory": {"habits": {"size": 1, "shared": true}},
                "provenance": {"memory.habits.shared": "assumed: a"},
            })
        );
    }

    #[test]
    fn a_moved_key_is_refused_where_its_new_place_is_taken() {
        let mut s = json!({"override": {"memory": {"shared": true, "habits": {"shared": true}}}});
        let why = rename(&mut s, "", &table()).expect_err("both names are given");
        assert!(why.starts_with("override.memory.shared is the old name of override.memory.habits.shared, which is"));
        let mut s = json!({"override": {"memory": {"shared": true, "habits": 3}}});
        let why = rename(&mut s, "", &table()).expect_err("habits is no table");
        assert!(why.ends_with("which needs a table habits"), "{why}");
    }
}
