"""Explanations of real counters: hand-made recordings with round numbers, and every mistake a file can hold."""

import json
import re

import pytest

from hostnet import HostnetError, explain
from hostnet.drops import Loss, causes, losses
from hostnet.explain import counters
from hostnet.explain.events import BY_NAME, EVENTS
from hostnet.explain.explanation import Domain, Explanation

LINES = 1e9 / 64  # lines per second in a GB/s
DCLK, CHA, IRP, CORE = 1.4665e9, 2.4e9, 0.5e9, 3.3e9


def quadrant3(**changes: float) -> dict[str, float]:
    """Events per second of a host in the red regime: full LFBs of 5 cores, 92 IIO credits held for 640 ns."""
    rates = {
        "lfb_occupancy": 60 * CORE,
        "l1_miss": 16 * LINES,  # 60 lines at 16 GB/s: 240 ns
        "rpq_occupancy": 2 * 14 * DCLK,
        "rpq_ge42": 0.0,
        "wpq_ge34": 2 * 0.75 * DCLK,
        "wmm_to_rmm": 0.4 * LINES,
        "cas_read": 16 * LINES,
        "cas_write": 24 * LINES,
        "act_read": 4 * LINES,
        "act_bypass": 0.8 * LINES,
        "act_write": 2.4 * LINES,
        "pre_conflict": 6 * LINES,
        "drd_occupancy": 45 * CHA,
        "drd_inserts": 16 * LINES,  # 180 ns
        "wbmtoi_occupancy": 60 * CHA,
        "wbmtoi_inserts": 15.2 * LINES,
        "iowr_occupancy": 60 * CHA,
        "iowr_inserts": 9.2 * LINES,
        "itom_occupancy": 0.0,
        "itom_inserts": 0.0,
        "rdcur_occupancy": 0.0,
        "rdcur_inserts": 0.0,
        "irp_occupancy": 92 * IRP,
        "irp_inserts": 9.2 * LINES,  # 92 lines at 9.2 GB/s: 640 ns
    }
    return {**rates, **changes}


def perf(rates: dict[str, float], seconds: float = 10.0, separator: str = ",") -> str:
    rows = ["# started on Sat Nov 21 12:00:00 2026", ""]
    rows.append(
        separator.join([f"{seconds * 1e9:.0f}", "ns", "duration_time", f"{seconds * 1e9:.0f}", "100.00", "", ""])
    )
    rows += [
        separator.join([f"{r * seconds:.0f}", "", name, f"{seconds * 1e9:.0f}", "25.00", "", ""])
        for name, r in rates.items()
    ]
    return "\n".join(rows) + "\n"


def pcm(rates: dict[str, float], units: int = 6, seconds: int = 3) -> str:
    return "".join(
        f"2026-11-21,12:00:0{s}.000,{name},1000,2100000000,{','.join([f'{r / units:.3f}'] * units)}\n"
        for s in range(seconds)
        for name, r in rates.items()
    )


