//! Components of one's own through `Engine`, as a crate that depends on this one uses it.

use hostnet::app::{AppBuildContext, Application, Content, ServeOutcome};
use hostnet::core::{Op, Program};
use hostnet::kernel::{LineAddr, RandomStream};
use hostnet::memory::region::{RegionKind, Sharing};
use hostnet::memory::Inbound;
use hostnet::placement::{DataPlane, DeviceTransfer, PlacementSpec, Ways};
use hostnet::stack::dispatch::Dispatch;
use hostnet::stack::extension::{ExtensionThread, Stack, StackSite};
use hostnet::stack::{Ctx, Role, Software, Step};
use hostnet::{Engine, VERSION};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

#[path = "../../../examples/own-components/src/counting.rs"]
mod counting;
use counting::Counting;

/// Sends one line of `every` to the LLC and the others to DRAM.
#[derive(Clone, Debug)]
struct Sparse {
    ways: Ways,
    every: u64,
    seen: u64,
}

impl DataPlane for Sparse {
    fn new(s: &PlacementSpec) -> Sparse {
        Sparse { ways: s.ways, every: 1, seen: 0 }
    }
    fn write(&mut self, _: &DeviceTransfer) -> Inbound {
        self.seen += 1;
        if self.seen % self.every == 0 {
            Inbound::Llc { ways: self.ways.mask() }
        } else {
            Inbound::Dram
        }
    }
    fn reads_tags(&self) -> bool {
        false
    }
    fn ways(&self) -> u32 {
        self.ways.count
    }
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TouchSpec {
    /// Number of lines of the table that a packet reads.
    lines: u32,
}

/// Reads some lines of a table for each packet.
#[derive(Clone)]
struct Touch {
    table: LineAddr,
    lines: u32,
}

impl Application for Touch {
    type Spec = TouchSpec;

