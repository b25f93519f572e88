//! Renamed keys and choices: for one version hostnet accepts the old name, with a warning that names the new one.

use serde_json::Value;

/// Old and new name of each renamed key (`path`, then the key's new name) and of each renamed choice (`path = word`,
/// then the new word). A path names the tables from the scenario's root, without indices or kinds; a platform's keys
/// begin with `platform`, in a scenario and in a platform's file.
pub const RENAMED: &[(&str, &str)] = &[
    ("tenant.app.between", "gap_instructions"),
    ("platform.caches.llc.writebacks = at_once", "immediate"),
    ("platform.caches.llc.write_order = turns", "round_robin"),
    ("platform.memory.overflow = apart", "separate"),
    ("traffic.spread = turns", "round_robin"),
    ("tenant.app.order = drawn", "random"),
];

/// Replaces the old names in `root` by the new ones, and returns a sentence without its full stop for each. `below` is
/// the path at which `root` stands: empty for a scenario, `platform` for a platform's file. `table` is [`RENAMED`], or
/// a table of a test.
///
/// # Errors
/// A clause that names both keys when a table has the old and the new one.
pub fn rename(root: &mut Value, below: &str, table: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for (old, new) in table {
        let (path, word) = old.split_once(" = ").map_or((*old, None), |(path, word)| (path, Some(word)));
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
    if map.insert(new.into(), value).is_some() {
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
    use super::rename;
    use serde_json::json;

    const TABLE: &[(&str, &str)] = &[
        ("tenant.app.sort", "order"),
        ("platform.memory.door", "queue"),
        ("platform.memory.queue = apart", "separate"),
        ("platform.old", "memory"),
    ];

    #[test]
    fn an_old_key_gets_its_new_name_and_a_sentence_wherever_it_stands() {
        let mut s = json!({
            "tenant": [{"app": {"x": 1}}, {"app": {"sort": 2}}],
            "override": {"memory": {"door": 3}},
            "client": {"platform": {"memory": {"door": 4}, "provenance": {"memory.door": "assumed: a"}}},
        });
        let notes = rename(&mut s, "", TABLE).expect("no key is given twice");
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
        let notes = rename(&mut p, "platform", TABLE).expect("no key is given twice");
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
        rename(&mut p, "platform", TABLE).expect("no key is given twice");
        assert_eq!(p, json!({"memory": {"x": 1}, "provenance": {"memory.x": "assumed: a", "memory": "assumed: b"}}));
    }

    #[test]
    fn an_old_choice_of_a_key_gets_its_new_name_under_either_name_of_the_key() {
        let mut s = json!({"override": {"memory": {"door": "apart"}}, "platform": {"memory": {"queue": "shared"}}});
        let notes = rename(&mut s, "", TABLE).expect("no key is given twice");
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
        let why = rename(&mut s, "", TABLE).expect_err("both names are given");
        let wanted = "override.memory.door is the old name of override.memory.queue, which is given too; remove override.memory.door";
        assert_eq!(why, wanted);
    }

    #[test]
    fn new_names_say_nothing() {
        let mut s = json!({"override": {"memory": {"queue": 3}}, "tenant": "no list"});
        let before = s.clone();
        assert_eq!(rename(&mut s, "", TABLE), Ok(Vec::new()));
        assert_eq!(s, before);
    }
}