@pytest.fixture
def recorded(tmp_path):
    def write(text: str, name: str = "counters.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def by_name(items, name):
    return next(i for i in items if getattr(i, "name", getattr(i, "traffic", None)) == name)


def test_every_term_of_the_read_formula(recorded):
    ex = explain.of_counters(recorded(perf(quadrant3())))
    e = by_name(ex.estimates, "c2m-readwrite")
    assert e.terms["constant"] == pytest.approx(71 + 10)
    assert e.terms["switching"] == pytest.approx(14 * (0.4 / 16) * 8.18)
    assert e.terms["write_hol"] == pytest.approx(14 * (24 / 16) * 2.73)
    assert e.terms["read_hol"] == pytest.approx(13 * 2.73)
    # 4.8 of 7.2 activations are reads', so two thirds of the precharges.
    assert e.terms["top_of_queue"] == pytest.approx((4.8 / 16) * 14.32 + (4 / 16) * 14.32)
    total = 81 + 2.863 + 57.33 + 35.49 + 7.876
    assert e.latency_ns == pytest.approx(total, abs=0.01)
    assert e.estimate_gbs == pytest.approx(60 * 64 / total, rel=1e-4)
    assert e.error_pct == pytest.approx(100 * (60 * 64 / total / 16 - 1), abs=0.05)


def test_every_term_of_the_write_formula(recorded):
    ex = explain.of_counters(recorded(perf(quadrant3())))
    e = by_name(ex.estimates, "p2m-write")
    waiting = 120 / 2  # per channel, as the authors' code has it
    assert e.terms["constant"] == 317
    assert e.terms["switching"] == pytest.approx(0.75 * waiting * (0.4 / 24) * 8.18)
    assert e.terms["read_hol"] == pytest.approx(0.75 * waiting * (16 / 24) * 2.73)
    assert e.terms["write_hol"] == pytest.approx(0.75 * waiting * 2.73)
    assert e.terms["top_of_queue"] == pytest.approx(0.75 * ((2.4 / 24) * 14.32 + (2 / 24) * 14.32))
    assert e.measured_ns == pytest.approx(640)


def test_admission_at_the_cha_is_lfb_latency_less_cha_latency(recorded):
    ex = explain.of_counters(recorded(perf(quadrant3())))
    plain, full = (by_name(ex.estimates, n) for n in ("c2m-readwrite", "c2m-readwrite + CHA admission"))
    assert full.terms["cha_admission"] == pytest.approx(240 - 180)
    assert full.latency_ns == pytest.approx(plain.latency_ns + 60)
    # Devices: 640 ns in the IIO, 60 lines at 9.2 GB/s in the CHA, 205 ns on the way.
    assert ex.facts["admission_p2m_ns"] == pytest.approx(640 - 60 * 64 / 9.2 - 205)


def test_domains_follow_littles_law(recorded):
    ex = explain.of_counters(recorded(perf(quadrant3())), ("cores=5",))
    lfb, iio = by_name(ex.domains, "line fill buffers"), by_name(ex.domains, "IIO write buffer")
    assert (lfb.credits, lfb.held, lfb.little_ns, lfb.rate_gbs) == pytest.approx((60, 60, 240, 16))
    assert (iio.credits, iio.held, iio.little_ns, iio.bound_gbs) == pytest.approx((92, 92, 640, 9.2))
    assert lfb.exhausted and iio.exhausted


@pytest.mark.parametrize(
    "changes, seconds, says",
    [
        (
            ("cores=2",),
            None,
            ["60 of 24 credits of the line fill buffers", "check --platform, cores, core_ghz and the time recorded"],
        ),
        (("channels=1",), None, ["% of the memory channels' rate", "check --platform, channels, t_trans_ns and"]),
        ((), 1.0, ["920 of 92 credits of the IIO write buffer", "check --platform, irp_ghz, cha_ghz and"]),
        (("cores=5",), None, []),
    ],
)
def test_more_in_use_than_the_machine_has_is_a_note(recorded, changes, seconds, says):
    """60 line fill buffers are those of 5 cores; 40 GB/s are more than one channel of DDR4-2933 carries, 23.5."""
    text = perf(quadrant3()).replace("duration_time", "other") if seconds else perf(quadrant3())
    notes = " ".join(explain.of_counters(recorded(text), changes, seconds=seconds).notes)
    assert all(part in notes for part in says) and ("more than the machine has" in notes) == bool(says)


def test_constants_of_ddr_are_not_those_of_other_memory(recorded):
    """The channels of a stack of HBM2E carry 8 x 51.2 GB/s, so that 250 GB/s fit."""
    rates = quadrant3(cas_read=150 * LINES, cas_write=100 * LINES)
    ex = explain.of_counters(recorded(perf(rates)), platform="xeonmax")
    assert "mem_utilisation" not in ex.facts and "memory channels' rate" not in " ".join(ex.notes)
    assert "dclk_ghz" in " ".join(ex.missing)


def test_missing_events_are_named_as_the_recorded_processor_has_them(recorded):
    """Linux, pmu-events/arch/x86/amdzen4: Zen counts no line of the IIO. intel/perfmon, ICX: an Ice Lake counts those."""
    zen = {"ls_alloc_mab_count": 60 * CORE, "ls_any_fills_from_sys.all": 16 * LINES}
    said = " ".join(explain.of_counters(recorded(perf(zen)), platform="turin").missing)
    assert (
        "the event `irp_occupancy` (IIO write buffer entries, summed over cycles) is missing, which the recorded"
        in said
    )
    assert "uncore_" not in said
    ice = {f"unc_cha_tor_{what}.{kind}": CHA for what in ("occupancy", "inserts") for kind in ("ia_drd", "io_itom")}
    ice |= {"l1d_pend_miss.pending": 60 * CORE, "mem_load_retired.l1_miss": 16 * LINES}
    said = " ".join(explain.of_counters(recorded(perf(ice), "b.csv"), platform="icelake").missing)
    assert "is missing; record it as `unc_m_rpq_occupancy_pch0` and `unc_m_rpq_occupancy_pch1`" in said
    assert "is missing; record it as `unc_i_transactions.wr_pref`" in said
    assert (
        "wmm_to_rmm` (changes from write to read mode) is missing, which the recorded processor does not count" in said
    )
    own = " ".join(explain.of_counters(recorded(perf({"lfb_occupancy": CORE, "l1_miss": LINES}), "c.csv")).missing)
    assert "record it as `uncore_irp/event=0xf,umask=0x4,name=irp_occupancy/`" in own


def test_bandwidths_alone_are_told_with_their_share_of_the_channels(recorded):
    """40 GB/s of the 46.9 that two channels of DDR4-2933 carry are 85 %."""
    ex = explain.of_counters(recorded(perf({"cas_read": 16 * LINES, "cas_write": 24 * LINES})))
    assert ex.regime == "not judged"
    assert "Memory reads 16.0 GB/s and writes 24.0 GB/s, 85 % of what its channels carry." in ex.paragraph()
    only = explain.of_counters(recorded(perf({"cas_read": 16 * LINES}), "b.csv"), platform="xeonmax")
    assert "Memory reads 16.0 GB/s." in only.paragraph()


def test_exhausted_device_credits_are_the_red_regime(recorded):
    ex = explain.of_counters(recorded(perf(quadrant3())))
    assert ex.regime == "red"
    text = ex.paragraph()
    assert text.startswith("Red regime") and "write head-of-line blocking adds 57 ns" in text
    assert "the write queues are full 75 % of the time" in text


def test_spare_device_credits_and_slow_cores_are_the_blue_regime(recorded):
    # Section 5.1: 14 GB/s need 69 credits at 315 ns; cores read at 117 ns instead of 71.
    rates = quadrant3(
        irp_occupancy=68.9 * IRP,
        irp_inserts=14 * LINES,
        iowr_inserts=14 * LINES,
        wpq_ge34=0.0,
        wbmtoi_inserts=0.0,
        wbmtoi_occupancy=0.0,
        lfb_occupancy=36 * CORE,
        l1_miss=36 * LINES * 64 / 117,
    )
    ex = explain.of_counters(recorded(perf(rates)))
    assert ex.regime == "blue"
    assert by_name(ex.domains, "IIO write buffer").little_ns == pytest.approx(315, abs=0.1)
    assert "mask 34 % more latency" in ex.paragraph()
    assert [e.traffic for e in ex.estimates] == ["c2m-read", "c2m-read + CHA admission", "p2m-write"]


def test_unhurried_cores_beside_a_device_are_calm(recorded):
    rates = quadrant3(
        irp_occupancy=66 * IRP,
        irp_inserts=14 * LINES,
        lfb_occupancy=10 * CORE,
        l1_miss=10 * LINES * 64 / 72,
        wbmtoi_inserts=0.0,
    )
    assert explain.of_counters(recorded(perf(rates))).regime == "calm"


def test_cores_without_devices_have_no_regime(recorded):
    ex = explain.of_counters(recorded(perf(quadrant3(irp_occupancy=0.0, irp_inserts=0.0))))
    assert ex.regime == "cores alone" and len(ex.domains) == 1


def test_another_machine_is_described_by_set(recorded):
    file = recorded(perf(quadrant3()))
    ex = explain.of_counters(file, ("channels=4", "iio_write_credits=200"))
    assert by_name(ex.estimates, "c2m-readwrite").terms["read_hol"] == pytest.approx(6 * 2.73)
    assert ex.regime == "blue"


def test_perf_and_pcm_recordings_say_the_same(recorded):
    a = counters.read(recorded(perf(quadrant3()), "a.csv")).rates
    b = counters.read(recorded(pcm(quadrant3()), "b.csv")).rates
    assert a.keys() == b.keys() == quadrant3().keys()
    for name in a:
        assert a[name] == pytest.approx(b[name], rel=1e-6), name


def test_separators_intervals_sockets_and_official_names_are_read(recorded):
    rates = {"cas_read": 1e9, "cas_write": 2e9}
    assert counters.read(recorded(perf(rates, separator=";"))).rates == pytest.approx(rates)
    # -I 1000 --per-socket: seconds, socket, units, count, unit, event; no duration_time.
    rows = [
        f"{t}.0001,S{s},1,{r / 2:.0f},,{e},1000000000,100.00,,"
        for t in (1, 2)
        for s in (0, 1)
        for e, r in (("UNC_M_CAS_COUNT.RD", 1e9), ("unc_m_cas_count.wr", 2e9))
    ]
    assert counters.read(recorded("\n".join(rows))).rates == pytest.approx(rates, rel=1e-3)


def test_a_recording_without_duration_takes_it_from_seconds(recorded):
    text = "\n".join(line for line in perf({"cas_read": 5.0}).splitlines() if "duration_time" not in line)
    assert counters.read(recorded(text), seconds=10.0).rates == {"cas_read": 5.0}
    with pytest.raises(HostnetError, match="how long it was recorded; add the event duration_time or give --seconds"):
        counters.read(recorded(text))


def without(*names: str) -> dict[str, float]:
    return {n: r for n, r in quadrant3().items() if n not in names}


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "is empty"),
        ("# started on Sat Nov 21\n", "holds none of the events"),
        ("1000,,cycles,1,100,,\n", "holds none of the events"),
        ("1000,,rpq_ocupancy,1,100,,\n", 'did you mean "rpq_occupancy"'),
        (perf({"wpq_ge34": 7.0}).replace("70,,", "<not counted>,,"), "line 4: `wpq_ge34` was not counted"),
        (perf(quadrant3()) + "nan,,cas_read,0,100.00,,\n", "line 28: `cas_read` has 'nan' where a count is expected"),
        (perf(quadrant3()) + "many,,cas_read,0,100.00,,\n", "line 28: `cas_read` has 'many' where a count is expected"),
        (perf({"wmm_to_rmm": 5.0}), "nothing can be judged from `wmm_to_rmm` alone"),
        (perf({"cas_read": 5.0}) + "7,GHz,cas_write,1,100.00,,\n", "line 5: `cas_write` has the unit 'GHz'"),
        (perf({"cas_read": 5.0}) + "1,2,3,MiB,cas_write,1,100.00,,\n", "line 5: `1,2,3,MiB,cas_write` has more fields"),
        ('{"event" : "cas_read"', "line 1: is not JSON as `perf stat -j` writes it"),
        ("2026-11-21,12:00:00.000,cas_read,1000,2100000000\n", "line 1: `cas_read` has no counts"),
        ("2026-11-21,12:00:00.000,cas_read,0,2100000000,1\n", "recorded for 0 milliseconds"),
        ("# machine: channels=2 core_ghz=3,3\n", "line 1: core_ghz = '3,3' of the machine is not a positive number"),
        ("# machine: core_ghz=0\n", "line 1: core_ghz = '0' of the machine is not a positive number below 1000000"),
    ],
)
def test_a_bad_recording_is_one_sentence(recorded, text, says):
    file = recorded(text)
    with pytest.raises(HostnetError) as raised:
        explain.of_counters(file)
    assert says in str(raised.value) and str(raised.value).startswith(str(file)) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "change, says",
    [
        ("chanels=2", 'did you mean "channels"'),
        ("channels", "expected KEY=VALUE"),
        ("channels=0", "not a positive number"),
        ("channels=two", "'two' is not a positive number"),
    ],
)
def test_a_bad_machine_is_one_sentence(recorded, change, says):
    with pytest.raises(HostnetError, match=re.escape(says)):
        explain.of_counters(recorded(perf(quadrant3())), (change,))


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda t: "\n".join(line for line in t.splitlines() if ",cas_write," not in line), "name=cas_write/"),
        (lambda t: t + "<not supported>,,cas_write,0,100.00,,\n", "line 28: `cas_write` was not supported"),
        (lambda t: re.sub(r"\d+,,cas_write", "<not counted>,,cas_write", t), "record fewer events at once, or longer"),
    ],
)
def test_the_formula_is_left_out_where_an_event_of_its_is_missing(recorded, change, says):
    ex = explain.of_counters(recorded(change(perf(quadrant3()))), ("cores=5",))
    assert ex.estimates == [] and "mem_write_gbs" not in ex.facts and ex.facts["mem_read_gbs"] == pytest.approx(16)
    assert any(m.startswith("the formula of reads") and says in m for m in ex.missing), ex.missing
    assert ex.regime == "red" and [d.name for d in ex.domains] == ["line fill buffers", "IIO write buffer"]


