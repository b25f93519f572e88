//! The engine with components of one's own: policies, applications and stacks that live in another crate.

use crate::app::Application;
use crate::config::registry::Registry;
use crate::config::resolve::resolve_with;
use crate::config::{Scenario, SpecError};
use crate::host::{self, Outcome};
use crate::placement::{DataPlane, PlacementSpec};
use crate::stack::extension::Stack;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// An engine that knows components of one's own beside those of this crate.
///
/// ```no_run
/// # use hostnet::placement::ddio::Ddio;
/// # use hostnet::placement::DataPlane;
/// # use hostnet::app::touchdrop::Touchdrop;
/// let engine = hostnet::Engine::new().policy("mine", Ddio::new).app::<Touchdrop>("mine");
/// let text = std::fs::read_to_string("mine.toml").expect("a scenario");
/// let scenario = engine.resolve(&text, "mine.toml", &["platforms".into()]).expect("a valid scenario");
/// let outcome = engine.run(&scenario).expect("a result");
/// println!("{:?} Mrps", outcome.values.named("throughput_mrps"));
/// ```
#[derive(Clone, Default)]
pub struct Engine {
    registry: Registry,
}

impl Engine {
    /// An engine that knows the components of this crate.
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Adds a placement policy, which scenarios choose with `placement.policy = name`; `make` makes it from the scenario's
    /// placement.
    ///
    /// # Panics
    /// When a policy of the name exists.
    #[must_use]
    pub fn policy<P, F>(mut self, name: &str, make: F) -> Engine
    where
        P: DataPlane + Clone + Send + 'static,
        F: Fn(&PlacementSpec) -> P + Send + Sync + 'static,
    {
        self.registry.policy(name, make);
        self
    }

    /// Adds an application, which scenarios choose with `app = { kind = "...", ... }`.
    ///
    /// # Panics
    /// When an application of the kind exists.
    #[must_use]
    pub fn app<A>(mut self, kind: &str) -> Engine
    where
        A: Application + Clone + Send + 'static,
        A::Spec: DeserializeOwned + JsonSchema,
    {
        self.registry.app::<A>(kind);
        self
    }

    /// Adds a stack, which scenarios choose with `stack = "..."`, or with `stack = { kind = "...", ... }` if it has keys.
    ///
    /// # Panics
    /// When a stack of the name exists.
    #[must_use]
    pub fn stack<S: Stack>(mut self, name: &str) -> Engine {
        self.registry.stack::<S>(name);
        self
    }

    /// Resolves the text of a scenario, with platforms that lie beside `file` or in `search`.
    ///
    /// # Errors
    /// Returns one sentence that names file, key, value and the nearest valid choice.
    pub fn resolve(&self, text: &str, file: &str, search: &[PathBuf]) -> Result<Scenario, SpecError> {
        resolve_with(&self.registry, text, file, search).map(|(scenario, _)| scenario)
    }

    /// Runs one point.
    ///
    /// # Errors
    /// Returns one sentence that names what cannot be built, or a violated conservation law.
    pub fn run(&self, scenario: &Scenario) -> Result<Outcome, String> {
        host::run(scenario, &mut |_| Ok(()))
    }

    /// JSON Schema of a scenario, with the components that were added.
    pub fn schema(&self) -> String {
        self.registry.schema()
    }
}
