"""Counter files as recorders really write them: the same host in every shape, or a sentence that says what is wrong."""

import json
import re

import pytest
from test_explain import CORE, LINES, perf, quadrant3

from hostnet import HostnetError, Scenario, api, explain
from hostnet.explain import counters, events, vendor
from hostnet.explain.machine import machine

SECONDS = 10.0
TEXT = perf(quadrant3(), SECONDS)
HEAD, ROWS = TEXT.splitlines()[2], TEXT.splitlines()[3:]


@pytest.fixture
def recorded(tmp_path):
    def write(text: str):
        path = tmp_path / "counters.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def lines(*rows):
    return "\n".join(rows) + "\n"


def changed(change):
    return [",".join(change(row.split(","))) for row in ROWS]


def in_mib(fields):
    names = {"cas_read": "unc_m_cas_count.rd", "cas_write": "unc_m_cas_count.wr"}
    if fields[2] not in names:
        return fields
    return [f"{float(fields[0]) * 64 / 2**20:.2f}", "MiB", names[fields[2]], *fields[3:]]


def as_json(row):
    count, unit, event, ran, share = row.split(",")[:5]
    told = {"counter-value": f"{float(count):.6f}", "unit": unit, "event": event, "event-runtime": int(ran)}
    return json.dumps(told | {"pcnt-running": float(share)})


def as_people(row, thousands=",", decimal="."):
    count, unit, event = row.split(",")[:3]
    share = f"25{decimal}00"
    return f"    {int(count):,}".replace(",", thousands) + f"      {unit} {event}      ({share}%)"


def halves(n=2):
    return [[str(int(float(f[0]) / n)), *f[1:]] for f in (row.split(",") for row in ROWS)]


# Every shape holds the counts of TEXT.
SHAPES = {
    "append: half of the events in each recording": lines(HEAD, *ROWS[:12], HEAD, *ROWS[12:]),
    "append: the duration comes last": lines(*ROWS[:12], HEAD, *ROWS[12:], HEAD),
    "append: each began with a comment": lines(
        "# started on Sat Nov 21 12:00:00 2026",
        *ROWS[:5],
        HEAD,
        *ROWS[5:12],
        "# started on Sat Nov 21 12:01:00 2026",
        *ROWS[12:],
        HEAD,
    ),
    "intervals with their summary": lines(
        *(f"{SECONDS:.9f},{row}" for row in ROWS), *(f"         summary,{row}" for row in ROWS)
    ),
    "intervals": lines(*(f"{t:.9f},{','.join(f)}" for t in (SECONDS / 2, SECONDS) for f in halves())),
    "reads and writes in MiB": lines(HEAD, *changed(in_mib)),
    "PMU and modifiers around names": lines(
        HEAD,
        *changed(
            lambda f: [*f[:2], {"lfb_occupancy": "cpu/lfb_occupancy/", "l1_miss": "l1_miss:uk"}.get(f[2], f[2]), *f[3:]]
        ),
    ),
    "encodings that hold the name": lines(
        HEAD,
        *(r.replace(",", ";").replace(";cas_read;", ";uncore_imc/event=0x4,umask=0x3,name=cas_read/;") for r in ROWS),
    ).replace(HEAD, HEAD.replace(",", ";")),
    "two sockets": lines(
        *(f"S{s},1,{HEAD}" for s in (0, 1)), *(f"S{s},6,{','.join(f)}" for s in (0, 1) for f in halves())
    ),
    "a row for each unit": lines(
        HEAD,
        *(",".join([*f[:2], f"{f[2]} [uncore_imc_{u}]", *f[3:]]) for u in (0, 1) for f in halves() if "cas" in f[2]),
        *(row for row in ROWS if "cas" not in row),
    ),
    "units beside their sum": lines(
        HEAD,
        *ROWS,
        *(",".join([*f[:2], f"uncore_imc_{u}/{f[2]}/", *f[3:]]) for u in (0, 1) for f in halves() if "cas" in f[2]),
    ),
    "JSON": lines(as_json(HEAD), *map(as_json, ROWS)),
    "JSON in another locale": lines(as_json(HEAD), *map(as_json, ROWS)).replace('.000000"', ',000000"'),
    "for people": lines(*map(as_people, ROWS), "", f"      {SECONDS:.9f} seconds time elapsed"),
    "for people in Germany": lines(
        *(as_people(row, ".", ",") for row in ROWS), "", f"      {SECONDS:.9f} seconds time elapsed".replace(".", ",")
    ),
    "for people in France": lines(
        *(as_people(row, "\u202f", ",") for row in ROWS),
        "",
        f"      {SECONDS:.9f} seconds time elapsed".replace(".", ","),
    ),
    "a byte order mark": "\ufeff" + TEXT,
    "decimal commas behind semicolons": re.sub(
        r"(?<=\d)\.(?=\d)", ",", lines(HEAD, *changed(in_mib)).replace(",", ";")
    ),
}


def separated(by):
    return TEXT.replace(",", by)


def repeated(name):
    """The rows, and those of one event again, as events are that several metrics need."""
    return lines(HEAD, *ROWS, *(r for r in ROWS if f",{name}," in r))


def people(*rows, noise="", pre="", end=f"\n      {SECONDS:.9f} seconds time elapsed"):
    said = [pre + as_people(row).replace("(25.00%)", f"{noise} (25.00%)") for row in rows]
    return lines("", " Performance counter stats for 'system wide':", "", *said, end)


def halved_json(**scope):
    return [json.dumps({**json.loads(as_json(",".join(f))), **scope}) for f in halves()]


SECOND = SECONDS / 10
TENTHS = [(f"{t * SECOND:.9f},", [",".join(f) for f in halves(10)]) for t in range(1, 11)]
INTERVALS = [stamp + row for stamp, rows in TENTHS for row in rows]

