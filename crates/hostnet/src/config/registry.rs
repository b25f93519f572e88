//! Components of one's own, by the names under which scenarios know them.

use super::scenario::{Scenario, StackSpec, TenantStack};
use super::unknown::unknown_key;
use crate::app::extension::{AppFactory, AppOf};
use crate::app::{AppSpec, Application};
use crate::kernel::extension::Extension;
use crate::placement::extension::{PolicyFactory, PolicyFunction};
use crate::placement::{DataPlane, PlacementPolicy, PlacementSpec};
use crate::stack;
use crate::stack::extension::{Stack, StackFactory, StackOf};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the variants that stand for components of one's own. Scenarios use the names of the components.
pub(super) const EXTENSION: &str = "extension";

/// Policies, applications and stacks that an engine knows beside its own, by name.
#[derive(Clone)]
pub struct Registry {
    policies: BTreeMap<String, Arc<dyn PolicyFactory>>,
    apps: BTreeMap<String, Arc<dyn AppFactory>>,
    stacks: BTreeMap<String, Arc<dyn StackFactory>>,
}

impl Default for Registry {
    /// The stacks of this crate that are one file each.
    fn default() -> Registry {
        let stacks = stack::stacks().into_iter().map(|(name, f)| (name.to_string(), f)).collect();
        Registry { policies: BTreeMap::new(), apps: BTreeMap::new(), stacks }
    }
}

impl Registry {
    /// Adds a placement policy.
    ///
    /// # Panics
    /// When a policy of the name exists.
    pub fn policy<P, F>(&mut self, name: &str, make: F)
    where
        P: DataPlane + Clone + Send + 'static,
        F: Fn(&PlacementSpec) -> P + Send + Sync + 'static,
    {
        let word = Value::from(name);
        assert!(PlacementPolicy::deserialize(&word).is_err(), "the engine has a policy \"{name}\" of its own");
        let earlier = self.policies.insert(name.into(), Arc::new(PolicyFunction(make)));
        assert!(earlier.is_none(), "a policy \"{name}\" is registered already");
    }

    /// Adds an application.
    ///
    /// # Panics
    /// When an application of the kind exists.
    pub fn app<A>(&mut self, kind: &str)
    where
        A: Application + Clone + Send + 'static,
        A::Spec: DeserializeOwned + JsonSchema,
    {
        assert!(!AppSpec::knows(kind), "the engine has an application \"{kind}\" of its own");
        let earlier = self.apps.insert(kind.into(), Arc::new(AppOf::<A>::default()));
        assert!(earlier.is_none(), "an application \"{kind}\" is registered already");
    }

    /// Adds a stack.
    ///
    /// # Panics
    /// When a stack of the name exists.
    pub fn stack<S: Stack>(&mut self, name: &str) {
        let unknown = StackSpec::deserialize(&Value::from(name)).is_err_and(|e| is_unknown(&e, name));
        assert!(unknown, "the engine has a stack \"{name}\" of its own");
        let earlier = self.stacks.insert(name.into(), Arc::new(StackOf::<S>::default()));
        assert!(earlier.is_none(), "a stack \"{name}\" is registered already");
    }

    /// Names that a scenario may give beside those of the engine at the key that `path` ends with.
    pub(super) fn names(&self, path: &str) -> Vec<&str> {
        match path.rsplit('.').next() {
            Some("policy") => self.policies.keys().map(String::as_str).collect(),
            Some("stack") => self.stacks.keys().map(String::as_str).collect(),
            _ => self.apps.keys().map(String::as_str).collect(),
        }
    }

