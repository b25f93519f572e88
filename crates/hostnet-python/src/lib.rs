//! Python bindings of the simulator, and nothing else.

mod control;
mod life;
mod measure;
mod model;
mod record;
mod request_trace;

use hostnet::config::{self, Scenario};
use hostnet::host::Outcome;
use hostnet::meter::{self, METRICS};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{json, Value};
use std::ffi::CString;
use std::path::PathBuf;
use std::time::Instant;

// Exception for a scenario that cannot be run; the message is one sentence. The class is the package's own, so that all
// its errors have one base.
pyo3::import_exception!(hostnet.errors, SpecError);

/// Version of the engine, with a digest of its sources; part of every cached result's key.
#[pyfunction]
fn version() -> &'static str {
    hostnet::VERSION
}

/// Compiler, target and libraries that the engine was built with. Together with the version, part of every cached
/// result's key.
#[pyfunction]
fn build() -> &'static str {
    env!("HOSTNET_BUILD")
}

/// JSON Schema of a scenario.
#[pyfunction]
fn schema() -> String {
    config::schema()
}

/// Declarations in JSON: every metric (`metrics`) and every column of the table `tenants` (`tenants`) with all that it
/// says, and the order of `groups` and of `subjects`.
#[pyfunction]
fn metrics() -> String {
    let order = (meter::Group::ALL, meter::Subject::ALL);
    json!({ "metrics": METRICS, "tenants": meter::TENANT_COLUMNS, "groups": order.0, "subjects": order.1 }).to_string()
}

/// Old and new name of every key and choice (`keys`) and every metric (`metrics`) that has a new name, as JSON.
#[pyfunction]
fn renamed() -> String {
    let keys: Value = config::renamed::ALL.iter().map(|(old, new)| (old.clone(), json!(new))).collect();
    let metrics: Value = meter::RENAMED.iter().map(|(old, new)| (*old, json!(new))).collect();
    json!({ "keys": keys, "metrics": metrics }).to_string()
}

/// The fully expanded scenario of `text`, read from `file`, as JSON with sorted keys. Platforms and captures are
/// looked for beside the file and in the directories of `search`. Issues a warning for each old name of a key.
#[pyfunction]
fn resolve(py: Python<'_>, text: &str, file: &str, search: Vec<PathBuf>) -> PyResult<String> {
    let (s, notes) = config::resolve_noting(text, file, &search).map_err(|e| SpecError::new_err(e.0))?;
    if !notes.is_empty() {
        let category = py.import("hostnet.renamed")?.getattr("RenamedWarning")?;
        for note in notes {
            PyErr::warn(py, &category, &CString::new(note)?, 1)?;
        }
    }
    canonical(&s)
}

fn canonical(s: &Scenario) -> PyResult<String> {
    let v = serde_json::to_value(s).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok(v.to_string()) // serde_json's maps are sorted by key
}

/// Runs one resolved scenario and returns the result as JSON. `on_progress`, when given, is called a few times per
/// second with the fraction done; an exception in it aborts the run. With `pcap`, a capture of the packets that came
/// back is written to that file.
#[pyfunction]
#[pyo3(signature = (resolved, on_progress=None, pcap=None, control=None, interval=None))]
fn run(
    py: Python<'_>,
    resolved: &str,
    on_progress: Option<Py<PyAny>>,
    pcap: Option<PathBuf>,
    control: Option<Py<PyAny>>,
    interval: Option<&str>,
) -> PyResult<String> {
    let s = config::resolved(resolved, "resolved.json").map_err(|e| SpecError::new_err(e.0))?;
    let started = Instant::now();
    let mut raised: Option<PyErr> = None;
    let control = control.map(|f| control::plane(f, interval.unwrap_or("10 us"))).transpose()?;
    let told = control.as_ref().map(|c| c.1.clone());
    // With a control plane the interpreter stays attached: attaching anew in each epoch would cost as much as the call.
    // Other threads get their turn within the call.
    let attached = control.is_some();
    let work = || {
        let mut progress = life::progress(on_progress.as_ref(), &mut raised);
        if let Some((c, _)) = control {
            return hostnet::host::run_controlled(&s, c, &mut progress);
        }
        match &pcap {
            Some(file) => hostnet::host::run_and_capture(&s, file, &mut progress),
            None => hostnet::host::run(&s, &mut progress),
        }
    };
    let outcome = if attached { work() } else { py.detach(work) };
    if let Some(e) = raised.or_else(|| told.and_then(|t| t.lock().ok()?.take())) {
        return Err(e);
    }
    let o = outcome.map_err(|e| refusal(&s, &e))?;
    Ok(result(&s, &o, started).to_string())
}

/// Runs resolved scenarios that are equal but for `name` and `run.precision_of` as one simulation, and returns the result
/// of each as JSON, as `run` does. The `wall_s` of a result is the time until it was known. With `keep`, the filled caches are
/// kept for the next call on the same thread, which takes them where its scenarios have the same `fill_key`.
#[pyfunction]
#[pyo3(signature = (resolved, on_progress=None, keep=false))]
fn run_each(
    py: Python<'_>,
    resolved: Vec<String>,
    on_progress: Option<Py<PyAny>>,
    keep: bool,
) -> PyResult<Vec<String>> {
    let read = |text: &String| config::resolved(text, "resolved.json").map_err(|e| SpecError::new_err(e.0));
    let specs = resolved.iter().map(read).collect::<PyResult<Vec<_>>>()?;
    let (started, mut raised) = (Instant::now(), None);
    let mut results = vec![String::new(); specs.len()];
    let ended = py.detach(|| {
        let mut progress = life::progress(on_progress.as_ref(), &mut raised);
        let mut on_result = |i: usize, o: Outcome| results[i] = result(&specs[i], &o, started).to_string();
        hostnet::host::run_each(&specs, keep, &mut progress, &mut on_result)
    });
    if let Some(e) = raised {
        return Err(e);
    }
    ended.map_err(|e| refusal(&specs[0], &e))?;
    Ok(results)
}

