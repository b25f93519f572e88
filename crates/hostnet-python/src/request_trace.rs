//! Traces of the requests to DRAM for other simulators.

use super::life::progress;
use super::{refusal, result, SpecError};
use hostnet::config;
use hostnet::memory::dram::request_trace::RequestTraceFormat;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Instant;

/// Names of the formats of traces.
#[pyfunction]
pub fn memory_trace_formats() -> Vec<&'static str> {
    RequestTraceFormat::NAMES.map(|(name, _)| name).to_vec()
}

/// Runs one resolved scenario, writes its requests to DRAM to `file` in a `format` of `memory_trace_formats`, and
/// returns the result as JSON. `on_progress` is called a few times per second with the fraction done.
#[pyfunction]
#[pyo3(signature = (resolved, file, format, on_progress=None))]
pub fn trace_memory(
    py: Python<'_>,
    resolved: &str,
    file: PathBuf,
    format: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let s = config::resolved(resolved, "resolved.json").map_err(|e| SpecError::new_err(e.0))?;
    let Some((_, format)) = RequestTraceFormat::NAMES.into_iter().find(|(name, _)| *name == format) else {
        return Err(SpecError::new_err(format!("{format} is no format of a memory trace.")));
    };
    let (started, mut raised) = (Instant::now(), None);
    let outcome = py.detach(|| {
        let mut progress = progress(on_progress.as_ref(), &mut raised);
        hostnet::host::run_and_trace_memory(&s, &file, format, &mut progress)
    });
    if let Some(e) = raised {
        return Err(e);
    }
    Ok(result(&s, &outcome.map_err(|e| refusal(&s, &e))?, started).to_string())
}