    fn check(s: &TouchSpec, _: u32) -> Result<(), String> {
        if s.lines == 0 {
            return Err("lines = 0 reads nothing; give at least 1".into());
        }
        Ok(())
    }
    fn build(s: &TouchSpec, _: u32, context: AppBuildContext) -> Result<Touch, String> {
        let r = context.map.add(s.lines.into(), RegionKind::App, Sharing::Shared, context.tenant);
        Ok(Touch { table: context.map.get(r).base, lines: s.lines })
    }
    fn content(&mut self, _: usize, _: &mut RandomStream) -> Content {
        Content { lines: 4, wire_bytes: 256, ..Content::default() }
    }
    fn serve(&mut self, _: usize, _: &Content, _: LineAddr, _: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        p.push(Op::Load { line: self.table, lines: self.lines });
        (ServeOutcome::Consumed, 0)
    }
}

fn engine() -> Engine {
    Engine::new()
        .policy("sparse", |s: &PlacementSpec| Sparse { every: 4, ..Sparse::new(s) })
        .app::<Touch>("touch")
        .stack::<Dispatch>("mine")
}

const SCENARIO: &str = r#"
    name = "own"
    platform = "sim24"
    placement = { policy = "sparse", ways = 2 }
    rings = { rx_buffers = 256, buffer_size = "1 KiB" }
    tenant = [{ name = "a", cores = 3, stack = { kind = "mine", depth = 2 }, app = { kind = "touch", lines = 8 } }]
    traffic = { arrivals = "fixed", rate = "1 Mrps" }
    run = { load = "fixed", requests = 4000, warmup_requests = 1000 }
"#;

fn search() -> [PathBuf; 1] {
    [PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../platforms")]
}

fn why(text: &str) -> String {
    engine().resolve(text, "own.toml", &search()).expect_err("refused").0
}

#[test]
fn a_scenario_names_components_that_are_registered() {
    let scenario = engine().resolve(SCENARIO, "own.toml", &search()).unwrap_or_else(|e| panic!("{e}"));
    let o = engine().run(&scenario).unwrap_or_else(|e| panic!("{e}"));
    // Of the 4 lines of each packet, the policy sends 3 to DRAM.
    assert_eq!(o.values.named("acc_nic_rx_wr"), Some(3.0));
    let row = &o.tables["tenants"]["rows"][0];
    assert_eq!((row[1].as_str(), row[2].as_str()), (Some("touch"), Some("mine")));
    assert!(o.tables.contains_key("dispatch"), "the role's own table");
    assert!(!VERSION.is_empty());
}

#[test]
fn mistakes_in_own_components_are_one_sentence() {
    for (from, to, said) in [
        ("lines = 8", "liness = 8", "tenant[0].app: unknown key \"liness\"; did you mean \"lines\" (valid: lines)"),
        ("lines = 8", "lines = \"x\"", "tenant[0].app.lines: invalid type: string \"x\""),
        ("lines = 8", "lines = 0", "lines = 0 reads nothing"),
        (", lines = 8", "", "tenant[0].app: missing field \"lines\""),
        ("\"touch\"", "\"tuch\"", "did you mean \"touch\""),
        ("\"sparse\"", "\"spare\"", "did you mean \"sparse\""),
        ("ways = 2", "ways = 40", "placement.ways = 40"),
    ] {
        let text = SCENARIO.replace(from, to);
        assert!(why(&text).contains(said), "{said}: {}", why(&text));
    }
    // Without registration the words mean nothing.
    let plain = Engine::new().resolve(SCENARIO, "own.toml", &search()).expect_err("refused").0;
    assert!(plain.contains("unknown choice \"sparse\""), "{plain}");
}

#[test]
fn the_schema_has_the_components_that_are_registered() {
    let schema: Value = serde_json::from_str(&engine().schema()).expect("JSON");
    let choices = |of: &str| schema["$defs"][of]["oneOf"].to_string();
    assert!(choices("PlacementPolicy").contains("\"sparse\""));
    assert!(choices("StackSpec").contains("\"mine\"") && choices("StackSpec").contains("\"dispatch\""));
    let apps = schema["$defs"]["AppSpec"]["oneOf"].as_array().expect("choices");
    let touch = apps.iter().find(|a| a["properties"]["kind"]["const"] == "touch").expect("the application");
    assert_eq!(touch["required"], serde_json::json!(["kind", "lines"]));
    assert!(touch["properties"]["lines"]["description"].as_str().is_some_and(|d| d.starts_with("Number of lines")));
    assert!(!schema.to_string().contains("extension"), "the inner name of a component is nobody's choice");
}

#[test]
#[should_panic(expected = "the engine has a policy \"ddio\" of its own")]
fn a_policy_does_not_hide_one_of_the_engine() {
    let _ = Engine::new().policy("ddio", Sparse::new);
}

#[test]
#[should_panic(expected = "the engine has an application \"mica\" of its own")]
fn an_application_does_not_hide_one_of_the_engine() {
    let _ = Engine::new().app::<Touch>("mica");
}

#[test]
#[should_panic(expected = "a stack \"dispatch\" is registered already")]
fn a_stack_does_not_hide_one_of_the_engine() {
    let _ = Engine::new().stack::<Dispatch>("dispatch");
}

#[derive(Deserialize, JsonSchema)]
struct DeafSpec {}

/// A stack that takes no packet.
#[derive(Clone)]
struct Deaf;

impl Role for Deaf {}

impl Software for Deaf {
    fn step(&mut self, _: &mut Ctx) -> Step {
        Step::Idle
    }
}

impl Stack for Deaf {
    type Spec = DeafSpec;
    fn build(_: &DeafSpec, site: &mut StackSite) -> Result<(Deaf, Vec<ExtensionThread>), String> {
        Ok((Deaf, site.cores.iter().map(|_| ExtensionThread::new(Deaf)).collect()))
    }
}

const ON_A_PORT: &str = r#"
    name = "own"
    platform = "icx"
    override.nodes.count = 1
    placement = { policy = "ddio", ways = 2 }
    peripheral = [{ kind = "ethernet", name = "front" }]
    tenant = [{ name = "a", cores = 2, stack = "counting", nic = "front", app = { kind = "testpmd", mode = "macswap" } }]
    traffic = { arrivals = "fixed", rate = "1 Mpps", packet = "256 B" }
    run = { load = "fixed", requests = 4000, warmup_requests = 1000 }
"#;

/// The stack of one's own gets each packet that a poll-mode driver gets, and the line that its cores share costs them time.
#[test]
fn a_stack_of_one_s_own_drives_the_rings_of_a_nic_on_a_port() {
    let engine = engine().stack::<Counting>("counting");
    let run = |text: &str| {
        let scenario = engine.resolve(text, "own.toml", &search()).unwrap_or_else(|e| panic!("{e}"));
        engine.run(&scenario).unwrap_or_else(|e| panic!("{e}"))
    };
    let (own, plain) = (run(ON_A_PORT), run(&ON_A_PORT.replace("\"counting\"", "\"poll_mode\"")));
    let taken: Vec<u64> =
        own.tables["counting"]["rows"].as_array().expect("rows").iter().filter_map(|r| r[1].as_u64()).collect();
    assert!(taken.iter().all(|n| *n > 1500), "both cores take packets: {taken:?}");
    assert!((3900..=4100).contains(&taken.iter().sum::<u64>()), "{taken:?} of 4000 packets");
    for o in [&own, &plain] {
        let rate = o.values.named("throughput_mrps").expect("packets");
        assert!((0.99..=1.01).contains(&rate), "{rate} Mrps");
        assert_eq!(o.values.named("drop_rate"), Some(0.0));
    }
    let service = |o: &hostnet::host::Outcome| o.values.named("service_mean_us").expect("services");
    assert!(
        service(&own) > service(&plain),
        "{} us with the shared line, {} us without",
        service(&own),
        service(&plain)
    );
}

#[test]
fn a_stack_that_knows_queue_pairs_only_gets_no_nic_on_a_port() {
    let engine = engine().stack::<Counting>("counting");
    let refused = |text: &str| engine.resolve(text, "own.toml", &search()).expect_err("refused").0;
    let said = refused(&ON_A_PORT.replace("\"counting\"", "\"dispatch\""));
    assert!(
        said.contains("tenant[0].nic = \"front\": the stack \"dispatch\" takes packets from queue pairs"),
        "{said}"
    );
}

/// Packets that go on to come do not keep a run alive in which nothing is served.
#[test]
fn a_stack_that_serves_nothing_ends_in_a_sentence() {
    let engine = engine().stack::<Deaf>("deaf");
    let text = SCENARIO.replace("{ kind = \"mine\", depth = 2 }", "\"deaf\"").replace("1 Mrps", "8 Mrps");
    let scenario = engine.resolve(&text, "own.toml", &search()).unwrap_or_else(|e| panic!("{e}"));
    let why = engine.run(&scenario).expect_err("nothing is served");
    assert!(why.starts_with("the run stands still: 1") && why.ends_with("packets came, and none was served"), "{why}");
}
