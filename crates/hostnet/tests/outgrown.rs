//! A NIC with faster links than those to which its `receive_packets` was fitted is warned of.

use crate::common::{refused, scenario, simulate};

/// A NIC that was measured with 200 Gb/s and 16 lanes of the fourth generation.
const MEASURED: &str = r#"
name = "outgrown"
placement = { policy = "ddio", ways = 2 }
[platform]
name = "icx"
[platform.nodes]
count = 1
[platform.pcie]
generation = "gen4"
[[tenant]]
name = "t"
cores = 1
stack = "poll_mode"
app = { kind = "loopback", bytes = "64 B" }
[[peripheral]]
kind = "ethernet"
loopback = true
link = "200 Gbps"
lanes = 16
[peripheral.rings]
receive_packets = 20
[peripheral.rings.quirks.fitted]
receive_packets = 20
to = "76 million packets of 64 B a second"
link = "200 Gbps"
generation = "gen4"
lanes = 16
[traffic]
arrivals = "closed"
outstanding = 1
[run]
load = "fixed"
requests = 100
warmup_requests = 100
"#;

/// Sentences about the NIC after `changes`.
fn said(changes: &[(&str, &str)]) -> Vec<String> {
    let changed = |t: String, (old, new): &(&str, &str)| {
        assert!(t.contains(old), "{old}");
        t.replacen(old, new, 1)
    };
    scenario(&changes.iter().fold(MEASURED.to_owned(), changed)).outgrown()
}

/// PCIe gen 5 has twice the rate of gen 4 and gen 6 four times its raw rate, of which flits leave 236 of 256 bytes where 128 of
/// 130 bits are left before: 3.746. The proposed value grows with the faster of the two links, in whole packets.
#[test]
fn a_faster_link_beside_a_fitted_number_of_packets_is_named() {
    let gen = |g| ("generation = \"gen4\"", g);
    let link = |l| ("link = \"200 Gbps\"", l);
    let (gen5, gen6) = ("generation = \"gen5\"", "generation = \"gen6\"\ndllp_share = 0.0");
    for (changes, proposed) in [
        (vec![gen(gen5)], 40),
        (vec![gen(gen6)], 75),
        (vec![link("link = \"400 Gbps\"")], 40),
        (vec![gen(gen5), link("link = \"800 Gbps\"")], 80),
        (vec![("generation = \"gen4\"\nlanes = 16", "generation = \"gen4\"\nlanes = 8")], 40),
    ] {
        let said = said(&changes);
        assert_eq!(said.len(), 1, "{changes:?}: {said:?}");
        let names = [
            "peripheral[0].rings.receive_packets = 20 was fitted to 76 million packets of 64 B a second",
            "with link = \"200 Gbps\" and ",
            &format!("or {proposed}, which"),
        ];
        assert!(names.iter().all(|n| said[0].contains(n)), "{changes:?}: {}", said[0]);
    }
}

#[test]
fn the_measured_nic_a_slower_one_and_a_value_of_ones_own_are_not_judged() {
    assert_eq!(said(&[]), Vec::<String>::new());
    assert_eq!(said(&[("link = \"200 Gbps\"", "link = \"100 Gbps\"")]), Vec::<String>::new());
    let own = ("receive_packets = 20", "receive_packets = 40");
    assert_eq!(said(&[own, ("link = \"200 Gbps\"", "link = \"400 Gbps\"")]), Vec::<String>::new());
}

/// The client's NIC has the wire of the host's and the port of the client's platform.
#[test]
fn the_nic_of_a_client_is_judged_like_that_of_the_host() {
    let (nic, rest) = MEASURED.split_once("[[peripheral]]").expect("a NIC");
    let (nic_table, _) = rest.split_once("[traffic]").expect("traffic");
    let fitted = nic_table
        .replace("peripheral.rings", "client.ethernet.rings")
        .replace("kind = \"ethernet\"\nloopback = true\n", "");
    let with = |link: &str| {
        let fitted = fitted.replacen("link = \"200 Gbps\"", &format!("link = \"{link}\""), 1);
        let host = nic.replace("{ kind = \"loopback\", bytes = \"64 B\" }", "{ kind = \"testpmd\" }");
        scenario(&format!(
            "{host}[[peripheral]]\nkind = \"ethernet\"\nlink = \"{link}\"\nlanes = 16\nrings = {{ receive_packets = 64 }}\n\
             [client]\ncores = 1\napp = {{ kind = \"load_generator\" }}\n[client.ethernet]{fitted}\
             [traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\npacket = \"64 B\"\n[run]\nload = \"fixed\"\n"
        ))
        .outgrown()
    };
    assert_eq!(with("200 Gbps"), Vec::<String>::new());
    let said = with("400 Gbps");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("client.ethernet.rings.receive_packets = 20 was fitted to"), "{}", said[0]);
    assert!(said[0].contains("and this NIC has \"400 Gbps\""), "{}", said[0]);
}

#[test]
fn the_sentence_is_a_warning_of_the_result() {
    let faster = MEASURED.replacen("link = \"200 Gbps\"", "link = \"400 Gbps\"", 1);
    let fitted = |text: &str| simulate(text).warnings.iter().filter(|w| w.contains("was fitted to")).count();
    assert_eq!((fitted(MEASURED), fitted(&faster)), (0, 1));
}

#[test]
fn the_origin_of_a_value_is_whole() {
    refused(
        MEASURED,
        &[(
            "generation = \"gen4\"\nlanes = 16\n[traffic]",
            "generation = \"gen4\"\nlanes = 0\n[traffic]",
            "rings.quirks.fitted.lanes = 0",
        )],
    );
}
