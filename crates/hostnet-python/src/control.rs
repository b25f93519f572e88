//! A control plane in Python: a function that is called at the end of each epoch.

use crate::SpecError;
use hostnet::config::scenario::WaysSpec;
use hostnet::host::control::{Control, CoreView, Decision, EpochView, TenantView};
use hostnet::kernel::units::Span;
use hostnet::kernel::TenantId;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::sync::{Arc, Mutex};

/// A whole number that Python gives. A truth value is none, although Python counts with it.
fn whole<'py, T: FromPyObject<'py>>(value: &Bound<'py, PyAny>) -> Option<T> {
    value.extract().ok().filter(|_| !value.is_instance_of::<PyBool>())
}

/// Text of a value, as Python writes it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "the value".into(), |r| r.to_string())
}

/// Error about `key`, to which Python gives `value`, and which takes what `takes` says.
fn refused(key: &str, value: &Bound<'_, PyAny>, takes: &str) -> PyErr {
    SpecError::new_err(format!("{key} = {} is not {takes}.", shown(value)))
}

/// Observations of one epoch, and settings for the time after it. Counts cover the epoch; lists have an element for
/// each core.
#[pyclass(module = "hostnet")]
pub struct Epoch {
    seen: EpochView,
    /// Settings up to now; None once the function has returned, and they have been taken.
    set: Option<Decision>,
}

impl Epoch {
    fn each<T>(&self, f: impl Fn(&CoreView) -> T) -> Vec<T> {
        self.seen.cores.iter().map(f).collect()
    }

    /// Settings to which `what` adds one.
    fn settings(&mut self, what: &str) -> PyResult<&mut Decision> {
        self.set.as_mut().ok_or_else(|| {
            SpecError::new_err(format!(
                "{what} has no effect on an epoch that is over; set it before the control plane returns."
            ))
        })
    }
}

