//! Components that a program registers with an [`Engine`](crate::Engine), as scenarios name them.

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A component of one's own: its name, its keys as the scenario gives them, and the factory that makes it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct Extension<F: ?Sized> {
    /// Name under which the component is registered.
    #[serde(default)]
    pub name: String,
    /// Keys of the component.
    #[serde(default)]
    pub keys: Value,
    /// Factory of the component; None until an engine has resolved the scenario.
    #[serde(skip)]
    pub factory: Option<Arc<F>>,
}

impl<F: ?Sized> Extension<F> {
    /// The factory of the component.
    ///
    /// # Panics
    /// When no engine has resolved the scenario, which `resolve` excludes.
    pub fn factory(&self) -> &F {
        self.factory.as_deref().expect("an engine has resolved the scenario")
    }
}

impl<F: ?Sized> Clone for Extension<F> {
    fn clone(&self) -> Self {
        Extension { name: self.name.clone(), keys: self.keys.clone(), factory: self.factory.clone() }
    }
}

impl<F: ?Sized> PartialEq for Extension<F> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.keys == other.keys
    }
}

impl<F: ?Sized> fmt::Debug for Extension<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.keys)
    }
}

impl<F: ?Sized> JsonSchema for Extension<F> {
    fn schema_name() -> Cow<'static, str> {
        "Extension".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}
