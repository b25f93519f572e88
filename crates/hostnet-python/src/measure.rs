//! Measurements of the present machine.

use hostnet_measure::Options;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

// As in the crate's root: the package's own class of errors.
pyo3::import_exception!(hostnet.errors, HostnetError);

/// Measures the machine that this process runs on, and returns the figures as JSON. `on_progress` is called before each
/// point with the name of the experiment and its share that is done; an exception from it ends the measurements.
#[pyfunction]
pub fn measure(py: Python<'_>, quick: bool, on_progress: Py<PyAny>) -> PyResult<String> {
    let mut raised = None;
    let outcome = py.detach(|| {
        let mut progress = |what: &str, share: f64| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                on_progress.call1(py, (what, share)).map(drop)
            });
            raised = told.err();
            raised.is_none()
        };
        hostnet_measure::measure(&Options { quick }, &mut progress)
    });
    if let Some(e) = raised {
        return Err(e);
    }
    let measured = outcome.map_err(HostnetError::new_err)?;
    serde_json::to_string(&measured).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}