#[pymethods]
impl Epoch {
    /// End of the epoch, in us of simulated time.
    #[getter]
    fn now_us(&self) -> f64 {
        self.seen.now.as_ns() / 1e3
    }
    /// Lines that each core's L2 wrote back to the LLC.
    #[getter]
    fn mlc_wb(&self) -> Vec<u64> {
        self.each(|c| c.mlc_wb)
    }
    /// Lines that devices' writes invalidated in each core's caches.
    #[getter]
    fn mlc_invalidations(&self) -> Vec<u64> {
        self.each(|c| c.mlc_invalidations)
    }
    /// Prefetch hints that each core's L2 received from devices.
    #[getter]
    fn hints(&self) -> Vec<u64> {
        self.each(|c| c.hints)
    }
    /// Prefetch hints to each core's L2 that found the queue full and were dropped.
    #[getter]
    fn hints_dropped(&self) -> Vec<u64> {
        self.each(|c| c.hints_dropped)
    }
    /// Distance from each core's position in its receive ring to the NIC's, in packets.
    #[getter]
    fn distance(&self) -> Vec<u32> {
        self.each(|c| c.distance)
    }
    /// State of IDIO's FSM of each core, 0 to 3; None under other policies.
    #[getter]
    fn state(&self) -> Vec<Option<u8>> {
        self.each(|c| c.state)
    }
    /// Accesses of each core that missed the LLC.
    #[getter]
    fn llc_misses(&self) -> Vec<u64> {
        self.each(|c| c.llc_misses)
    }
    /// Observations of each tenant in the order of the scenario, as dictionaries: `name`, `offered`, `served`, `lost`,
    /// `lat_p50_us`, `lat_p99_us`, `llc_hits`, `llc_misses` and `dram_lines`.
    #[getter]
    fn tenants<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let view = |t: &TenantView| {
            let d = PyDict::new(py);
            d.set_item("name", &t.name)?;
            for (key, n) in [
                ("offered", t.offered),
                ("served", t.served),
                ("lost", t.lost),
                ("llc_hits", t.llc_hits),
                ("llc_misses", t.llc_misses),
                ("dram_lines", t.dram_lines),
            ] {
                d.set_item(key, n)?;
            }
            d.set_item("lat_p50_us", t.latency_us(0.5))?;
            d.set_item("lat_p99_us", t.latency_us(0.99))?;
            Ok(d)
        };
        self.seen.tenants.iter().map(view).collect()
    }
    /// Sets the LLC ways into which victims of the L2s of `tenant`, a name, may go from now on: a number of ways or a range,
    /// as `tenant.llc_ways` takes them.
    #[pyo3(signature = (tenant, ways))]
    fn set_llc_ways(&mut self, tenant: &Bound<'_, PyAny>, ways: &Bound<'_, PyAny>) -> PyResult<()> {
        let names: Vec<&str> = self.seen.tenants.iter().map(|t| t.name.as_str()).collect();
        let given = tenant.extract::<String>().ok();
        let Some(t) = names.iter().position(|name| given.as_deref() == Some(*name)) else {
            let shown = given.map_or_else(|| shown(tenant), |name| format!("\"{name}\""));
            let valid = names.join(", ");
            return Err(SpecError::new_err(format!("set_llc_ways: there is no tenant {shown} (valid: {valid}).")));
        };
        let range = || ways.extract().ok().map(WaysSpec::Range);
        let ways = whole(ways).map(WaysSpec::Count).or_else(range).ok_or_else(|| {
            refused("set_llc_ways: ways", ways, "a whole number of ways or a range of them such as \"0-3\"")
        })?;
        self.settings("set_llc_ways")?.tenant_ways.push((TenantId::new(t), ways));
        Ok(())
    }
    /// Dirty lines that the LLC evicted to memory.
    #[getter]
    fn llc_wb(&self) -> u64 {
        self.seen.llc_wb
    }
    /// Dirty lines of packets that the LLC evicted to memory before anybody had read them.
    #[getter]
    fn llc_wb_unread(&self) -> u64 {
        self.seen.llc_wb_unread
    }
    /// Lines that devices wrote.
    #[getter]
    fn dma_writes(&self) -> u64 {
        self.seen.dma_writes
    }
    /// Lines that devices wrote and that missed in the LLC.
    #[getter]
    fn dma_write_misses(&self) -> u64 {
        self.seen.dma_write_misses
    }
    /// Lines read from DRAM.
    #[getter]
    fn dram_reads(&self) -> u64 {
        self.seen.dram_reads
    }
    /// Lines written to DRAM.
    #[getter]
    fn dram_writes(&self) -> u64 {
        self.seen.dram_writes
    }
    /// Number of LLC ways that devices may allocate into; assign to change it.
    #[getter]
    fn ways(&self) -> u32 {
        self.set.as_ref().and_then(|set| set.placement.ways).unwrap_or(self.seen.ways)
    }
    #[setter]
    fn set_ways(&mut self, n: &Bound<'_, PyAny>) -> PyResult<()> {
        let ways = whole(n).ok_or_else(|| refused("ways", n, "a whole number of ways, which count from way 0 up"))?;
        self.settings("ways")?.placement.ways = Some(ways);
        Ok(())
    }
    /// Sets whether payload for `core` is prefetched into its L2 from now on; None returns to the policy's decision.
    #[pyo3(signature = (core, on))]
    fn prefetch(&mut self, core: &Bound<'_, PyAny>, on: &Bound<'_, PyAny>) -> PyResult<()> {
        let cores = &self.seen.cores;
        let Some(core) = whole(core).and_then(|i: usize| cores.get(i)).map(|view| view.core) else {
            let takes = format!("the number of a core, 0 to {}", cores.len().saturating_sub(1));
            return Err(refused("prefetch: core", core, &takes));
        };
        let on = on.extract().map_err(|_: PyErr| refused("prefetch: on", on, "True, False or None"))?;
        self.settings("prefetch")?.placement.prefetch.push((core, on));
        Ok(())
    }
}

/// Place for an exception that the function raises.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Control plane that calls `f` with an `Epoch` every `interval`, and the place for its exception.
pub fn plane(f: Py<PyAny>, interval: &str) -> PyResult<(Control, Raised)> {
    let every = Span::parse(interval).map_err(|e| SpecError::new_err(format!("interval: {e}.")))?;
    if every.0 < 10_000 {
        return Err(SpecError::new_err(format!("interval = \"{every}\" is below 10 ns.")));
    }
    let raised = Raised::default();
    let told = raised.clone();
    let decide = move |seen: EpochView| {
        Python::attach(|py| {
            let called = Bound::new(py, Epoch { seen, set: Some(Decision::default()) }).and_then(|epoch| {
                let called = f.call1(py, (&epoch,));
                let set = epoch.borrow_mut().set.take().unwrap_or_default();
                called.map(|_| set)
            });
            called.map_err(|e| {
                if let Ok(mut told) = told.lock() {
                    *told = Some(e);
                }
                "the control plane raised an exception".to_string()
            })
        })
    };
    Ok((Control::new(every.into(), Arc::new(Mutex::new(decide))), raised))
}
