//! All tests of this crate beyond the modules' own, as one program: fifty would link the engine fifty times.
//!
//! `cargo test -p hostnet --test suites coherence::` runs the file `coherence.rs`.

mod common;

mod apps_contract;
mod calendar_contract;
mod captures;
mod ccnic;
mod ccnic_overlay;
mod ccnic_rules;
mod coherence;
mod core_anchor;
mod core_contract;
mod core_prefetch;
mod device_contract;
mod domains_contract;
mod dram_reference;
mod gather;
mod hierarchy_reference;
mod host_contract;
mod idio_contract;
mod idio_runs;
mod kernel_udp;
mod llc_contract;
mod looped;
mod memory_contract;
mod nic;
mod nodes;
mod past_caches;
mod pcie_reference;
mod pipeline;
mod poll_mode;
mod probe_place;
mod protocol;
mod release;
mod responses;
mod ring_dma;
mod roce_contract;
mod scenario_errors;
mod scenario_extremes;
mod tas;
mod tcp_contract;
mod threads_contract;
mod traffic_contract;
mod two_hosts;
