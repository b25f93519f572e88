//! Recordings of real programs.

use hostnet_record::{Between, Options, Progress, Sockets, Target, Told, Value};
use hostnet_recording::{Error, Recording};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

use crate::SpecError;

fn refused(e: Error) -> PyErr {
    SpecError::new_err(e.0)
}

/// Request to `record`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Program and arguments.
    run: Vec<String>,
    pid: Option<i32>,
    sockets: bool,
    /// Sockets whose messages are packets, such as `udp:11211`.
    socket: Option<String>,
    enter: Option<String>,
    leave: Option<String>,
    frame: Option<(String, String)>,
    packets: u32,
    skip: u32,
    longest: u64,
    seconds: f64,
    version: String,
}

impl Asked {
    fn options(self) -> Result<Options, Error> {
        let mut words = self.run.into_iter();
        let target = match (self.pid, words.next()) {
            (Some(pid), _) => Target::Attach(pid),
            (_, Some(program)) => Target::Run { program: program.into(), arguments: words.collect() },
            _ => return Err(Error("no program is given.".into())),
        };
        let frame = match self.frame {
            Some((pointer, length)) => Some((Value::parse(&pointer)?, Value::parse(&length)?)),
            None => None,
        };
        let between = match self.enter {
            Some(enter) => Between::Addresses { enter, leave: self.leave, frame },
            None if self.sockets || self.socket.is_some() => {
                Between::Sockets { only: self.socket.map(|s| Sockets::parse(&s)).transpose()? }
            }
            None => Between::Dpdk,
        };
        Ok(Options {
            target,
            between,
            packets: self.packets,
            skip: self.skip,
            longest: self.longest,
            time: Duration::try_from_secs_f64(self.seconds)
                .map_err(|_| Error(format!("--seconds {} is no time.", self.seconds)))?,
            version: self.version,
            recorder: format!("hostnet {}", env!("CARGO_PKG_VERSION")),
        })
    }
}

/// Records a program and writes the file `path`. `asked` is JSON. `on_progress` is called a few times per second with
/// the numbers of recorded and skipped packets; its answer says whether the recording goes on ("continue"), ends with the
/// packets that it has ("finish") or ends without a file ("abandon"). The calling thread traces the program. Returns the
/// number of recorded packets.
#[pyfunction]
pub fn record(py: Python<'_>, asked: &str, path: PathBuf, on_progress: Py<PyAny>) -> PyResult<usize> {
    let asked: Asked = serde_json::from_str(asked).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let options = asked.options().map_err(refused)?;
    let (mut raised, mut abandoned) = (None, false);
    let outcome = py.detach(|| {
        let mut progress = |p: Progress| {
            let told = Python::attach(|py| on_progress.call1(py, (p.packets, p.skipped))?.extract::<String>(py));
            match told.as_deref() {
                Ok("continue") => Told::Continue,
                Ok("finish") => Told::Finish,
                _ => {
                    abandoned = true;
                    raised = told.err();
                    Told::Abandon
                }
            }
        };
        hostnet_record::record(&options, &mut progress)
    });
    if let Some(e) = raised {
        return Err(e);
    }
    let recording = outcome.map_err(refused)?;
    if abandoned {
        return Ok(0);
    }
    recording.write(path).map_err(refused)?;
    Ok(recording.packets.len())
}

/// Contents of the recording `path`, as JSON.
#[pyfunction]
pub fn recording(path: PathBuf) -> PyResult<String> {
    let recording = Recording::read(path).map_err(refused)?;
    serde_json::to_string(&recording).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}
