//! Tables of a result: columns with units, and rows.

use serde_json::{json, Value};

/// A table with these columns, each a name and a unit, and these rows.
pub fn table(columns: &[(&str, &str)], rows: Vec<Vec<Value>>) -> Value {
    let columns: Vec<_> = columns.iter().map(|(n, u)| json!({"name": n, "unit": u})).collect();
    json!({"columns": columns, "rows": rows})
}
