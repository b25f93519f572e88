//! Defaults of tables of a scenario.

use serde::de::DeserializeOwned;

/// The table in which each key has its default.
///
/// # Panics
/// When a key of the table has none.
pub fn with_defaults<T: DeserializeOwned>() -> T {
    serde_json::from_str("{}").expect("each key has a default")
}
