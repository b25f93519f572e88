//! Plan of the memory controllers: what a specification means once it has been checked. Each scheduler has its own keys in
//! the plan, so that the code of one scheduler cannot read a key of another.

use super::mapping::{self, Mapper};
use super::standards::DramDevice;
use super::timing::DramTiming;
use super::{ChannelShape, DramQuirks, DramSpec, EntryRelease, PagePolicy, Scheduler};
use serde::Serialize;

/// Checked organisation and policy of the memory controllers of a node.
#[derive(Clone, Debug)]
pub struct DramPlan {
    /// Number of independent channels, where sub-channels and pseudo-channels count.
    pub(super) channels: u32,
    pub(super) mapper: Mapper,
    pub(super) shape: ChannelShape,
    pub(super) timing: DramTiming,
    pub(super) refresh: bool,
    pub(super) page: PagePolicy,
    pub(super) row_access_limit: u32,
    /// Entries of the read and the write queue, and the numbers of entries at which they count as full.
    pub(super) entries: [u32; 2],
    pub(super) full_marks: [u32; 2],
    pub(super) write_high: f64,
    pub(super) static_latency_ns: f64,
    /// The scheduler with its keys.
    pub scheduler: SchedulerPlan,
}

/// Scheduler of a memory controller with the keys that it has. The fields have the names of the keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SchedulerPlan {
    /// Every command by itself, and row hits first.
    HitFirst(CommandPlan),
    /// Every command by itself, and the oldest request first.
    FirstReady(CommandPlan),
    /// One request after the other with all its commands.
    Transaction(TransactionPlan),
    /// Column commands only, with rows that open at the arrival of requests.
    OnArrival(OnArrivalPlan),
    /// A command queue for each bank (`bank_queue`), which takes the place of `scheduler`.
    BankQueues(BankQueuePlan),
}

/// Rules by which a channel changes between read mode and write mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModePlan {
    /// Fraction of `wpq` below which write mode ends when reads wait.
    pub write_low: f64,
    /// Fraction of `wpq` above which write mode begins when no read waits.
    pub write_idle: f64,
    /// Whether writes that are sent because no read waits yield to an arriving read.
    pub writes_yield: bool,
    /// Whether the channel changes direction while all its requests of one direction wait for a refresh.
    pub refresh_turns: bool,
    /// Number of reads to serve before write mode may begin, unless no read is left.
    pub min_read_burst: u32,
    /// Number of writes to serve before write mode may end, unless no write is left.
    pub min_write_burst: u32,
    /// Number of writes after which write mode ends when reads wait; 0 means no limit.
    pub max_write_burst: u32,
}

/// Keys of the schedulers that choose every command by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandPlan {
    /// Rules by which the channel changes its mode.
    #[serde(flatten)]
    pub modes: ModePlan,
    /// Age in ns at or above which a request may close a row that still has hits; 0 means never.
    pub age_cap_ns: u64,
    /// Time in ns after which an idle row is closed; 0 leaves the row open.
    pub page_idle_ns: f64,
    /// Time at which a queue entry becomes free.
    pub entry_release: EntryRelease,
}

/// Keys of the scheduler that chooses requests with all their commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransactionPlan {
    /// Rules by which the channel changes its mode.
    #[serde(flatten)]
    pub modes: ModePlan,
    /// Time in ns after which an idle row is closed; 0 leaves the row open.
    pub page_idle_ns: f64,
    /// Time at which a queue entry becomes free.
    pub entry_release: LateRelease,
}

/// Keys of the scheduler that chooses column commands only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnArrivalPlan {
    /// Fraction of `wpq` below which writes stop when reads wait.
    pub write_low: f64,
    /// Time in ns after which an idle row is closed; 0 leaves the row open.
    pub page_idle_ns: f64,
    /// Time at which a queue entry becomes free.
    pub entry_release: LateRelease,
}