def test_parts_that_were_not_recorded_are_named_and_the_rest_is_explained(recorded):
    ex = explain.of_counters(recorded(perf(without("irp_occupancy", "irp_inserts", "drd_occupancy"))))
    assert [e.traffic for e in ex.estimates] == ["c2m-readwrite"]
    assert any("irp_occupancy" in m for m in ex.missing) and any("drd_occupancy" in m for m in ex.missing)


# Event, umask and second filter register as the specification lists them.
ENCODINGS = {
    "drd_occupancy": ("0x36", "0x21", 0x40433),
    "wbmtoi_occupancy": ("0x36", "0x31", 0x48833),
    "iowr_inserts": ("0x35", "0x34", 0x43033),
    "itom_occupancy": ("0x36", "0x34", 0x49033),
    "rdcur_inserts": ("0x35", "0x24", 0x43C33),
}


@pytest.mark.parametrize("name, encoding", ENCODINGS.items())
def test_opcode_filters_are_the_specifications(name, encoding):
    event, umask, opcode = encoding
    e = BY_NAME[name]
    assert e.perf == f"uncore_cha/event={event},umask={umask},config1={opcode << 32:#x},name={name}/"
    assert e.pcm.endswith(f"config2={opcode:#x},name={name}")


def test_thresholds_stand_in_bits_24_and_up():
    assert BY_NAME["wpq_ge34"].pcm == "imc/config=0x22400081,name=wpq_ge34"
    assert BY_NAME["lfb_occupancy"].pcm == "core/config=0x430148,name=lfb_occupancy"