/// Text that is equal for resolved scenarios whose caches fill in the same way, so that one of them may take the caches that
/// another has filled; None where none may.
#[pyfunction]
fn fill_key(resolved: &str) -> PyResult<Option<String>> {
    let spec = config::resolved(resolved, "resolved.json").map_err(|e| SpecError::new_err(e.0))?;
    Ok(hostnet::host::fill_key(&spec))
}

/// The exception for a run of `s` that ended with `why`.
fn refusal(s: &Scenario, why: &str) -> PyErr {
    SpecError::new_err(format!("{}: {}.", s.name, why.trim_end_matches('.')))
}

/// The result of a run that began at `started`.
fn result(s: &Scenario, o: &Outcome, started: Instant) -> Value {
    let metrics: serde_json::Map<String, Value> =
        METRICS.iter().zip(&o.values.0).map(|(m, v)| (m.name.to_string(), json!(v))).collect();
    let intervals: serde_json::Map<String, Value> = METRICS
        .iter()
        .zip(&o.intervals.0)
        .filter_map(|(m, i)| i.map(|i| (m.name.to_string(), json!([i.low, i.high]))))
        .collect();
    let us = |t: hostnet::kernel::Time| t.0 as f64 / 1e6;
    json!({
        "version": version(),
        "spec": s,
        "seed": s.seed,
        "wall_s": started.elapsed().as_secs_f64(),
        "sim_us": us(o.sim),
        "warmup_us": us(o.warmup),
        "measure_us": us(o.measured),
        "metrics": metrics,
        "intervals": intervals,
        "tables": o.tables,
        "warnings": o.warnings,
    })
}

/// Two-sided 95 % quantile of Student's t distribution with `freedom` degrees of freedom.
#[pyfunction]
fn student(freedom: f64) -> PyResult<f64> {
    meter::interval::student(freedom, meter::interval::CONFIDENCE)
        .ok_or_else(|| SpecError::new_err(format!("freedom = {freedom} is not above 0; an interval needs two values.")))
}

/// Text `did you mean "x"` for the choice nearest to `word`; empty if none is near.
#[pyfunction]
fn hint(word: &str, choices: Vec<String>) -> String {
    config::hint(word, choices.iter().map(String::as_str))
}

/// Clause about metric `word`, where the metrics `known` exist, as the engine says it of a file.
#[pyfunction]
fn unknown_metric(word: &str, known: Vec<String>) -> String {
    config::unknown_metric(word, &known.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Clause about key `word`, which a table with the keys `valid` lacks, as the engine says it of a file.
#[pyfunction]
fn unknown_key(word: &str, valid: Vec<String>) -> String {
    config::unknown_key(word, &valid.iter().map(String::as_str).collect::<Vec<_>>())
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<control::Epoch>()?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(build, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(metrics, m)?)?;
    m.add_function(wrap_pyfunction!(renamed, m)?)?;
    m.add_function(wrap_pyfunction!(resolve, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(run_each, m)?)?;
    m.add_function(wrap_pyfunction!(fill_key, m)?)?;
    m.add_function(wrap_pyfunction!(student, m)?)?;
    m.add_function(wrap_pyfunction!(unknown_key, m)?)?;
    m.add_function(wrap_pyfunction!(unknown_metric, m)?)?;
    m.add_function(wrap_pyfunction!(hint, m)?)?;
    m.add_function(wrap_pyfunction!(life::trace, m)?)?;
    m.add_function(wrap_pyfunction!(life::parts, m)?)?;
    m.add_function(wrap_pyfunction!(life::watch, m)?)?;
    m.add_function(wrap_pyfunction!(model::pcie_bandwidth, m)?)?;
    m.add_function(wrap_pyfunction!(model::domains, m)?)?;
    m.add_function(wrap_pyfunction!(model::formula, m)?)?;
    m.add_function(wrap_pyfunction!(model::hardware, m)?)?;
    m.add_function(wrap_pyfunction!(model::memory_quirks, m)?)?;
    m.add_function(wrap_pyfunction!(model::predict, m)?)?;
    m.add_function(wrap_pyfunction!(request_trace::trace_memory, m)?)?;
    m.add_function(wrap_pyfunction!(request_trace::memory_trace_formats, m)?)?;
    m.add_function(wrap_pyfunction!(measure::measure, m)?)?;
    m.add_function(wrap_pyfunction!(measure::measure_mixtures, m)?)?;
    m.add_function(wrap_pyfunction!(measure::planned_mixtures, m)?)?;
    m.add_function(wrap_pyfunction!(measure::stream_for, m)?)?;
    m.add_function(wrap_pyfunction!(record::record, m)?)?;
    m.add_function(wrap_pyfunction!(record::recording, m)?)
}
