//! Metrics of a host with several tenants, NICs or nodes: each covers all of them, in whichever order the scenario names them.

use crate::common::{get, simulate};

/// Three cores of a node that stream from its memory.
fn streaming(name: &str, node: u32) -> String {
    format!(
        "[[tenant]]\nname = \"{name}\"\ncores = 3\nnode = {node}\napp = {{ kind = \"stream\", buffer = \"64 MiB\" }}\n"
    )
}

/// A host of two nodes with one channel each, on which `tenants` stream.
fn two_sockets(tenants: &str) -> String {
    format!(
        "name = \"sockets\"\nplatform = \"icx\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n{tenants}\
         [override.memory]\nchannels = 1\n[traffic]\narrivals = \"none\"\n\
         [run]\nload = \"saturate\"\nwarmup_time = \"20 us\"\ntime = \"40 us\"\n"
    )
}

/// A channel of DDR4-3200 has 25.6 GB/s. Streams at both nodes take what streams at one node take twice over, and the closed
/// form expects that as well.
#[test]
fn channels_of_every_node_count() {
    let one = simulate(&two_sockets(&streaming("a", 0)));
    let both = simulate(&two_sockets(&(streaming("a", 0) + &streaming("b", 1))));
    for (o, used) in [(&one, 1.0), (&both, 2.0)] {
        assert_eq!((get(o, "channels"), get(o, "mem_peak_gbs")), (2.0, 51.2));
        let share = get(o, "mem_bw_gbs") / 51.2;
        assert!((get(o, "mem_utilisation") - share).abs() < 1e-9 && share <= used / 2.0 && share > 0.6 * used / 2.0);
        assert!((get(o, "channels_used") - used).abs() < 0.01 * used, "{} channels", get(o, "channels_used"));
    }
    for (metric, tolerance) in [("c2m_gbs", 0.15), ("rpq_occ", 0.2), ("predicted_c2m_gbs", 1e-9)] {
        let (one, both) = (get(&one, metric), get(&both, metric));
        assert!((both / one - 2.0).abs() < 2.0 * tolerance, "{metric}: {both} at both nodes, {one} at one");
    }
}