def test_templates_record_every_event_and_are_valid_shell(cli):
    import subprocess

    for tool in ("perf", "pcm"):
        script = cli("explain", "--template", tool, check=0).stdout
        assert all(f"name={e.name}" in script for e in EVENTS)
        assert subprocess.run(["sh", "-n"], input=script, text=True).returncode == 0


def test_the_command_prints_tables_a_paragraph_and_a_picture(cli, recorded, tmp_path):
    file = recorded(perf(quadrant3()))
    out = cli("explain", "--counters", file, "--set", "cores=5", "--out", tmp_path / "ex", check=0).stdout
    assert "IIO write buffer" in out and "binds, exhausted" in out and "regime: red" in out
    assert {p.name for p in (tmp_path / "ex").iterdir()} == {
        "explain.png",
        "explain.svg",
        "explain.json",
        "hostnet.json",
    }
    data = json.loads(cli("explain", "--counters", file, "--set", "cores=5", "--json", check=0).stdout)
    assert data["regime"] == "red" and data["bottleneck"] == {"c2m": "line fill buffers", "p2m": "IIO write buffer"}


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--counters", "nowhere.csv"],
        ["--counters", "x.csv", "--template", "perf"],
        ["--template", "vtune"],
        ["nowhere"],
        ["--counters", "x.csv", "--set", "a=1"],
    ],
)
def test_a_mistake_ends_with_exit_code_2_and_one_sentence(cli, args):
    done = cli("explain", *args)
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr


def facts(domains, **more):
    """An explanation of hand-made domains: (name, traffic, credits, held, GB/s, unloaded ns)."""
    made = [
        Domain(name, traffic, credits, held, rate, unloaded_ns=unloaded)
        for name, traffic, credits, held, rate, unloaded in domains
    ]
    return Explanation("by hand", made, [], **{"facts": {}, **more})


# 1 line at 1 GB/s is held for 64 ns.
QUIET = [("line fill buffers", "c2m", 20, 2, 2.0, 64.0), ("IIO write buffer", "p2m", 20, 4, 8.0, 32.0)]


def test_a_calm_host_names_the_domain_that_waits_most():
    text = facts([QUIET[0], ("IIO write buffer", "p2m", 20, 8, 8.0, 16.0)]).paragraph()
    assert (
        "IIO write buffer waits most: 64.0 ns, 4.0 times the unloaded 16.0 ns" in text and "Neither cores" not in text
    )


@pytest.mark.parametrize(
    "unloaded, says", [(32.0, "Neither cores nor devices wait"), (None, "Not every unloaded latency is known")]
)
def test_nobody_is_said_not_to_wait_unless_the_unloaded_latencies_are_known(unloaded, says):
    text = facts([QUIET[0], (*QUIET[1][:5], unloaded)]).paragraph()
    assert says in text and ("Neither cores" in text) is (unloaded is not None)