# Formats: tools/perf/util/stat-display.c of Linux 5.4 to 6.16, perf-stat's manual, and recordings in public repositories.
SHAPES |= {
    **{f"separator {by!r}": separated(by) for by in ("|", ":", " ", "@", "::", ", ", "~", "#", "\t")},
    "variance of -r": TEXT.replace(",10000000000,25.00", ",0.50%,10000000000,25.00"),
    "control groups": lines(
        HEAD, *(",".join([*f[:3], group, *f[3:]]) for group in ("a.slice", "b.slice") for f in halves())
    ),
    "threads": lines(
        *(f"{t},{HEAD}" for t in ("dpdk-l3fwd-71", "lcore-worker-1-72")),
        *(f"{t},{','.join(f)}" for t in ("dpdk-l3fwd-71", "lcore-worker-1-72") for f in halves()),
    ),
    "intervals with a summary that nothing marks": lines(*INTERVALS, *ROWS),
    "intervals of which the last is cut": lines(*INTERVALS, f"{11 * SECOND:.9f},{TENTHS[0][1][0]}"),
    "intervals without the first 40": lines(*(f"{40 + t:.9f},{r}" for t, (_, rows) in enumerate(TENTHS) for r in rows)),
    "an interval in which an event was not counted": lines(
        *(INTERVALS[:10] + [re.sub(r",\d+,", ",<not counted>,", INTERVALS[10], count=1)] + INTERVALS[11:])
    ),
    "a core's event listed twice": repeated("lfb_occupancy"),
    "a core's event with and without its user part": lines(
        HEAD, *ROWS, *(r.replace("l1_miss", "l1_miss:u") for r in ROWS if "l1_miss" in r)
    ),
    "JSON with decimal commas": re.sub(r'": (\d+)\.(\d+)', r'": \1,\2', lines(as_json(HEAD), *map(as_json, ROWS))),
    "JSON with nan": lines(as_json(HEAD), *(as_json(r)[:-1] + ', "metric-value" : nan}' for r in ROWS)),
    "JSON of threads": lines(
        *(json.dumps({**json.loads(as_json(HEAD)), "thread": f"dpdk-{t}"}) for t in (71, 72)),
        *(r for t in (71, 72) for r in halved_json(thread=f"dpdk-{t}")),
    ),
    "JSON intervals of which one ends after 1.001 s": lines(
        *(r for t in (1.001, 2 * 1.001) for r in halved_json(interval=t))
    )
    .replace('"interval": 1.001', '"interval": 5.000')
    .replace('"interval": 2.002', '"interval": 10.000'),
    "JSON intervals of which the last is cut": lines(
        *(r for t in (SECONDS / 2, SECONDS) for r in halved_json(interval=t)), halved_json(interval=15.0)[0][:-20]
    ),
    "JSON intervals with their summary": lines(
        *(r for t in (SECONDS / 2, SECONDS) for r in halved_json(interval=t)), *map(as_json, ROWS)
    ),
    "for people, deviations of -r": people(*ROWS, noise="( +-  0.42% )"),
    "for people, by node": people(*(f"{','.join(f)}" for f in halves(1)), pre="N0        48 "),
    "for people, a row for each CPU in France": lines(
        *(f"CPU{c}   " + as_people(",".join(f), " ", ",") for c in (0, 1) for f in halves()),
        f"      {SECONDS:.9f} seconds time elapsed".replace(".", ","),
    ),
    "for people, units in brackets": people(
        *(r for r in ROWS if ",cas_" not in r),
        *(",".join([*f[:2], f"{f[2]} [uncore_imc_{u}]"]) for u in (0, 1) for f in halves() if "cas" in f[2]),
    ),
    "for people, two recordings": people(*ROWS) + people(*ROWS),
    "for people, two recordings that began with a comment": "# started on A\n"
    + people(*ROWS)
    + "# started on B\n"
    + people(*ROWS),
    "for people, intervals with their summary": "\n".join(
        stamp.replace(",", " ") + as_people(row) for stamp, rows in TENTHS for row in rows
    )
    + people(*ROWS),
    # perf -r prints the time with two digits more than the deviation's first one: "%17.*f +- %.*f", which never groups.
    **{
        f"for people, a time with {len(sd) - 2} decimals{'' if mark == '.' else ' in Germany'}": people(
            *ROWS, end=f"\n {SECONDS:.{len(sd) - 2}f} +- {sd} seconds time elapsed  ( +-  2.34% )".replace(".", mark)
        )
        for sd in ("1.23", "0.234", "0.0234", "0.00234")
        for mark in ".,"
    },
    "for people in India": people(*ROWS).replace("12,000,000,000", "12,00,00,00,000"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_says_what_the_plain_file_says(recorded, shape):
    expected = counters.read(recorded(TEXT)).rates
    found = counters.read(recorded(SHAPES[shape])).rates
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name in expected:
        assert found[name] == pytest.approx(expected[name], rel=1e-6, abs=1), name


@pytest.mark.parametrize("separator, mark", [(",", "."), (";", ",")])
def test_a_mark_is_decimal_where_perf_does_not_group(recorded, separator, mark):
    rows = [HEAD.split(","), [f"61{mark}040", "MiB", "unc_m_cas_count.rd", "1", f"100{mark}00"]]
    text = lines(*map(separator.join, rows))
    assert counters.read(recorded(text)).rates == pytest.approx({"cas_read": 61.04 * 2**20 / 64 / SECONDS})


@pytest.mark.parametrize(
    "text, says",
    [
        (lines(*changed(in_mib)[:2], HEAD, *ROWS[2:5], HEAD, *ROWS[5:8]), "where one ends cannot be told"),
        (lines(HEAD, "12,34,MiB,unc_m_cas_count.rd,1,100.00,,"), "record with LC_ALL=C, or with -x ';'"),
        (lines(HEAD, "12.34,Joules,unc_m_cas_count.rd,1,100.00,,"), "has the unit 'Joules'"),
        (lines("1,minutes,duration_time,1,100.00,,", *ROWS), "has the unit 'minutes', which is no time"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(recorded, text, says):
    with pytest.raises(HostnetError) as raised:
        counters.read(recorded(text))
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_what_is_not_supported_is_left_out_and_named(recorded):
    text = re.sub(r"\d+,,irp_occupancy", "<not supported>,,irp_occupancy", TEXT)
    ex = explain.of_counters(recorded(text), ("cores=5",))
    assert [d.name for d in ex.domains] == ["line fill buffers"] and ex.estimates
    (said,) = (m for m in ex.missing if m.startswith("device writes"))
    assert "`irp_occupancy` was not supported; this processor, or its kernel, has no such event" in said
    # Devices may well use the memory: nothing says that they do not.
    assert ex.regime == "not judged"


def test_devices_are_not_alone_where_cores_were_not_recorded(recorded):
    text = lines(HEAD, *(r for r in ROWS if "lfb_occupancy" not in r))
    ex = explain.of_counters(recorded(text))
    assert ex.regime == "not judged" and "Only devices" not in ex.paragraph()
    assert any("core traffic" in m and "lfb_occupancy" in m for m in ex.missing)


def test_credits_are_those_of_the_cores_that_are_known(recorded):
    file = recorded(TEXT)  # 60 entries are held

    def lfb(*changes):
        return next(d for d in explain.of_counters(file, changes).domains if d.name == "line fill buffers")

    assert (lfb("cores=5").credits, lfb("cores=5").exhausted) == (60, True)
    assert (lfb("cores=20").credits, lfb("cores=20").exhausted) == (240, False)
    assert lfb().credits is None and not lfb().exhausted and "of 5 cores or more" in lfb().note
    assert any("--set cores=N" in m for m in explain.of_counters(file).missing)


@pytest.mark.parametrize(
    "modifiers, says",
    [
        (("u",), "in user mode alone (:u)"),  # perf adds it for users without privileges
        (("k",), "in the kernel alone (:k)"),
        (("G",), "in guests alone (:G)"),
        (("ppH",), "outside guests alone (:H)"),
        (("u", "k"), None),
        (("uG", "kG", "uH", "kH"), None),
        (("uk",), None),
        (("GH",), None),
        (("pp",), None),
    ],
)
def test_a_core_event_of_one_level_says_what_is_missing(recorded, modifiers, says):
    text = lines(
        HEAD,
        *(r for r in ROWS if ",lfb_" not in r),
        *(
            ",".join([str(int(int(f[0]) / len(modifiers))), f[1], f"{f[2]}:{m}", *f[3:]])
            for f in halves(1)
            if f[2].startswith("lfb_")
            for m in modifiers
        ),
    )
    r = counters.read(recorded(text))
    assert r.rates["lfb_occupancy"] == pytest.approx(60 * CORE)
    said = [n for n in r.notes if "alone" in n]
    assert len(said) == (says is not None) and all(f"`lfb_occupancy` was counted {says}" in n for n in said)


def test_cpus_that_are_told_apart_are_counted(recorded):
    cpus = [f"CPU{i},{6 * CORE * SECONDS if i < 10 else 0:.0f},,lfb_occupancy,1,100.00,," for i in range(16)]
    file = recorded(lines(HEAD, *cpus, *(r for r in ROWS if "lfb_occupancy" not in r)))
    lfb = next(d for d in explain.of_counters(file).domains if d.name == "line fill buffers")
    assert (lfb.credits, lfb.held, lfb.exhausted) == (120, pytest.approx(60), False)


def test_a_counter_that_hardly_ran_says_so(recorded):
    ex = explain.of_counters(recorded(TEXT.replace("cas_read,10000000000,25.00", "cas_read,10000000000,2.50")))
    assert ex.notes == ["`cas_read` was counted for 2.5 % of the time and scaled, so it is an estimate"]


def vendors(processor: str) -> dict[str, float]:
    """The counts of quadrant 3 under the names that a processor's list has; each part of a sum counts its share."""
    rates = quadrant3()
    rates |= {"itom_occupancy": rates["iowr_occupancy"], "itom_inserts": rates["iowr_inserts"]}
    known = events.PROCESSORS[processor][1]
    return {part: rates[event] / len(parts) for event, parts in known.items() for part in parts}


@pytest.mark.parametrize("processor", ["icelake", "sapphirerapids", "emeraldrapids", "graniterapids", "zen4", "zen5"])
def test_the_vendors_names_are_understood(recorded, processor):
    named = vendors(processor)
    r = counters.read(recorded(perf(named)))
    assert r.rates.keys() == events.PROCESSORS[processor][1].keys()
    assert r.rates["cas_read"] == pytest.approx(16 * LINES) and r.rates["lfb_occupancy"] == pytest.approx(60 * CORE)
    ex = explain.of_counters(recorded(perf(named)), ("cores=5",))
    lfb = next(d for d in ex.domains if d.name == "line fill buffers")
    assert (lfb.held, lfb.little_ns) == pytest.approx((60, 240)) and ex.facts["mem_write_gbs"] == pytest.approx(24)
    # None of them counts changes from writes to reads, so there is no formula, and AMD's count nothing of the IIO.
    assert ex.estimates == [] and any(m.startswith("the formula of reads") for m in ex.missing)
    assert ex.regime == ("not judged" if processor.startswith("zen") else "red")


NEAREST = {"zen4": "genoa", "zen5": "turin", "icelake": "icelake"}


@pytest.mark.parametrize("processor", [key for key in events.PROCESSORS if key != "skylake"])
def test_events_of_another_processor_are_not_judged_as_the_papers(recorded, processor, cli):
    file = recorded(perf(vendors(processor)))
    ex = explain.of_counters(file)
    (said,) = (n for n in ex.notes if "of the paper's Cascade Lake" in n)
    assert events.PROCESSORS[processor][0].removesuffix(" servers") in said
    platform = NEAREST.get(processor, "spr")
    assert f"--platform {platform}" in said and api.platform(platform)
    assert all(d.unloaded_ns is None for d in ex.domains) and "unloaded" not in ex.paragraph()
    # What a user says of the machine holds.
    told = explain.of_counters(file, ("c2m_read_ns=80", "c2m_write_ns=20"))
    lfb = next(d for d in told.domains if d.name == "line fill buffers")
    assert lfb.unloaded_ns == (80 if processor.startswith("zen") else 100)
    assert not any("Cascade Lake" in n for n in explain.of_counters(file, (), None, platform).notes)


@pytest.mark.parametrize(
    "names, later",
    [
        (
            ["unc_i_transactions.wr_pref", "unc_m_cas_count.rd", "l1d_pend_miss.pending"],
            (),
        ),  # Cascade Lake has them, too
        (["unc_cha_tor_occupancy.ia_miss_drd", "unc_cha_tor_inserts.io_miss_rdcur"], ()),
        (["unc_cha_tor_occupancy.io_itom"], ("icelake", "sapphirerapids", "emeraldrapids", "graniterapids")),
        (["unc_cha_tor_occupancy.io_itom", "unc_m_cas_count_sch0.rd"], ("graniterapids",)),
        (["umc_cas_cmd.rd"], ("zen4", "zen5")),
        ([], ()),
    ],
)
def test_names_tell_the_processors_that_have_them(names, later):
    # Lists of github.com/intel/perfmon (SKX, CLX, ICX, SPR, EMR, GNR) and of Linux (amdzen4, amdzen5).
    assert events.later_processors(names) == later


def test_pcm_s_names_tell_another_processor_as_well(recorded):
    rows = [PCM_ROW.format(s=s, name="UNC_CHA_TOR_INSERTS.IO_ITOM", counts="1000,1000") for s in range(2)]
    rows += [PCM_ROW.format(s=s, name="cas_read", counts="9000000,9000000") for s in range(2)]
    assert any("Ice Lake" in n for n in explain.of_counters(recorded(lines(*rows))).notes)


@pytest.mark.parametrize("event, part", [("cas_read", "the formula of reads"), ("drd_inserts", "admission at the CHA")])
def test_what_a_count_of_0_leaves_out_has_a_reason(recorded, event, part):
    ex = explain.of_counters(recorded(perf(quadrant3(**{event: 0.0}))))
    assert f"{part} (`{event}` was recorded as 0)" in ex.missing
    assert not any("()" in m for m in ex.missing)


def test_a_sum_lacks_what_a_part_lacks(recorded):
    named = vendors("graniterapids")
    del named["unc_m_cas_count_sch1.rd"]
    r = counters.read(recorded(perf(named)))
    assert "cas_read" not in r and "`unc_m_cas_count_sch1.rd` is missing" in r.why("cas_read")


@pytest.mark.parametrize("processor", list(events.PROCESSORS))
def test_a_template_records_the_events_of_its_processor(processor):
    script = events.template("perf", processor=processor)
    named = [p for parts in events.PROCESSORS[processor][1].values() for p in parts] or [e.name for e in events.EVENTS]
    assert all(name in script for name in named) and "duration_time" in script
    if events.PROCESSORS[processor][1]:
        with pytest.raises(HostnetError, match="recorded with --template perf"):
            events.template("pcm", processor=processor)


def test_a_platform_gives_clocks_channels_cores_and_credits(recorded, cli):
    # Ice Lake of CC-NIC's paper: 3.1 GHz, 2 sockets of 16 cores of 12 buffers, 8 channels of DDR4-3200.
    m = machine((), api.platform("icx"))
    assert (m["core_ghz"], m["cores"], m["lfb_credits"], m["channels"], m["dclk_ghz"], m["t_trans_ns"]) == (
        3.1,
        16,
        12,
        8,
        1.6,
        2.5,
    )
    assert "c2m_read_ns" not in m, "the paper's latencies are of another machine"
    done = cli("explain", "--counters", recorded(TEXT), "--platform", "icx", "--set", "cores=6", "--json", check=0)
    (lfb,) = (d for d in json.loads(done.stdout)["domains"] if d["name"] == "line fill buffers")
    assert (lfb["credits"], lfb["held"]) == (72, pytest.approx(60 * 3.3 / 3.1))
    assert cli("explain", "--counters", recorded(TEXT), "--platform", "icy").returncode == 2
    assert cli("explain", "quadrant1", "--platform", "icx").returncode == 2


@pytest.mark.parametrize("platform", ["icelake", "icx", "spr", "cascadelake"])
@pytest.mark.parametrize("sockets", [1, 2])
def test_credits_and_cores_of_a_platform_are_those_of_the_sockets_recorded(platform, sockets):
    p = api.platform(platform)
    m = machine((), p, None, sockets)
    # keys.md: iio.count is the number of I/O controllers, each with buffers of its own; nodes.cores is per node.
    iio, cores = p["iio"], (p.get("nodes") or {}).get("cores") or p["core"]["count"]
    assert m["cores"] == sockets * cores and m["channels"] == sockets * p["memory"]["channels"]
    assert m["iio_write_credits"] == sockets * iio["count"] * iio["write_buffer"]
    assert m["iio_read_credits"] == sockets * iio["count"] * iio["read_buffer"]


def test_a_platform_of_two_sockets_says_that_one_is_meant(recorded):
    ex = explain.of_counters(recorded(TEXT), (), None, "icx")
    (lfb,) = (d for d in ex.domains if d.traffic == "c2m")
    assert lfb.credits == 16 * 12
    assert ex.notes[0] == (
        "the counts are taken to be of one of the platform's 2 sockets; where they are of several, record with --per-socket"
    )
    assert not any("are taken to be of" in n for n in explain.of_counters(recorded(TEXT), (), None, "icelake").notes)


@pytest.mark.parametrize("form", ["perf -A", "pcm-raw"])
def test_busy_cpus_are_at_most_the_cores_of_the_platform(recorded, form):
    # 12 threads of cascadelake's 8 cores hold 60 entries; a core's two threads share its 12 line fill buffers.
    per = 60 * CORE / 12
    if form == "perf -A":
        rows = [HEAD, *(r for r in ROWS if ",lfb_" not in r)]
        rows += [f"CPU{i},{per * SECONDS if i < 12 else 0:.0f},,lfb_occupancy,1,100.00,," for i in range(16)]
    else:
        rows = [",,,,," + ",".join(f"SKT0CORE{i}" for i in range(16))]
        counts = {"lfb_occupancy": per, "l1_miss": 16 * LINES / 12}
        rows += [
            PCM_ROW.format(s=s, name=name, counts=",".join(f"{n if i < 12 else 0:.0f}" for i in range(16)))
            for s in range(2)
            for name, n in counts.items()
        ]
    file = recorded(lines(*rows))

    def lfb(*changes):
        ex = explain.of_counters(file, changes, None, "cascadelake")
        return next(d.credits for d in ex.domains if d.traffic == "c2m"), [n for n in ex.notes if "CPUs" in n]

    credits, said = lfb()
    assert credits == 8 * 12
    assert said == [
        "12 CPUs were busy, and the platform has 8 cores, whose line fill buffers hardware threads share; where fewer cores "
        "were busy, give --set cores=N"
    ]
    assert lfb("cores=6") == (6 * 12, [])
    ex = explain.of_counters(file)
    assert next(d.credits for d in ex.domains if d.traffic == "c2m") == 12 * 12
    assert (
        "each of the 12 busy CPUs counts as a core; where two are threads of one core, give --set cores=N" in ex.notes
    )


def test_nodes_are_no_more_sockets_than_the_platform_has(recorded):
    # icx has two sockets; with two nodes in each (SNC), quadrant 3 is spread over four.
    rows = [f"N{n},12,{','.join(f)}" for n in range(4) for f in halves(4)]
    ex = explain.of_counters(recorded(lines(HEAD, *rows)), (), None, "icx")
    assert [d.credits for d in ex.domains if d.traffic == "p2m"] == [
        machine((), api.platform("icx"), None, 2)["iio_write_credits"]
    ]
    assert any("counts of 4 nodes of 2 sockets are added" in n for n in ex.notes)
    # Nothing tells how many nodes a socket of the paper's server has.
    ex = explain.of_counters(recorded(lines(HEAD, *rows)))
    assert [d.credits for d in ex.domains if d.traffic == "p2m"] == [4 * 92]
    said = "each node counts as a socket; where a socket has several (SNC, NPS), record with --per-socket"
    assert said in ex.notes
    uneven = [f"N{n},12,{','.join(f)}" for n in range(2) for f in halves(1 + 9 * n)]
    ex = explain.of_counters(recorded(lines(HEAD, *uneven)))
    assert "the sockets differ" in ex.notes[0] and said in ex.notes


PCM_ROW = "2026-11-21,12:00:0{s}.000,{name},1000,2100000000,{counts}"


def test_pcm_rows_of_units_are_added_whatever_their_headers(recorded):
    rates = {"cas_read": 4e9, "cas_write": 2e9}
    one = [PCM_ROW.format(s=s, name=n, counts=f"{r / 2:.0f},{r / 2:.0f}") for s in range(2) for n, r in rates.items()]
    several = [
        PCM_ROW.format(s=s, name=n, counts=f"{r / 2:.0f}") for s in range(2) for n, r in rates.items() for _ in (0, 1)
    ]
    for text in (
        lines(*one),
        lines("Date,Time,Event,Milliseconds,Tsc,SKT0CH0,SKT0CH1", *one),
        lines(",,,,,SKT0,SKT1", "DATE,TIME,EVENT,MS,TSC,CH0,CH0", *one),
        lines(*several),
        lines(*(row + ",N/A," for row in one)),
        lines(*one).replace(",", ";"),
    ):
        assert counters.read(recorded(text)).rates == pytest.approx(rates), text
    assert "several rows a time" in counters.read(recorded(lines(*several))).notes[0]


def test_pcm_memory_gives_the_bandwidths_of_all_sockets(recorded):
    text = lines(
        ",,SKT0,SKT0,SKT1,SKT1,System,System",
        "Date,Time,Mem Read (MB/s),Mem Write (MB/s),Mem Read (MB/s),Mem Write (MB/s),Read,Write",
        "2026-11-21,12:00:00.000,1000.125,200.0,3000.125,400.0,4000.25,600.0",
        "2026-11-21,12:00:01.000,1000.125,200.0,3000.125,400.0,4000.25,600.0",
    )
    ex = explain.of_counters(recorded(text))
    assert (ex.facts["mem_read_gbs"], ex.facts["mem_write_gbs"]) == pytest.approx((4.00025, 0.6))
    assert ex.domains == [] and ex.regime == "not judged"


@pytest.mark.parametrize("clock", ["2.1 GHz", "3.7 GHz"])
def test_counters_of_a_platform_with_another_clock_give_its_occupancies_back(recorded, clock):
    changes = {"run.time": "100 us", "override.core.clock": clock, "override.caches.uncore_clock": "2 GHz"}
    result = api.run(Scenario.load("quadrant3").with_(changes))
    file = recorded(vendor.perf_csv(result))
    truth = {d.name: d for d in explain.of_result(result).domains}
    seen = {d.name: d for d in explain.of_counters(file).domains}
    for name in ("line fill buffers", "IIO write buffer"):
        assert (seen[name].held, seen[name].credits) == pytest.approx((truth[name].held, truth[name].credits), rel=0.01)
    # Counted in cycles of the platform's own clocks, as a tool without hostnet's header reads them.
    rates = counters.read(file).rates
    assert rates["lfb_occupancy"] / (float(clock.split()[0]) * 1e9) == pytest.approx(
        truth["line fill buffers"].held, rel=0.01
    )
    bare = recorded(lines(*(row for row in file.read_text().splitlines() if not row.startswith("# machine"))))
    told = explain.of_counters(bare, (f"core_ghz={clock.split()[0]}", "cores=6"))
    assert next(d for d in told.domains if d.name == "line fill buffers").held == pytest.approx(
        truth["line fill buffers"].held, rel=0.01
    )


@pytest.mark.parametrize(
    "names, rates",
    [  # counts of 10 s
        ({"uncore_imc/cas_count_read/": (61.04, "MiB")}, {"cas_read": 61.04 * 2**20 / 64 / 10}),
        (
            {f"uncore_imc_{i}/cas_count_write/": (61.04, "MiB") for i in range(6)},
            {"cas_write": 6 * 61.04 * 2**20 / 64 / 10},
        ),
        ({"LLC_MISSES.MEM_READ": (1229440, "Bytes")}, {"cas_read": 1229440 / 64 / 10}),
        (
            {f"uncore_imc/cas_count_read_sch{i}/": (10.0, "MiB") for i in (0, 1)},
            {"cas_read": 2 * 10 * 2**20 / 64 / 10},
        ),
        (
            {"UNC_M_WMM_TO_RMM." + u: (n, "") for u, n in (("LOW_THRESH", 30), ("STARVE", 20), ("VMSE_RETRY", 0))},
            {"wmm_to_rmm": 5},
        ),
        ({"UNC_I_COHERENT_OPS.RFO": (10, ""), "UNC_I_COHERENT_OPS.PCITOM": (20, "")}, {"irp_inserts": 3}),
        ({"UNC_M_ACT_COUNT.RD": (100, ""), "UNC_M_ACT_COUNT.WR": (50, "")}, {"act_read": 10, "act_write": 5}),
        (  # Granite Rapids counts the reads of partial writes apart
            {"UNC_M_ACT_COUNT.RD": (100, ""), "UNC_M_CAS_COUNT_SCH0.RD": (1, ""), "UNC_M_CAS_COUNT_SCH1.RD": (9, "")},
            {"cas_read": 1},
        ),
        (  # of core reads, occupancy and inserts of the same requests
            {
                "unc_cha_tor_inserts.ia_miss_drd": (30, ""),
                "unc_cha_tor_inserts.ia_drd": (50, ""),
                "unc_cha_tor_occupancy.ia_miss_drd": (60, ""),
            },
            {"drd_inserts": 3, "drd_occupancy": 6},
        ),
        ({"unc_cha_tor_inserts.ia_drd": (50, ""), "unc_cha_tor_occupancy.ia_miss_drd": (60, "")}, {}),
        ({f"unc_cha_tor_inserts.io_itom [uncore_cha_{i}]": (i, "") for i in range(1, 25)}, {"itom_inserts": 30}),
        ({f"amd_umc_{i}/umc_cas_cmd.rd/": (5, "") for i in range(12)}, {"cas_read": 6}),
    ],
)
def test_names_of_kernels_older_tools_and_vendors(recorded, names, rates):
    text = lines(HEAD, *(f"{n},{unit},{name},1,100.00,," for name, (n, unit) in names.items()), "1,,l1_miss,1,100.00,,")
    found = counters.read(recorded(text)).rates
    assert found == pytest.approx({**rates, "l1_miss": 0.1})


def test_counts_of_two_sockets_have_the_credits_of_two(recorded):
    rows = [f"S{s},48,{','.join(f)}" for s in (0, 1) for f in halves(1)]  # each socket as quadrant 3
    ex = explain.of_counters(recorded(lines(*(f"S{s},1,{HEAD}" for s in (0, 1)), *rows)))
    iio = next(d for d in ex.domains if d.name == "IIO write buffer")
    assert (iio.held, iio.credits, iio.little_ns) == pytest.approx((184, 184, 640))
    # 40 GB/s on two channels of each socket: a line of 64 B takes 2.73 ns.
    assert ex.facts["mem_utilisation"] == pytest.approx(40 / 64 * 2.73 / 2) and ex.facts[
        "rpq_occupancy"
    ] == pytest.approx(14)
    assert any("2 sockets are added" in n for n in ex.notes)
    # The platform's 32 cores are those of both sockets, and its 8 channels those of one.
    m = machine((), api.platform("icx"), None, sockets=2)
    assert (m["cores"], m["channels"]) == (32, 16)


def per_socket(rows, share):
    """The rows of socket 0, and those of socket 1 with a share of the counts, as `perf stat --per-socket` writes them."""
    counts = [[(s, str(int(float(f[0]) * (1, share)[s])), *f[1:]) for s in (0, 1)] for f in rows]
    return [f"S{s},48,{','.join(f)}" for pair in counts for s, *f in pair]


def per_cpu(rows, share):
    """The same as `perf stat -A` writes it: six cores of socket 0, and the uncore of each socket on its first CPU."""
    found = []
    for count, *f in rows:
        if f[1] in ("lfb_occupancy", "l1_miss"):
            parts = [float(count) / 6] * 6 + [0.0] * 22 + [float(count) / 6 * share] * 6 + [0.0] * 22
            found += [f"CPU{c},{n:.0f},{','.join(f)}" for c, n in enumerate(parts)]
        else:
            found += [f"CPU{28 * s},{float(count) * (1, share)[s]:.0f},{','.join(f)}" for s in (0, 1)]
    return found


def pcm_raw(rows, share):
    """The same as `pcm-raw -tr` writes it, with a header for the units of each kind of event."""
    units = [[f"SKT{s}CHAN{c}" for s in (0, 1) for c in range(2)], [f"SKT{c % 2}CORE{c}" for c in range(12)]]
    found = [",,,,," + ",".join(names) for names in units]
    for count, *f in rows:
        core = f[1] in ("lfb_occupancy", "l1_miss")
        of = (6 if core else 2) * SECONDS
        each = [f"{float(count) / of * (1, share)[int(u[3])]:.0f}" for u in units[core]]
        found += [PCM_ROW.format(s=s, name=f[1], counts=",".join(each)) for s in range(2)]
    return found


def as_sockets_of_json(rows, share):
    told = []
    for row in per_socket(rows, share):
        scope, units, rest = row.split(",", 2)
        told.append(json.dumps({"socket": scope, "counters": int(units)} | json.loads(as_json(rest))))
    return told


SHAPES_OF_SOCKETS = {
    "--per-socket": lambda share: [f"S{s},1,{HEAD}" for s in (0, 1)] + per_socket(halves(1), share),
    "--per-node": lambda share: [HEAD] + [f"N{row[1:]}" for row in per_socket(halves(1), share)],
    "-A": lambda share: [f"CPU0,{HEAD}"] + per_cpu(halves(1), share),
    "-j": lambda share: [as_json(HEAD)] + as_sockets_of_json(halves(1), share),
    "pcm-raw": lambda share: pcm_raw(halves(1), share),
}


@pytest.mark.parametrize("shape", SHAPES_OF_SOCKETS)
def test_an_idle_socket_does_not_hide_that_the_other_is_full(recorded, shape):
    alone = explain.of_counters(recorded(TEXT))
    for share in (0.0, 0.001, 0.3):
        ex = explain.of_counters(recorded(lines(*SHAPES_OF_SOCKETS[shape](share))))
        assert ex.regime == "red", share
        assert [d.held for d in ex.domains] == pytest.approx([60, 92])
        assert [d.little_ns for d in ex.domains] == pytest.approx([240, 640])
        assert [d.credits for d in ex.domains if d.traffic == "p2m"] == [92]
        assert re.search(r"the sockets differ, and this is [SN]0, which is red .*; [SN]1 is ", ex.notes[0])
        assert ex.facts["mem_read_gbs"] == pytest.approx(alone.facts["mem_read_gbs"])
    both = explain.of_counters(recorded(lines(*SHAPES_OF_SOCKETS[shape](1.0))))
    assert [d.held / d.credits for d in both.domains if d.traffic == "p2m"] == pytest.approx([1.0])
    assert both.facts["mem_read_gbs"] == pytest.approx(2 * alone.facts["mem_read_gbs"])


def test_cores_of_pcm_are_counted(recorded):
    lfb = next(d for d in explain.of_counters(recorded(lines(*pcm_raw(halves(1), 0.0)))).domains if d.traffic == "c2m")
    assert lfb.credits == 12 * 6


@pytest.mark.parametrize("scope", ["CPU{}", "S0-D0-C{},2"])
def test_busy_cores_of_a_platform_are_those_of_the_file(recorded, scope):
    cpus = [f"{scope.format(i)},{6 * CORE * SECONDS if i < 10 else 0:.0f},,lfb_occupancy,1,100.00,," for i in range(16)]
    file = recorded(lines(HEAD, *cpus, *(r for r in ROWS if "lfb_occupancy" not in r)))
    for changes, cores in (((), 10), (("cores=12",), 12)):
        lfb = next(d for d in explain.of_counters(file, changes, None, "icx").domains if d.name == "line fill buffers")
        assert lfb.credits == 12 * cores


def test_a_counter_that_hardly_ran_says_so_with_a_variance(recorded):
    text = TEXT.replace("cas_read,10000000000,25.00", "cas_read,0.50%,10000000000,2.50")
    assert "2.5 % of the time" in counters.read(recorded(text)).notes[0]


def test_what_is_left_out_of_intervals_is_said(recorded):
    assert (
        "was not counted" in counters.read(recorded(SHAPES["an interval in which an event was not counted"])).notes[0]
    )
    assert "lacks rows" in counters.read(recorded(SHAPES["intervals of which the last is cut"])).notes[0]
    assert "40 s" in counters.read(recorded(SHAPES["intervals without the first 40"])).notes[0]
    assert "their mean is taken" in counters.read(recorded(SHAPES["a core's event listed twice"])).notes[0]


def test_files_of_windows(recorded):
    path = recorded("")
    path.write_bytes(TEXT.replace("\n", "\r\n").encode("utf-16"))
    assert counters.read(path).rates["cas_read"] == pytest.approx(16 * LINES)


def test_pcm_raw_without_tr_has_a_column_for_each_unit(recorded):
    columns = [("SKT0CHAN0", "UNC_M_CAS_COUNT.RD", 200), ("SKT0CHAN1", "UNC_M_CAS_COUNT.RD", 300)]
    columns += [("SKT0CORE0", "L1D_PEND_MISS.PENDING", 5)]
    text = lines(
        ",,," + "".join(f"{unit}," for unit, *_ in columns),
        "Date,Time,ms," + "".join(f"{name}," for _, name, _ in columns),
        *(f"2026-11-21,12:00:0{s}.123,500," + "".join(f"{n}," for *_, n in columns) for s in range(3)),
    )
    assert counters.read(recorded(text)).rates == pytest.approx({"cas_read": 1000, "lfb_occupancy": 10})


def test_pcm_counts_gigabytes_between_its_rows(recorded):
    text = lines(
        ",,System,System,System,System,Socket 0,Socket 0,Socket 1,Socket 1",
        "Date,Time,EXEC,IPC,READ,WRITE,READ,WRITE,READ,WRITE",
        "2026-11-21,23:59:58.500,0.5,1.0,99.0,99.0,9,9,9,9",  # of an interval of unknown length
        "2026-11-21,23:59:59.500,0.5,1.0,20.0,10.0,9,9,9,9",
        "2026-11-22,00:00:01.500,0.5,1.0,40.0,20.0,9,9,9,9",
    )
    for shape in (text, text.replace(",", ";"), text.replace(",", ";").replace(".0;", ",0;")):
        r = counters.read(recorded(shape))
        assert r.rates == pytest.approx({"cas_read": 20 * LINES, "cas_write": 10 * LINES}) and r.sockets == 2
    with pytest.raises(HostnetError, match="give --seconds"):
        counters.read(recorded(lines(*text.splitlines()[:3])))
    assert counters.read(recorded(lines(*text.splitlines()[:3])), 9.9).rates["cas_read"] == pytest.approx(10 * LINES)


@pytest.mark.parametrize("lost", ["N/A,N/A", "20.0,", ",10.0", "20.0", "nan,-nan"])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_row_of_pcm_that_lacks_numbers_is_left_out_with_its_time(recorded, lost, at):
    # Intervals of 1 s with 20 GB read and 10 GB written.
    rows = [f"2026-11-21,12:00:0{s}.000,0.5,{lost if s == at else '20.0,10.0'}" for s in range(5)]
    r = counters.read(recorded(lines("Date,Time,EXEC,READ,WRITE", *rows)))
    assert r.rates == pytest.approx({"cas_read": 20 * LINES, "cas_write": 10 * LINES})
    assert "1 rows lack numbers and are left out" in r.notes
    r = counters.read(recorded(lines("Date,Time,EXEC,READ,WRITE", *rows)), 5.0)
    assert r.rates == pytest.approx({"cas_read": 20 * LINES, "cas_write": 10 * LINES})


def test_no_interval_of_pcm_without_its_length(recorded):
    head, *rows = "Date,Time,EXEC,READ,WRITE", "2026-11-21,12:00:00.0,1,2,3", "2026-11-21,12:00:01.0,1,2,N/A"
    with pytest.raises(HostnetError, match="only the first row has numbers.* give --seconds"):
        counters.read(recorded(lines(head, *rows)))


@pytest.mark.parametrize(
    "second", ["N/A,1,{n},{n}", "1000,1,N/A,{n}", "1000,1,{n}"], ids=["no milliseconds", "no count", "cut"]
)
@pytest.mark.parametrize("units", [1, 2], ids=["a row a time", "two rows a time"])
def test_an_interval_of_pcm_raw_that_lacks_a_number_is_left_out_with_its_time(recorded, second, units):
    # 1000 lines a second in each of two units, of which rows of one time may each have one.
    rows = []
    for s in range(3):
        fields = second if s == 1 else "1000,1,{n},{n}"
        told = [fields.format(n=1000)]
        if units == 2:
            ms, tsc, *counts = told[0].split(",")
            told = [f"{ms},{tsc},{count}" for count in counts]
        rows += [f"2026-11-21,12:00:0{s}.0,cas_read,{fields}" for fields in told]
    r = counters.read(recorded(lines(*rows)))
    assert r.rates == pytest.approx({"cas_read": 2000}), rows
    assert "`cas_read` lacks counts of some units in 1 intervals, which are left out" in r.notes


# The first line of the header by `print_csv_header` of PCM, and as versions wrote it that named first columns alone.
PCM_SYSTEM = ["System"] * 4, ["EXEC", "IPC", "READ", "WRITE"], ["0.5", "1.0", "20.0", "10.0"]


def pcm_main(system, sockets, old):
    """`pcm -csv`, or without ``system`` `pcm -csv -nsys`, of 20 and 10 GB/s in all."""
    above, names, values = (list(part) for part in PCM_SYSTEM) if system else ([], [], [])
    share = [14.0, 7.0], [6.0, 3.0]
    for s in range(sockets):
        above += [f"Socket{s}" if old else f"Socket {s}"] * 4
        names += PCM_SYSTEM[1]
        values += ["0.5", "1.0", *(str(n) for n in (share[s] if sockets == 2 else (20.0, 10.0)))]
    above = ["System", "System", *above, "SKT0 Core C-State"]
    if old:
        above = [name if i == 0 or name != above[i - 1] else "" for i, name in enumerate(above)]
    rows = [f"2026-11-21,12:00:0{t}.000,{','.join(values)},3" for t in range(3)]
    return [",".join(above) + ",", ",".join(["Date", "Time", *names, "C0res%"]) + ",", *rows]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("sockets", [1, 2])
@pytest.mark.parametrize("system", [False, True])
def test_pcm_is_of_the_system_or_of_all_sockets(recorded, system, sockets, old):
    r = counters.read(recorded(lines(*pcm_main(system, sockets, old))))
    assert r.rates == pytest.approx({"cas_read": 20 * LINES, "cas_write": 10 * LINES})
    assert r.sockets == sockets
    # Two channels of DDR4-2933 a socket: a line of 64 B takes 2.73 ns.
    ex = explain.of_counters(recorded(lines(*pcm_main(system, sockets, old))))
    assert ex.facts["mem_utilisation"] == pytest.approx(30 / 64 * 2.73 / 2 / sockets)


def test_columns_of_pcm_that_nothing_tells_apart_are_refused(recorded):
    with pytest.raises(HostnetError, match="has 2 columns `READ` without the line above them"):
        counters.read(recorded(lines(*pcm_main(False, 2, False)[1:])))


@pytest.mark.parametrize("mark", [",", ".", "\u202f", "'"])
def test_digits_that_pcm_raw_groups(recorded, mark):
    # `pcm-raw -l` prints whole numbers as the locale groups them, between tabs.
    counts = {"cas_read": (1_234, 2_345_678), "l1_miss": (987, 1_000)}
    rows = [
        "\t".join(
            [f"2026-11-21\t12:00:0{s}.5", name, *(f"{n:,}".replace(",", mark) for n in (1_000, 2_100_000_000, *of))]
        )
        for s in range(3)
        for name, of in counts.items()
    ]
    r = counters.read(recorded(lines(*rows)))
    assert r.rates == pytest.approx({name: sum(of) for name, of in counts.items()})


PCM_MEMORY = lines(
    ",,SKT0,SKT0,SKT0,SKT0,System,System,System",
    "Date,Time,Ch0Read,Ch0Write,Mem Read (MB/s),Mem Write (MB/s),Read,Write,Memory",
    "2026-11-21,12:00:00.500, 640.00, 320.00, 640.00, 320.00, 640.00, 320.00, 960.00",
    "2026-11-21,12:00:01.500, 640.00, 320.00, 640.00, 320.00, 640.00, 320.00, 960.00",
)


@pytest.mark.parametrize(
    "text",
    [
        PCM_MEMORY.replace(",", ";").replace(".00", ",000"),
        PCM_MEMORY + "2026-11-21,12:00:02.500, 640.00, 320.00, 64",
        PCM_MEMORY + "2026-11-21,12:00:02.500, 640.00, 320.00, -nan, nan, 1, 1, 1",
        PCM_MEMORY + "2026-11-21,12:00:02.500, , , N/A, N/A, 1, 1, 1",
        PCM_MEMORY.replace("2026-11-21", "11/21/2026"),
        PCM_MEMORY.replace("Mem ", "SKT0 Mem "),
    ],
)
def test_pcm_memory_in_its_shapes(recorded, text):
    assert counters.read(recorded(text)).rates == pytest.approx({"cas_read": 1e7, "cas_write": 5e6})


@pytest.mark.parametrize(
    "text, says",
    [
        ("Skt,PCIRdCur,ItoM,PCIe Rd (B),PCIe Wr (B)\n0,100,200,6400,12800\n", "pcm-pcie counts requests of devices"),
        (
            "Date,Time,Socket,Name,Part,IB write,IB read\n2026-11-21,12:00:00.1,Socket0,x,Part0,1,2\n",
            "pcm-iio counts bytes",
        ),
        (
            PCM_MEMORY.replace(" 640.00, 320.00,", "N/A,N/A,"),
            "no row has a number in each of the columns mem read (mb/s)",
        ),
        (
            "Date,Time,SKT0-Mem Read (MB/s)\n2026-11-21,12:00:00.1,640.00\n",
            "no column `mem write (mb/s)`",
        ),
        (
            "Date,Time,EXEC,READ,WRITE\n2026-11-21,12:00:00.1,1,2,3\n2026-11-21,12:00:00.1,1,2,3\n",
            "rows of one time only",
        ),
        (
            "Date,Time,EXEC,READ,WRITE\n2026-11-21,9 pm,1,2,3\n2026-11-21,10 pm,1,2,3\n",
            "the time '9 pm' of a row is not of the form",
        ),
        ("Date,Time,EXEC,READ\n2026-11-21,12:00:00.1,1,2\n", "holds none of the events"),
    ],
)
def test_files_of_pcm_that_tell_nothing_are_one_sentence(recorded, text, says):
    with pytest.raises(HostnetError) as raised:
        counters.read(recorded(text))
    assert says in str(raised.value) and "\n" not in str(raised.value)


PCM_MAIN = lines("Date,Time,EXEC,READ,WRITE,", *(f"2026-11-21,12:00:0{s}.0,0.5,20.0,10.0," for s in range(3)))
PCM_COLUMNS = lines(
    ",,,SKT0CHAN0,SKT0CHAN1,",
    "Date,Time,ms,UNC_M_CAS_COUNT.RD,UNC_M_CAS_COUNT.RD,",
    *(f"2026-11-21,12:00:0{s}.0,500,200,300," for s in range(3)),
)
PCM_LABELLED = lines(
    ",,,,,SKT0CHAN0,SKT0CHAN1", *(PCM_ROW.format(s=s, name="cas_read", counts="200,300") for s in range(3))
)
PCM_BARE = lines(*PCM_LABELLED.splitlines()[1:])


@pytest.mark.parametrize(
    "text, line, found, wanted",
    [
        (PCM_MEMORY.replace(" 640.00", "640,00"), 3, 12, 9),
        (PCM_MEMORY.replace("01.500,", "01.500,0,"), 4, 10, 9),
        (PCM_MEMORY.replace(",", ";").replace("01.500;", "01.500;0;"), 4, 10, 9),
        (PCM_MAIN.replace("0.5", "0,5"), 2, 6, 5),
        (PCM_COLUMNS.replace(",300", ",1,300"), 3, 6, 5),
        (PCM_COLUMNS.replace("02.0,500,200,300", "02.0,500,200,1,300"), 5, 6, 5),
        (PCM_LABELLED.replace("200,300", "1,200,300"), 2, 8, 7),
        (PCM_LABELLED + PCM_LABELLED.replace("200,300", "1,200,300"), 6, 8, 7),
        (PCM_BARE.replace("02.000,cas_read,1000", "02.000,cas_read,1,000"), 3, 8, 7),
    ],
)
def test_rows_of_pcm_with_more_fields_than_the_header_are_refused(recorded, text, line, found, wanted):
    with pytest.raises(HostnetError) as raised:
        counters.read(recorded(text))
    assert f"line {line}: has {found} fields where {wanted} belong" in str(raised.value)
    assert "decimal comma" in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text, says",
    [
        (
            PCM_MEMORY.replace("500, 640.00,", "500,"),
            "line 3: has 8 fields and its header, line 2, 9; no row has them all",
        ),
        (PCM_MAIN.replace(",0.5", "").replace("10.0,", "10.0"), "line 2: has 4 fields and its header, line 1, 5"),
        (PCM_COLUMNS.replace(",500,200,300,", ",500,300"), "line 3: has 4 fields and its header, line 2, 5"),
        (PCM_LABELLED.replace(",2100000000", ""), "line 2: has 6 fields and its header 7; no row has them all"),
        (
            PCM_MEMORY + PCM_MEMORY.replace("Ch0Read", "Ch1Read"),
            "the header of line 6 has other columns than that of line 2",
        ),
    ],
)
def test_rows_of_pcm_that_no_header_fits_are_refused(recorded, text, says):
    with pytest.raises(HostnetError) as raised:
        counters.read(recorded(text))
    assert says in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text, rates",
    [  # of a PCM that was killed, and of one whose version leaves fields of an idle channel out
        (PCM_MEMORY + "2026-11-21,12:00:02.500, 640.00, 320.00, 640.00, 32", {"cas_read": 1e7, "cas_write": 5e6}),
        (
            PCM_MEMORY + "2026-11-21,12:00:02.500, 640.00, 320.00, 640.00, 320.00, 960.00\n" + PCM_MEMORY,
            {"cas_read": 1e7, "cas_write": 5e6},
        ),
        (PCM_COLUMNS + "2026-11-21,12:00:03.0,500,200,3", {"cas_read": 1000}),
        (PCM_COLUMNS + "2026-11-21,12:00:03.0,500,20", {"cas_read": 1000}),
        (PCM_MAIN + "2026-11-21,12:00:03.0,0.5,20.0,1", {"cas_read": 20 * LINES, "cas_write": 10 * LINES}),
        (PCM_MAIN + "2026-11-21,12:0", {"cas_read": 20 * LINES, "cas_write": 10 * LINES}),
        (PCM_MEMORY + "2026-11-21", {"cas_read": 1e7, "cas_write": 5e6}),
        (PCM_LABELLED + PCM_ROW.format(s=3, name="cas_read", counts="20"), {"cas_read": 500}),
        (lines(*PCM_BARE.splitlines()[:2])[:-5], {"cas_read": 500}),  # of two rows the second is cut
        # Recordings one behind the other, each with a header of its own.
        (PCM_MAIN + PCM_MAIN, {"cas_read": 20 * LINES, "cas_write": 10 * LINES}),
        (
            PCM_COLUMNS + PCM_COLUMNS.replace("COUNT.RD", "COUNT.WR").replace("200,300,", "100,20,"),
            {"cas_read": 1000, "cas_write": 240},
        ),
        # Header lines of different lengths, and rows with commas behind the last field.
        (PCM_MEMORY.replace(",System,System,System", ""), {"cas_read": 1e7, "cas_write": 5e6}),
        (PCM_MEMORY.replace("960.00", "960.00,,"), {"cas_read": 1e7, "cas_write": 5e6}),
        # `pcm-raw -tr -ext` puts the units of all kinds side by side.
        (
            lines(
                ",,,,,SKT0CORE0,SKT0CORE1,SKT0CHAN0",
                "Date,Time,Event,ms,InvariantTSC,core,core,imc",
                *(PCM_ROW.format(s=s, name="l1_miss", counts="7,8") for s in range(2)),
                *(PCM_ROW.format(s=s, name="cas_read", counts=",,9") for s in range(2)),
            ),
            {"l1_miss": 15, "cas_read": 9},
        ),
    ],
)
def test_rows_of_pcm_that_are_cut_or_joined(recorded, text, rates):
    assert counters.read(recorded(text)).rates == pytest.approx(rates)


@pytest.mark.parametrize("text", [PCM_MEMORY, PCM_MAIN, PCM_COLUMNS, PCM_LABELLED])
def test_a_header_of_pcm_without_rows_says_so(recorded, text):
    head = [line for line in text.splitlines() if "2026" not in line]
    for kept in (head, head[:1]):
        with pytest.raises(HostnetError, match="has the header of a file of PCM and no rows"):
            counters.read(recorded(lines(*kept)))
    with pytest.raises(HostnetError, match="is empty"):
        counters.read(recorded("\n"))


@pytest.mark.parametrize(
    "key, value, says",
    [
        ("pcnt-running", "n/a", '"pcnt-running" of `cas_read` is "n/a"'),
        ("pcnt-running", True, '"pcnt-running" of `cas_read` is true'),
        ("interval", "x", '"interval" of `cas_read` is "x"'),
        ("interval", [1], '"interval" of `cas_read` is [1]'),
        ("interval", float("nan"), '"interval" of `cas_read` is NaN'),
        ("counter-value", None, 'has no number as its "counter-value"'),
        ("counter-value", [1], '"counter-value" of `cas_read` is [1]'),
        ("counter-value", {}, '"counter-value" of `cas_read` is {}'),
        ("counter-value", -1, '"counter-value" of `cas_read` is -1'),
        ("counter-value", 10**400, '"counter-value" of `cas_read` is 1000'),
    ],
)
def test_values_of_another_type_in_json_are_one_sentence(recorded, key, value, says):
    row = {"counter-value": "10.000000", "unit": "", "event": "cas_read", "pcnt-running": 100.0}
    with pytest.raises(HostnetError) as raised:
        counters.read(recorded(lines(as_json(HEAD), json.dumps(row | {key: value}))))
    assert says in str(raised.value) and "line 2" in str(raised.value) and "\n" not in str(raised.value)


def test_json_of_any_depth_is_one_sentence(recorded):
    with pytest.raises(HostnetError, match="line 1: is not JSON as `perf stat -j` writes it"):
        counters.read(recorded('{"event": ' + "[" * 100_000 + "}"))


def test_the_contents_of_a_pipe_are_told_apart(recorded, cli):
    """A second recording under the same name, /dev/stdin, does not replace what is explained."""
    for text, code in ((TEXT, 0), (TEXT, 0), (TEXT.replace("25.00", "50.00"), 2)):
        done = cli("explain", "--counters", "/dev/stdin", "--out", "o", "-q", input=text)
        assert done.returncode == code, done.stderr
    assert "--replace" in done.stderr
