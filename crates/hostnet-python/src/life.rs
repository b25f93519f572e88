//! Lives of packets, and runs that are watched.

use super::{refusal, result};
use hostnet::config;
use hostnet::host::Pick;
use hostnet::meter::life::LifePart;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

use super::SpecError;

/// Shortest time between two calls of Python.
const PAUSE: Duration = Duration::from_millis(200);

/// Every part of a packet's life as JSON: key, domain and meaning.
#[pyfunction]
pub fn parts() -> String {
    let part = |p: &LifePart| json!({ "key": p.key(), "domain": p.domain(), "meaning": p.meaning() });
    LifePart::ALL.iter().map(part).collect::<serde_json::Value>().to_string()
}

/// Runs one resolved scenario twice, follows packets in the second run, and returns the result and the lives of the
/// packets as JSON. `how` is "first", "slowest", "random" (of `n` packets), "number" (packet `n`) or "quantile" (`n`
/// between 0 and 1). `on_progress` is called a few times per second with the fraction done.
#[pyfunction]
#[pyo3(signature = (resolved, how, n, on_progress=None))]
pub fn trace(
    py: Python<'_>,
    resolved: &str,
    how: &str,
    n: f64,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let s = config::resolved(resolved, "resolved.json").map_err(|e| SpecError::new_err(e.0))?;
    let count = n as usize;
    let pick = match how {
        "first" => Pick::First(count),
        "slowest" => Pick::Slowest(count),
        "random" => Pick::Random(count),
        "number" => Pick::Number(count),
        "quantile" => Pick::Quantile(n),
        other => return Err(PyValueError::new_err(format!("{other:?} picks no packets"))),
    };
    let (started, mut raised) = (Instant::now(), None);
    let outcome = py.detach(|| hostnet::host::trace(&s, pick, &mut progress(on_progress.as_ref(), &mut raised)));
    if let Some(e) = raised {
        return Err(e);
    }
    let (o, lives) = outcome.map_err(|e| refusal(&s, &e))?;
    Ok((result(&s, &o, started).to_string(), json!(lives).to_string()))
}

/// Runs one resolved scenario and returns the result as JSON. `show` is called a few times per second with the fraction
/// done and a snapshot as JSON; an exception in it aborts the run.
#[pyfunction]
pub fn watch(py: Python<'_>, resolved: &str, show: Py<PyAny>) -> PyResult<String> {
    let s = config::resolved(resolved, "resolved.json").map_err(|e| SpecError::new_err(e.0))?;
    let (started, mut last, mut raised) = (Instant::now(), None::<Instant>, None);
    let mut told = |fraction: f64, snapshot: &mut dyn FnMut() -> hostnet::host::Snapshot| {
        if last.is_some_and(|t| t.elapsed() < PAUSE) {
            return Ok(());
        }
        last = Some(Instant::now());
        let text = json!(snapshot()).to_string();
        call(&mut raised, |py| show.call1(py, (fraction, text)).map(drop))
    };
    let outcome = py.detach(|| hostnet::host::watch(&s, &mut told));
    if let Some(e) = raised {
        return Err(e);
    }
    let o = outcome.map_err(|e| refusal(&s, &e))?;
    Ok(result(&s, &o, started).to_string())
}

/// Callback for a run's progress, which tells `on_progress` a few times per second and keeps in `raised` what ends the run.
pub(super) fn progress<'a>(
    on_progress: Option<&'a Py<PyAny>>,
    raised: &'a mut Option<PyErr>,
) -> impl FnMut(f64) -> Result<(), String> + 'a {
    let mut last = Instant::now();
    move |fraction| {
        if last.elapsed() < PAUSE {
            return Ok(());
        }
        last = Instant::now();
        call(raised, |py| on_progress.map_or(Ok(()), |f| f.call1(py, (fraction,)).map(drop)))
    }
}

/// Calls Python and looks for signals; keeps what was raised, which ends the run.
fn call(raised: &mut Option<PyErr>, f: impl FnOnce(Python<'_>) -> PyResult<()>) -> Result<(), String> {
    Python::attach(|py| {
        f(py).and_then(|()| py.check_signals()).map_err(|e| {
            *raised = Some(e);
            "aborted".to_string()
        })
    })
}
