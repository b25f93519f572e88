//! Closed-form models, as functions from JSON to JSON. `hostnet.model` is their Python interface.

use crate::SpecError;
use hostnet::memory::dram::DramSpec;
use hostnet::model::domain::{self, Measured};
use hostnet::model::mc::{self, FormulaClass, Hardware, McCounters, WriteForm};
use hostnet::model::pcie::LinkSpec;
use hostnet::model::predict::{Offered, PredictHost};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    let d = &mut serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(d).map_err(|e| {
        // serde_json's position in the text means nothing to whoever passed a dict.
        let why = e.inner().to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        let path = e.path().to_string();
        SpecError::new_err(if path == "." { format!("{why}.") } else { format!("{path}: {why}.") })
    })
}

fn refuse(why: String) -> PyErr {
    SpecError::new_err(format!("{why}."))
}

fn write(v: &impl Serialize) -> String {
    serde_json::to_value(v).unwrap_or(Value::Null).to_string()
}

/// Payload rates of a PCIe link for transactions of `bytes` bytes.
#[pyfunction]
pub fn pcie_bandwidth(link: &str, bytes: u32) -> PyResult<String> {
    let l: LinkSpec = read(link)?;
    l.check().map_err(refuse)?;
    if bytes == 0 {
        return Err(refuse("bytes = 0 moves nothing; give 1 or more".into()));
    }
    Ok(write(&json!({
        "raw_gbps": l.raw_gbps(),
        "tlp_gbps": l.tlp_gbps(),
        "write_gbps": l.write_gbps(bytes),
        "read_gbps": l.read_gbps(bytes),
        "read_write_gbps": l.read_write_gbps(bytes),
        "write_wire_bytes": l.write(bytes),
        "read_wire_bytes": l.read(bytes),
    })))
}

/// Latency, throughput bound and utilisation of each domain of a path, and the domain that limits the path.
#[pyfunction]
pub fn domains(path: &str) -> PyResult<String> {
    let measured: Vec<Measured> = read(path)?;
    if let Some(d) = measured.iter().find(|d| !(d.rate_gbs > 0.0 && d.occupancy >= 0.0 && d.credits > 0.0)) {
        return Err(refuse(format!("{}: a domain needs credits and a rate above 0, and an occupancy", d.name)));
    }
    let readings: Vec<_> = measured.iter().map(Measured::reading).collect();
    Ok(write(&json!({
        "domains": readings,
        "bottleneck": domain::bottleneck(&readings).map(|r| r.name.clone()),
    })))
}

/// Hardware of the paper's Cascade Lake, the default of `formula`.
#[pyfunction]
pub fn hardware() -> String {
    write(&Hardware::default())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    class: FormulaClass,
    counters: McCounters,
    #[serde(default)]
    hardware: Hardware,
    #[serde(default)]
    form: WriteForm,
    /// Whether the read queue is corrected for reads that wait at the CHA.
    #[serde(default)]
    adjust_rpq: bool,
    #[serde(default)]
    cha_admission_ns: f64,
    credits: Option<f64>,
    measured_gbs: Option<f64>,
}

/// Analytical latency of a traffic class with every term, and the throughput that it allows.
#[pyfunction]
pub fn formula(question: &str) -> PyResult<String> {
    let q: Question = read(question)?;
    q.counters.check().map_err(refuse)?;
    let counters = if q.adjust_rpq {
        let adjusted = q.counters.with_reads_at_cha(&q.hardware);
        adjusted.ok_or_else(|| refuse("adjust_rpq needs rpq_full and waiting_reads".into()))?
    } else {
        q.counters
    };
    let t = mc::latency(&q.hardware, &counters, q.class, q.form, q.cha_admission_ns)
        .ok_or_else(|| refuse("class p2m-read needs hardware.p2m_read_ns, which the paper could not measure".into()))?;
    let estimate = q.credits.map(|c| mc::throughput_gbs(&t, c));
    let error = estimate.zip(q.measured_gbs).map(|(e, m)| mc::error_pct(e, m));
    let (dominant, ns) = t.dominant();
    Ok(write(&json!({
        "terms": t,
        "latency_ns": t.total(),
        "queueing_ns": t.queueing(),
        "dominant": if ns > 0.0 { Some(dominant) } else { None },
        "estimate_gbs": estimate,
        "error_pct": error,
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    host: PredictHost,
    offered: Offered,
}

/// Predicted throughput of cores and of a device on a host, from the host's description and the offered traffic alone.
#[pyfunction]
pub fn predict(setting: &str) -> PyResult<String> {
    let s: Setting = read(setting)?;
    Ok(write(&s.host.predict(&s.offered)))
}

/// Quirks of a memory, as a platform's table `memory` has it, with the values that its standard gives.
#[pyfunction]
pub fn memory_quirks(memory: &str) -> PyResult<String> {
    Ok(write(&read::<DramSpec>(memory)?.quirks_in_full()))
}
