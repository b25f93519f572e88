//! Scenarios and platforms: typed, with units, and with errors that name file and key.

pub mod check;
mod check_machines;
mod check_mixture;
mod check_precision;
mod check_ranges;
mod check_stacks;
mod check_unused;
mod presets;
pub mod registry;
pub mod renamed;
pub mod resolve;
pub mod scenario;
mod sources;
pub mod tenant;
pub mod traffic;
mod unknown;

pub use registry::Registry;
pub use resolve::{hint, resolve, resolve_noting, resolved, SpecError};
pub use scenario::{Load, Platform, Scenario};
pub use unknown::{unknown_key, unknown_metric};

/// JSON Schema of a scenario; descriptions are the fields' documentation comments.
pub fn schema() -> String {
    Registry::default().schema()
}