def test_lost_packets_are_told_with_their_share_and_causes():
    one = facts(QUIET, facts={"lost_share": 0.25}, causes={"The core is slow (CoreDrop).": 1.0}).paragraph()
    assert "25 % of the offered packets are lost. The core is slow (CoreDrop)." in one and "of them" not in one
    two = facts(QUIET, facts={"lost_share": 0.25}, causes={"The core is slow.": 0.75, "DMA is slow.": 0.25}).paragraph()
    assert "The core is slow: 75 % of them. DMA is slow: 25 % of them." in two
    assert "lost" not in facts(QUIET, facts={"lost_share": 0.0}).paragraph()


@pytest.mark.parametrize(
    "why, busy, link",
    [
        ("The NIC's receive DMA is slower than the wire; the receive ring had room (DmaDrop).", "pcie_up_util", "to"),
        ("The host takes packets more slowly than the wire brings them.", "pcie_up_util", "to"),
        ("Transmission is slower than the wire; its ring was full (TxDrop).", "pcie_down_util", "from"),
        ("The core is slower than the wire; the receive ring was full (CoreDrop).", "pcie_up_util", None),
    ],
)
def test_a_loss_names_the_link_that_is_full(why, busy, link):
    names = ("where", "why", "count", "first_us", "last_us")
    table = {"columns": [{"name": n} for n in names], "rows": [["receive buffer", why, 3, 0.0, 1.0]]}
    for share in (0.5, 0.99):
        (loss,) = losses({"tables": {"drops": table}, "metrics": {busy: share}})
        said = f" The PCIe link {link} the host is the limit, busy 99 % of the time."
        assert loss.why == why + (said if link and share > 0.9 else "")