/// Keys of a controller with a command queue for each bank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BankQueuePlan {
    /// Number of entries of a bank's command queue, above 0.
    pub bank_queue: u32,
    /// Number of row accesses after which the oldest request may close the row; 0 means no limit.
    pub row_hit_limit: u32,
    /// Fraction of `wpq` above which writes are sent when nothing else waits.
    pub write_idle: f64,
}

/// Time at which a queue entry becomes free under a scheduler that decides on an activate and its column command
/// together: not before the column command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LateRelease {
    /// The column command frees the entry.
    Column,
    /// The end of its data frees the entry of a read; the column command frees the entry of a write.
    Data,
}

impl SchedulerPlan {
    /// Names of the choices in a scenario, with a plan of each that has default values.
    pub(super) fn choices() -> impl Iterator<Item = (&'static str, SchedulerPlan)> {
        use Scheduler::{FirstReady, HitFirst, OnArrival, Transaction};
        let of = |(name, scheduler, bank_queue)| {
            let mut spec = DramSpec { scheduler, ..DramSpec::default() };
            spec.quirks.bank_queue = bank_queue;
            (name, spec.scheduler_plan().expect("the defaults are valid"))
        };
        [
            ("scheduler = \"hit_first\"", HitFirst, 0),
            ("scheduler = \"first_ready\"", FirstReady, 0),
            ("scheduler = \"transaction\"", Transaction, 0),
            ("scheduler = \"on_arrival\"", OnArrival, 0),
            ("quirks.bank_queue above 0", HitFirst, 8),
        ]
        .into_iter()
        .map(of)
    }

    /// Whether the scheduler has `key`, which some scheduler has.
    fn has(&self, key: &str) -> bool {
        match self {
            SchedulerPlan::BankQueues(_) if key == "scheduler" => false,
            _ => key == "scheduler" || serde_json::to_value(self).is_ok_and(|keys| keys.get(key).is_some()),
        }
    }

    /// Rules by which the channel changes its mode, where the scheduler has modes.
    pub fn modes(&self) -> Option<&ModePlan> {
        match self {
            SchedulerPlan::HitFirst(p) | SchedulerPlan::FirstReady(p) => Some(&p.modes),
            SchedulerPlan::Transaction(p) => Some(&p.modes),
            SchedulerPlan::OnArrival(_) | SchedulerPlan::BankQueues(_) => None,
        }
    }
}

impl DramSpec {
    /// The plan of this specification.
    ///
    /// # Errors
    /// Fails with one sentence that names the key, its value and the valid values.
    pub fn plan(&self) -> Result<DramPlan, String> {
        let device = self.standard.device(self.device_width);
        let shape = self.shape(&device)?;
        let scheduler = self.scheduler_plan()?;
        let channels = self.channels * device.subchannels;
        let q = &self.quirks;
        mapping::check(self, &shape)?;
        Ok(DramPlan {
            channels,
            mapper: Mapper::new(&self.mapping, channels, q.channel_hash, q.bank_hash, &shape)?,
            shape,
            timing: self.timing(&device)?,
            refresh: q.refresh,
            page: self.page_policy,
            row_access_limit: q.row_access_limit,
            entries: [self.rpq, self.wpq],
            full_marks: [q.rpq_full_mark, q.wpq_full_mark],
            write_high: self.write_high,
            static_latency_ns: self.static_latency_ns,
            scheduler,
        })
    }

    /// The quirks with the values of `standard` for the keys that leave them to it: numbers of banks, and timings in ps.
    /// The specification must be one that [`DramSpec::plan`] accepts.
    #[must_use]
    pub fn quirks_in_full(&self) -> DramQuirks {
        let d = self.standard.device(self.device_width);
        let (bank_groups, banks_per_group) = self.banks(&d);
        DramQuirks { bank_groups, banks_per_group, timing: self.quirks.timing.in_full(&d), ..self.quirks.clone() }
    }

    /// Numbers of bank groups of a rank and of banks of a group, with devices `d`.
    pub(super) fn banks(&self, d: &DramDevice) -> (u32, u32) {
        let or = |given: u32, of_device: u32| if given == 0 { of_device } else { given };
        (or(self.quirks.bank_groups, d.bank_groups), or(self.quirks.banks_per_group, d.banks_per_group))
    }

