//! An application of one's own, which an [`Engine`](crate::Engine) knows by a kind.

use super::{AppBuildContext, Application, Content, Origin, ServeOutcome, WorkSource};
use crate::core::Program;
use crate::kernel::extension::Extension;
use crate::kernel::units::Size;
use crate::kernel::{LineAddr, RandomStream};
use crate::traffic::pcap::Captured;
use dyn_clone::DynClone;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;
use std::marker::PhantomData;

/// Makes applications of one kind.
pub trait AppFactory: Send + Sync {
    /// Reads the keys of the application.
    ///
    /// # Errors
    /// Returns the path of the key at fault, and what is wrong with its value.
    fn read(&self, keys: &Value) -> Result<(), (String, String)>;
    /// See [`Application::check`].
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    fn check(&self, keys: &Value, cores: u32) -> Result<(), String>;
    /// See [`Application::largest`].
    fn largest(&self, keys: &Value, drawn: Option<Size>) -> Option<Size>;
    /// See [`Application::origin`].
    fn origin(&self, keys: &Value) -> Origin;
    /// See [`Application::answers`].
    fn answers(&self, keys: &Value) -> bool;
    /// Source of the work of the application's cores.
    fn work(&self) -> WorkSource;
    /// See [`Application::build`].
    ///
    /// # Errors
    /// Returns one clause that names key and value when the parameters do not fit together.
    fn build(&self, keys: &Value, packet: u32, context: AppBuildContext) -> Result<ExtensionApp, String>;
    /// JSON Schema of the keys.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

/// Factory of the applications of a type.
pub struct AppOf<A>(PhantomData<fn() -> A>);

impl<A> Default for AppOf<A> {
    fn default() -> Self {
        AppOf(PhantomData)
    }
}

impl<A: Application + Clone + Send + 'static> AppOf<A>
where
    A::Spec: DeserializeOwned + JsonSchema,
{
    /// Parameters that the keys give, which `read` has checked.
    fn spec(keys: &Value) -> A::Spec {
        A::Spec::deserialize(keys).expect("the keys were read when the scenario was resolved")
    }
}

impl<A: Application + Clone + Send + 'static> AppFactory for AppOf<A>
where
    A::Spec: DeserializeOwned + JsonSchema,
{
    fn read(&self, keys: &Value) -> Result<(), (String, String)> {
        let read: Result<A::Spec, _> = serde_path_to_error::deserialize(keys);
        read.map(|_| ()).map_err(|e| (e.path().to_string(), e.inner().to_string()))
    }
    fn check(&self, keys: &Value, cores: u32) -> Result<(), String> {
        A::check(&Self::spec(keys), cores)
    }
    fn largest(&self, keys: &Value, drawn: Option<Size>) -> Option<Size> {
        A::largest(&Self::spec(keys), drawn)
    }
    fn origin(&self, keys: &Value) -> Origin {
        A::origin(&Self::spec(keys))
    }
    fn answers(&self, keys: &Value) -> bool {
        A::answers(&Self::spec(keys))
    }
    fn work(&self) -> WorkSource {
        A::WORK
    }
    fn build(&self, keys: &Value, packet: u32, context: AppBuildContext) -> Result<ExtensionApp, String> {
        A::build(&Self::spec(keys), packet, context).map(|app| ExtensionApp(Box::new(app)))
    }
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<A::Spec>()
    }
}

/// The part of [`Application`] that needs no type.
trait DynApplication: DynClone + Send {
    fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content;
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut RandomStream) -> Content;
    fn prefetch_on_host(&self, core: usize, key: u64);
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program);
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16);
    fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program);
    fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program);
    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32>;
    fn stores(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program);
    fn is_free_running(&self) -> bool;
    fn warms_by_stores(&self) -> bool;
}

impl<A: Application + Clone + Send> DynApplication for A {
    fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content {
        Application::content(self, core, rng)
    }
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut RandomStream) -> Content {
        Application::replay(self, core, packet, i, pass, rng)
    }
    fn prefetch_on_host(&self, core: usize, key: u64) {
        Application::prefetch_on_host(self, core, key);
    }
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        Application::begin_burst(self, core, packets, p);
    }
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        Application::serve(self, core, c, rx, tx, p)
    }
    fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
        Application::make(self, core, c, tx, p);
    }
    fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
        Application::end_burst(self, core, packets, p);
    }
    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        Application::free_run(self, core, rng, p)
    }
    fn stores(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) {
        Application::stores(self, core, rng, p);
    }
    fn is_free_running(&self) -> bool {
        Application::is_free_running(self)
    }
    fn warms_by_stores(&self) -> bool {
        Application::warms_by_stores(self)
    }
}

dyn_clone::clone_trait_object!(DynApplication);

/// An application of one's own.
#[derive(Clone)]
pub struct ExtensionApp(Box<dyn DynApplication>);

impl Application for ExtensionApp {
    type Spec = Extension<dyn AppFactory>;

    fn check(s: &Self::Spec, cores: u32) -> Result<(), String> {
        s.factory().check(&s.keys, cores)
    }
    fn largest(s: &Self::Spec, drawn: Option<Size>) -> Option<Size> {
        s.factory().largest(&s.keys, drawn)
    }
    fn origin(s: &Self::Spec) -> Origin {
        s.factory().origin(&s.keys)
    }
    fn answers(s: &Self::Spec) -> bool {
        s.factory().answers(&s.keys)
    }
    fn work(s: &Self::Spec) -> WorkSource {
        s.factory().work()
    }
    fn build(s: &Self::Spec, packet: u32, context: AppBuildContext) -> Result<Self, String> {
        s.factory().build(&s.keys, packet, context)
    }
    fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content {
        self.0.content(core, rng)
    }
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut RandomStream) -> Content {
        self.0.replay(core, packet, i, pass, rng)
    }
    fn prefetch_on_host(&self, core: usize, key: u64) {
        self.0.prefetch_on_host(core, key);
    }
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        self.0.begin_burst(core, packets, p);
    }
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        self.0.serve(core, c, rx, tx, p)
    }
    fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
        self.0.make(core, c, tx, p);
    }
    fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
        self.0.end_burst(core, packets, p);
    }
    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        self.0.free_run(core, rng, p)
    }
    fn stores(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) {
        self.0.stores(core, rng, p);
    }
    fn is_free_running(&self) -> bool {
        self.0.is_free_running()
    }
    fn warms_by_stores(&self) -> bool {
        self.0.warms_by_stores()
    }
}
