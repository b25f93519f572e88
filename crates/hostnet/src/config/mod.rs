//! Scenarios and platforms: typed, with units, and with errors that name file and key.

pub mod check;
mod check_machines;
mod check_mixture;
mod check_precision;
mod check_ranges;
mod check_stacks;
mod check_unused;
pub mod registry;
pub mod renamed;
pub mod resolve;
pub mod scenario;
mod sources;
pub mod traffic;

pub use registry::Registry;
pub use resolve::{resolve, resolve_noting, SpecError};
pub use scenario::{Load, Platform, Scenario};

/// JSON Schema of a scenario; descriptions are the fields' documentation comments.
pub fn schema() -> String {
    Registry::default().schema()
}