    /// The scheduler with the keys that it has.
    fn scheduler_plan(&self) -> Result<SchedulerPlan, String> {
        let q = &self.quirks;
        fraction("write_high", self.write_high)?;
        if q.bank_queue > 0 {
            return Ok(SchedulerPlan::BankQueues(BankQueuePlan {
                bank_queue: q.bank_queue,
                row_hit_limit: q.row_hit_limit,
                write_idle: fraction("quirks.write_idle", q.write_idle)?,
            }));
        }
        if !(0.0..=self.write_high).contains(&self.write_low) {
            return Err(format!(
                "write_low = {} and write_high = {} must be fractions with write_low <= write_high",
                self.write_low, self.write_high
            ));
        }
        let page_idle_ns = q.page_idle_ns;
        if !(0.0..=1e6).contains(&page_idle_ns) {
            return Err(format!("quirks.page_idle_ns = {page_idle_ns} is outside 0 to 1000000"));
        }
        let modes = || {
            Ok::<_, String>(ModePlan {
                write_low: self.write_low,
                write_idle: fraction("quirks.write_idle", q.write_idle)?,
                writes_yield: q.writes_yield,
                refresh_turns: q.refresh_turns,
                min_read_burst: q.min_read_burst,
                min_write_burst: q.min_write_burst,
                max_write_burst: q.max_write_burst,
            })
        };
        let commands = || {
            let (age_cap_ns, entry_release) = (q.age_cap_ns, q.entry_release);
            Ok::<_, String>(CommandPlan { modes: modes()?, age_cap_ns, page_idle_ns, entry_release })
        };
        Ok(match self.scheduler {
            Scheduler::HitFirst => SchedulerPlan::HitFirst(commands()?),
            Scheduler::FirstReady => SchedulerPlan::FirstReady(commands()?),
            Scheduler::Transaction => {
                let entry_release = self.late_release()?;
                SchedulerPlan::Transaction(TransactionPlan { modes: modes()?, page_idle_ns, entry_release })
            }
            Scheduler::OnArrival => {
                let entry_release = self.late_release()?;
                SchedulerPlan::OnArrival(OnArrivalPlan { write_low: self.write_low, page_idle_ns, entry_release })
            }
        })
    }

    /// The release of entries under a scheduler that decides on an activate and its column command together.
    fn late_release(&self) -> Result<LateRelease, String> {
        match self.quirks.entry_release {
            EntryRelease::Column => Ok(LateRelease::Column),
            EntryRelease::Data => Ok(LateRelease::Data),
            EntryRelease::Activate => Err(format!(
                "quirks.entry_release = \"activate\" needs scheduler = \"hit_first\" or \"first_ready\"; with \"{}\", where no \
                 request waits between its activate and its column command, choose \"column\" or \"data\"",
                self.scheduler.word()
            )),
        }
    }

    /// Reason why `key` of the table `memory` or of its `quirks` has no effect, if the scheduler does not have the key.
    pub fn unused(&self, key: &str) -> Option<String> {
        if matches!(key, "page_idle_ns" | "row_access_limit") && self.page_policy == PagePolicy::Closed {
            return Some("has no effect with page_policy = \"closed\", which leaves no row open".into());
        }
        let plan = self.scheduler_plan().ok()?;
        let owners: Vec<_> = SchedulerPlan::choices().filter(|(_, p)| p.has(key)).map(|(name, _)| name).collect();
        if owners.is_empty() || plan.has(key) {
            return None;
        }
        let here = match self.quirks.bank_queue {
            0 => format!("scheduler = \"{}\"", self.scheduler.word()),
            n => format!("quirks.bank_queue = {n}, which takes the place of scheduler"),
        };
        Some(format!("has no effect with {here}; it is for {}", owners.join(", ").replace(", scheduler = ", ", ")))
    }
}

fn fraction(key: &str, f: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&f) {
        Ok(f)
    } else {
        Err(format!("{key} = {f} is not within 0 to 1"))
    }
}
