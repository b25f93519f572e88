//! Measurements of the present machine.

use hostnet_measure::Options;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;
use std::time::Duration;

// As in the crate's root: the package's own class of errors.
pyo3::import_exception!(hostnet.errors, HostnetError);

/// Measures the machine that this process runs on, and returns the figures as JSON. `on_progress` is called before each
/// point with the name of the experiment and its share that is done; an exception from it ends the measurements.
#[pyfunction]
pub fn measure(py: Python<'_>, quick: bool, on_progress: Py<PyAny>) -> PyResult<String> {
    told(py, on_progress, |progress| hostnet_measure::measure(&Options { quick }, progress))
}

/// Measures mixtures of chases and streams, as [`measure`] does what a calibration needs.
#[pyfunction]
pub fn measure_mixtures(py: Python<'_>, quick: bool, on_progress: Py<PyAny>) -> PyResult<String> {
    told(py, on_progress, |progress| hostnet_measure::measure_mixtures(&Options { quick }, progress))
}

/// Mixtures that [`measure_mixtures`] would measure, as JSON.
#[pyfunction]
pub fn planned_mixtures(quick: bool) -> PyResult<String> {
    json(&hostnet_measure::planned_mixtures(&Options { quick }).map_err(HostnetError::new_err)?)
}

/// Streams through memory on a CPU for some seconds, and returns the traffic in GB/s as JSON. `order` is one of those of a
/// mixture.
#[pyfunction]
pub fn stream_for(py: Python<'_>, cpu: u32, order: &str, stores: f64, seconds: f64) -> PyResult<String> {
    let order = serde_json::from_value(order.into()).map_err(|e| HostnetError::new_err(e.to_string()))?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|e| HostnetError::new_err(e.to_string()))?;
    json(&py.detach(|| hostnet_measure::stream_for(cpu, order, stores, time)).map_err(HostnetError::new_err)?)
}

/// JSON of what a function measures that tells its progress.
fn told<T: Serialize + Send>(
    py: Python<'_>,
    on_progress: Py<PyAny>,
    measured: impl FnOnce(&mut dyn FnMut(&str, f64) -> bool) -> Result<T, String> + Send,
) -> PyResult<String> {
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
        measured(&mut progress)
    });
    if let Some(e) = raised {
        return Err(e);
    }
    json(&outcome.map_err(HostnetError::new_err)?)
}

fn json(of: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(of).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}