    /// Rewrites the names of registered components into the form in which a scenario holds them.
    pub(super) fn mark(&self, root: &mut Value) {
        self.mark_placement(root);
        for tenant in root.get_mut("tenant").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(app) = tenant.get_mut("app") {
                if let Some((name, keys)) = named(app).filter(|(name, _)| self.apps.contains_key(name)) {
                    *app = json!({ "kind": EXTENSION, "name": name, "keys": keys });
                }
            }
            let Some(stack) = tenant.get_mut("stack") else { continue };
            let own = match stack.as_str() {
                Some(EXTENSION) => {
                    *stack = json!({ EXTENSION: {} });
                    None
                }
                Some(name) => Some((name.to_string(), json!({}))),
                None => named(stack),
            };
            match own {
                Some((name, keys)) if self.stacks.contains_key(&name) => {
                    *stack = json!({ EXTENSION: { "name": name, "keys": keys } });
                }
                Some((name, _)) => *stack = name.into(),
                None => {}
            }
        }
    }

    fn mark_placement(&self, root: &mut Value) {
        let Some(placement) = root.get_mut("placement").and_then(Value::as_object_mut) else { return };
        let name = placement.get("policy").and_then(Value::as_str).unwrap_or_default().to_string();
        placement.remove(EXTENSION);
        if self.policies.contains_key(&name) {
            placement.insert("policy".into(), EXTENSION.into());
            placement.insert(EXTENSION.into(), json!({ "name": name, "keys": {} }));
        }
    }

    /// Gives the components that a scenario names their factories, and reads their keys.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub(super) fn attach(&self, s: &mut Scenario) -> Result<(), String> {
        if let Some(e) = &mut s.placement.extension {
            e.factory = self.policies.get(&e.name).cloned();
        }
        let known = s.placement.extension.as_ref().is_some_and(|e| e.factory.is_some());
        if s.placement.policy == PlacementPolicy::Extension && !known {
            return Err(unknown("placement.policy", self.policies.keys()));
        }
        for (i, t) in s.tenants.iter_mut().enumerate() {
            if let AppSpec::Extension(e) = &mut t.app {
                let at = format!("tenant[{i}].app");
                let factory = attached(e, &self.apps, &format!("{at}.kind"))?;
                factory.read(&e.keys).map_err(|(path, why)| clause(&at, &path, &e.keys, &why))?;
            }
            if let TenantStack::Extension { stack: e, .. } = &mut t.stack {
                let at = format!("tenant[{i}].stack");
                let factory = attached(e, &self.stacks, &at)?;
                factory.read(&e.keys).map_err(|(path, why)| clause(&at, &path, &e.keys, &why))?;
            }
        }
        Ok(())
    }

    /// JSON Schema of a scenario, with the registered components beside those of the engine.
    pub fn schema(&self) -> String {
        let mut generator = SchemaGenerator::default();
        let mut root = serde_json::to_value(generator.root_schema_for::<Scenario>()).expect("schemas serialize");
        let mut apps = Vec::new();
        for (kind, f) in &self.apps {
            let keys = f.schema(&mut generator);
            apps.push(table_of(kind, keys, "Application of one's own.", &generator));
        }
        let mut stacks = Vec::new();
        for (name, f) in &self.stacks {
            let keys = f.schema(&mut generator);
            let table = table_of(name, keys, "Stack of one's own.", &generator);
            stacks.push(json!({ "type": "string", "const": name, "description": table["description"] }));
            stacks.push(table);
        }
        let policies = self
            .policies
            .keys()
            .map(|name| json!({ "type": "string", "const": name, "description": "Policy of one's own." }))
            .collect();
        for (of, more) in [("AppSpec", apps), ("StackSpec", stacks), ("PlacementPolicy", policies)] {
            if let Some(choices) = root.pointer_mut(&format!("/$defs/{of}/oneOf")).and_then(Value::as_array_mut) {
                choices.retain(|c| !is_extension(c));
                choices.extend(more);
            }
        }
        if let Some(defs) = root.get_mut("$defs").and_then(Value::as_object_mut) {
            for (name, schema) in generator.take_definitions(true) {
                defs.entry(name).or_insert(schema);
            }
            defs.remove("Extension");
        }
        serde_json::to_string_pretty(&root).expect("schemas serialize")
    }
}

/// Schema of a table of kind `kind`, in the form of the engine's own: its keys, and the kind beside them. The description
/// is that of the type that reads the keys, or else `otherwise`.
fn table_of(kind: &str, keys: Schema, otherwise: &str, generator: &SchemaGenerator) -> Value {
    let keys = Value::from(keys);
    let defined = keys["$ref"].as_str().and_then(|r| generator.definitions().get(r.rsplit('/').next()?));
    let mut table = defined.unwrap_or(&keys).clone();
    if table["description"].is_null() {
        table["description"] = otherwise.into();
    }
    table["type"] = "object".into();
    table["properties"]["kind"] = json!({ "type": "string", "const": kind });
    let mut required = vec![json!("kind")];
    required.extend(table["required"].as_array().cloned().unwrap_or_default());
    table["required"] = required.into();
    table
}

/// Whether a choice of a schema is the variant that stands for components of one's own.
fn is_extension(choice: &Value) -> bool {
    choice.get("const").is_some_and(|c| c == EXTENSION)
        || choice.pointer("/properties/kind/const").is_some_and(|c| c == EXTENSION)
}

impl AppSpec {
    /// Whether the engine has an application of this kind.
    pub(super) fn knows(kind: &str) -> bool {
        AppSpec::deserialize(&json!({ "kind": kind })).map_or_else(|e| !is_unknown(&e, kind), |_| true)
    }
}

/// Whether the engine knows no component of the name that caused the error.
fn is_unknown(e: &serde_json::Error, name: &str) -> bool {
    e.to_string().starts_with(&format!("unknown variant `{name}`"))
}

/// Kind and other keys of a table with a kind.
fn named(table: &Value) -> Option<(String, Value)> {
    let mut keys: Map<String, Value> = table.as_object()?.clone();
    let kind = keys.remove("kind")?.as_str()?.to_string();
    Some((kind, keys.into()))
}

/// The factory of the component `e`, which from now on is the component's own.
fn attached<'a, F: ?Sized>(
    e: &mut Extension<F>,
    known: &'a BTreeMap<String, Arc<F>>,
    at: &str,
) -> Result<&'a Arc<F>, String> {
    let factory = known.get(&e.name).ok_or_else(|| unknown(at, known.keys()))?;
    e.factory = Some(factory.clone());
    Ok(factory)
}

/// Clause about a component that nobody has registered.
fn unknown<'a>(at: &str, known: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<&str> = known.map(String::as_str).collect();
    format!(
        "{at} = \"{EXTENSION}\" names no component; give the name under which it is registered (there are: {})",
        all.join(", ")
    )
}

/// Clause about a key of a component, from the error of Serde.
fn clause(at: &str, path: &str, keys: &Value, why: &str) -> String {
    let quoted: Vec<&str> = why.split('`').skip(1).step_by(2).collect();
    if let (Some(word), true) = (quoted.first(), why.starts_with("unknown field")) {
        return format!("{at}: {}", unknown_key(word, &quoted[1..]));
    }
    let path = if path == "." { at.to_string() } else { format!("{at}.{path}") };
    let value = path.strip_prefix(&format!("{at}.")).and_then(|key| keys.get(key));
    let why = why.replace('`', "\"");
    match value {
        Some(v) if !why.contains(&v.to_string()) => format!("{path}: {why} (the value is {v})"),
        _ => format!("{path}: {why}"),
    }
}
