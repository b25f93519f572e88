//! All tests of this crate outside its modules, as one program: with one program per file, the engine would be linked
//! once for each file.
//!
//! `cargo test -p hostnet --test suites coherence::` runs the file `coherence.rs`.

mod common;

mod apps_contract;
mod bounding_keys;
mod calendar_contract;
mod captures;
mod ccnic;
mod ccnic_overlay;
mod ccnic_rules;
mod ccnic_tenants;
mod choices;
mod coherence;
mod conversions;
mod core_anchor;
mod core_contract;
mod core_prefetch;
mod device_access;
mod device_contract;
mod dispatch;
mod domains_contract;
mod dram_reference;
mod engine;
mod engine_digest;
mod gather;
mod hierarchy_reference;
mod host_contract;
mod hyperthreads;
mod idio_contract;
mod idio_runs;
mod idle_polls;
mod kernel_udp;
mod layers;
mod lives;
mod llc_contract;
mod loopback;
mod memory_contract;
mod memory_link;
mod metrics;
mod mixtures;
mod mixtures_drawn;
mod nic;
mod nodes;
mod one_simulation;
mod outgrown;
mod overruled_keys;
mod pcie_reference;
mod pipeline;
mod placement_table;
mod poll_mode;
mod probe_place;
mod protocol;
mod recorded;
mod release;
mod resolved;
mod responses;
mod ring_dma;
mod roce_contract;
mod scenario_errors;
mod scenario_extremes;
mod several;
mod shared_way;
mod tas;
mod tcp_contract;
mod threads_contract;
mod traffic_contract;
mod twelve_mixtures;
mod two_hosts;
mod two_nics;
mod type_names;
mod used_keys;

#[test]
fn every_file_beside_this_one_is_part_of_it() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = include_str!("suites.rs");
    for entry in std::fs::read_dir(here).expect("the tests' directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        assert!(name == "suites" || listed.contains(&format!("\nmod {name};\n")), "{name} is not listed in suites.rs");
    }
}