def test_shares_of_causes_add_the_places_where_packets_were_lost():
    found = [Loss("NIC", "a", 1, 0.0, 1.0), Loss("socket", "b", 5, 0.0, 1.0), Loss("socket", "a", 2, 0.0, 1.0)]
    assert causes(found) == {"b": 0.625, "a": 0.375} and causes([]) == {}


@pytest.mark.parametrize("share, told", [(0.99, True), (0.9, False)])
def test_cores_that_are_always_busy_are_named_as_the_limit(share, told):
    assert (
        "The cores are busy 99 % of the time, so they are the limit."
        in facts(QUIET, facts={"cores_busy": share}).paragraph()
    ) is told


def test_an_idle_domain_binds_nobody():
    # The idle one's bound, 20 x 64 / 640 ns, is below the other's.
    ex = facts(
        [QUIET[0], ("IIO write buffer", "p2m", 20, 0.5, 0.05, 640.0), ("IIO read buffer", "p2m", 20, 4, 8.0, 32.0)]
    )
    assert ex.of("p2m")[0].bound_gbs < ex.of("p2m")[1].bound_gbs
    assert ex.binding("p2m").name == "IIO read buffer"
    assert facts([("line fill buffers", "c2m", 20, 0.2, 1.0, 64.0)]).binding("c2m") is None


def test_a_core_that_waits_for_each_line_is_not_busy_with_instructions():
    """One load after the other, 150 ns each, moves 64 B / 150 ns = 0.43 GB/s and holds a line fill buffer all the time."""
    chase = [("line fill buffers", "c2m", 24, 1.0, 64 / 150, 140.0)]
    text = facts(chase, facts={"cores_busy": 1.0}).paragraph()
    assert facts(chase).regime == "cores alone" and "execute instructions" not in text
    # A core with a miss now and then does something else.
    seldom = [("line fill buffers", "c2m", 24, 0.1, 0.043, 140.0)]
    assert facts(seldom, facts={"cores_busy": 1.0}).regime == "cores busy"


def test_dram_is_no_reason_where_it_moves_none_of_the_lines():
    """A device reads and writes 31 GB/s in the LLC; DRAM moves 0.65 GB/s of something else."""
    known = {"dram_read_ns": 137.0, "unloaded_read_ns": 125.0, "row_miss_ratio": 1.0, "bank_dev_15_frac": 0.5}
    device = [("IIO write buffer", "p2m", 92, 90, 31.0, 100.0)]
    few = facts(device, facts={**known, "mem_read_gbs": 0.5, "mem_write_gbs": 0.15})
    many = facts(device, facts={**known, "mem_read_gbs": 0.5, "mem_write_gbs": 15.0})
    assert few.slowed and few.reasons() == [] and len(many.reasons()) == 3


def test_estimates_that_know_no_link_to_memory_say_so_where_it_is_full():
    known = {"predicted_c2m_gbs": 70.0, "c2m_gbs": 50.0}
    said = "Neither the closed form nor the formula knows the link to memory"
    assert said in facts(QUIET, facts={**known, "memory_link_read_util": 0.999}).paragraph()
    assert said not in facts(QUIET, facts={**known, "memory_link_read_util": 0.3}).paragraph()


def test_buffers_that_are_all_in_use_at_times_mask_no_latency():
    """Ten of twelve in the mean are spare only while a miss waits to take one that has become free."""
    loads = [("line fill buffers", "c2m", 12, 10, 7.4, 80.0)]
    assert (
        "2 credits are spare, which mask 20 % more latency"
        in facts(loads, facts={"lfb_peak_share": 11 / 12}).paragraph()
    )
    text = facts(loads, facts={"lfb_peak_share": 1.0}).paragraph()
    assert "at times all are in use, so added latency costs throughput" in text and "spare" not in text
