//! Python bindings of the simulator, and nothing else.

use pyo3::prelude::*;

/// The engine's version; part of every cached result's key.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(version, m)?)
}
