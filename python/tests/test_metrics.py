"""Declarations of metrics: what is shown follows from them, and a name that they do not have is an error everywhere."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import hostnet as hn
from hostnet import HostnetError, declared, headlines, keys, plots, reference, scoreboard, studies
from hostnet.report import write_report
from hostnet.specs import schema
from hostnet.studies import Plot, Study
from hostnet.studies.grid import Axis

SEED = Axis("seed", "seed of the random streams", paths=("seed",))
PAGE = Path(__file__).parents[2] / "docs/use/metrics.md"
KEYS = PAGE.with_name("keys.md")


def test_every_metric_says_unit_group_dimension_and_meaning():
    groups, dimensions = set(declared.groups()), {"host", "tenant", "node", "port", "domain"}
    for m in declared.metric_info().values():
        assert m["unit"] and m["description"] and m["group"] in groups and m["dimension"] in dimensions, m
    text = {"tenant", "app", "stack", "node"}
    assert {n for n, m in declared.tenant_info().items() if not m["unit"]} == text


def test_the_page_of_metrics_is_that_of_the_declarations():
    """`hostnet metrics --md docs/use/metrics.md` writes it anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == reference.page()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page.split("## Tenants")[0], re.M))
    assert rows == {n: m["unit"] for n, m in declared.metric_info().items()}


def test_the_page_of_keys_is_that_of_the_schema(cli, tmp_path):
    """`hostnet schema --md docs/use/keys.md` writes it anew."""
    page = KEYS.read_text(encoding="utf-8")
    assert page == reference.keys_page()
    cli("schema", "--md", tmp_path / "page.md", check=0)
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page
    both = cli("schema", "traffic", "--md", tmp_path / "other.md")
    assert both.returncode == 2 and "leave out one of them" in both.stderr and not (tmp_path / "other.md").exists()


def test_the_page_of_keys_has_every_key_of_the_schema_with_a_meaning():
    page = KEYS.read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page, re.M))
    assert [key for key, meaning in listed.items() if not meaning.strip()] == []
    full = schema()
    declared_keys = {key for table in nodes(full) for key in table.get("properties", {}) if key != "kind"}
    assert len(declared_keys) > 400 and declared_keys - set(listed) == set()


def nodes(node):
    """Every table within a JSON Schema."""
    if isinstance(node, dict):
        yield node
    for below in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(below)


@pytest.mark.parametrize("page", ["from-gem5-dpdk", "from-ramulator"])
def test_every_key_that_a_page_of_migration_names_exists(page):
    text = KEYS.with_name(f"{page}.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:override|run|traffic|placement|tenant)\.[\w.]+)", text)
    named += [f"override.memory.{key}" for key in re.findall(r"^(\w+) = .*# \w+: ", text, re.M)]
    assert len(named) > 3
    for key in named:
        assert keys.rows(key)


def test_the_page_of_datapaths_has_each_domain_and_each_column_of_its_table():
    page = (
        (KEYS.parents[1] / "models/datapaths.md").read_text(encoding="utf-8").split("## Domains")[1].split("\n## ")[0]
    )
    cells = re.findall(r"^\| (`.*?`) \| (.*?) \|", page, re.M)
    rows = {name: second for first, second in cells for name in re.findall("`(.*?)`", first)}
    for name in ("quadrant3", "ccnic-stream", "testpmd"):
        scenario = hn.Scenario.load(name)
        if name == "quadrant3":
            scenario.run.time = "5 us"
            scenario.run.warmup_time = "1 us"
        if name == "testpmd":
            scenario.run.load, scenario.traffic.rate, scenario.run.requests = "fixed", "10 Gbps", 200
        domains = hn.run(scenario).table("domains")
        assert set(domains.columns) <= {"domain", *rows}
        unknown = {re.sub(r"\b\d+\b", "N", domain) for domain in domains["domain"]} - set(rows)
        assert unknown == set(), name


def test_the_command_lists_what_a_pattern_names(cli, tmp_path):
    out = cli("metrics", "lat_p9*", check=0).stdout
    assert [line.split()[:2] for line in out.splitlines() if "lat_" in line] == [
        ["lat_p90_us", "us"],
        ["lat_p99_us", "us"],
        ["lat_p999_us", "us"],
    ]
    assert "dram_share" in cli("metrics", "tenant.*.dram_*", check=0).stdout
    wrong = cli("metrics", "lat_p9_us")
    assert wrong.returncode == 2 and 'there is no metric "lat_p9_us"; did you mean "lat_p90_us"' in wrong.stderr
    cli("metrics", "--md", tmp_path / "page.md", check=0)
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == reference.page()


def test_a_result_is_about_the_first_subject_of_which_it_has_a_mark():
    both = {"throughput_mrps": 1.0, "net_gbs": 1.0, "lfb_occ": 3.0}
    assert headlines.subject_of(both) == "tcp"
    assert headlines.subject_of({**both, "net_gbs": None}) == "packets"
    assert headlines.subject_of({"lfb_occ": 3.0}) == "host" and headlines.subject_of({"llc_mib": 3.0}) == "sizes"


def test_a_column_that_says_the_same_in_a_better_unit_takes_the_place_of_another():
    host = {"lfb_occ": 1.0, "t0_mops": 2.0, "t1_mops": 0.0, "c2m_gbs": 0.0}
    shown = {m for names in headlines.leading(host).values() for m in names}
    assert shown == {"lfb_occ", "t0_mops", "t1_mops"}
    better = {**host, "c2m_gbs": 1.0}
    assert {m for names in headlines.leading(better).values() for m in names} == {"lfb_occ", "c2m_gbs"}
    assert headlines.columns_for([host]) == ["c2m_gbs", "t0_mops", "lfb_occ"]
    assert headlines.columns_for([host, better]) == ["c2m_gbs", "lfb_occ"]


# ---- tenants' columns wherever metrics have names --------------------------------------------------------------------


@pytest.fixture
def alone(tiny):
    return hn.run(tiny)


@pytest.fixture
def name(alone):
    return alone.table("tenants")["tenant"][0]


def test_aliases_are_the_columns_of_the_table(alone):
    row = alone.table("tenants").row(0, named=True)
    assert alone["t0_mops"] == row["throughput_mops"] > 0
    assert alone["t0_llc_miss_ratio"] == row["llc_miss_ratio"] > 0
    assert alone["t1_mops"] is None


def test_a_single_tenant_s_columns_have_names_too(alone, name, cli, tiny_file):
    assert alone[f"tenant.{name}.cpi"] == alone.table("tenants")["cpi"][0]
    out = cli("run", tiny_file, "--metrics", f"tenant.{name}.cpi", check=0).stdout
    assert re.search(rf"^ +tenant\.{name}\.cpi +[\d.]+ +(±\S+ +)?cycles ", out, re.M)
    out = cli("sweep", tiny_file, "--vary", "seed=1,2", "--metrics", "tenant.*.cpi", "-q", check=0).stdout
    assert f"tenant.{name}.cpi" in out and "dram_share" not in out


@pytest.mark.parametrize("asked", ["tenant.cpi", "tenant.cp*"])
def test_a_column_without_a_tenant_is_that_of_every_tenant(alone, name, cli, tiny_file, asked):
    done = cli("run", tiny_file, "--metrics", asked, check=0)
    assert f"tenant.{name}.cpi" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("command", [("run",), ("sweep", "--vary", "seed=1,2")])
@pytest.mark.parametrize(
    "asked, said",
    [
        ("lat_p9_us", 'there is no metric "lat_p9_us"; did you mean "lat_p90_us"'),
        ("tenant.*.cpj", "tenants have no column 'cpj'; did you mean \"tenant.*.cpi\""),
        ("tenant.cpj", "tenants have no column 'cpj'; did you mean \"tenant.*.cpi\""),
        ("tenant.nobody.cpi", "tenant.nobody.cpi: no tenant is called 'nobody'; choose one of"),
        ("tenant.no*.cpi", "tenant.no*.cpi: no tenant is called 'no*'; choose one of"),
    ],
)
def test_commands_refuse_unknown_names(cli, tiny_file, command, asked, said):
    done = cli(command[0], tiny_file, *command[1:], "--metrics", asked)
    assert done.returncode == 2 and said in done.stderr and done.stdout == ""


def test_results_refuse_unknown_names(alone, name):
    for asked, near in (("lat_p9_us", "lat_p90_us"), (f"tenant.{name}.cpj", f"tenant.{name}.cpi")):
        with pytest.raises(HostnetError, match=f'there is no metric "{asked}"; did you mean "{near}"'):
            alone[asked]


def study(tiny_file, *metrics, plot=None):
    return Study(
        "mine", "one", "One", SEED(1, 2), metrics, base=str(tiny_file), axes=(SEED,), plot=plot, file="mine.toml"
    )


def test_studies_and_their_plots_take_tenants_columns(tiny_file, name, tmp_path):
    asked = study(tiny_file, "throughput_mrps", "tenant.*.cpi", plot=Plot("seed", (f"tenant.{name}.cpi",)))
    done = studies.run(asked, out=tmp_path / "one")
    column = f"tenant.{name}.cpi"
    assert done.shown.metrics == ("throughput_mrps", column)
    assert done.frame[column].to_list() == [r.table("tenants")["cpi"][0] for r in done.results]
    assert done.about()["units"][column] == "cycles" and done.column_info("mine_one")[column]["unit"] == "cycles"
    figure = plots.figure_of("mine_one", done.frame, metrics=done.shown.metrics, drawn=done.shown.drawn)
    assert figure.axes[0].get_ylabel() == f"{name}: cpi [cycles]"
    assert column in write_report(tmp_path / "one").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "asked, said",
    [
        ("lat_p9_us", 'mine one: there is no metric "lat_p9_us"; did you mean "lat_p90_us"'),
        ("lat_p9*", r'mine one: there is no metric "lat_p9\*"; `hostnet metrics` lists them'),
        ("tenant.*.cpj", r"mine one: tenants have no column 'cpj'; did you mean .tenant.\*.cpi."),
        ("tenant.nobody.cpi", "mine.toml: study one: tenant.nobody.cpi: no tenant is called 'nobody'"),
    ],
)
def test_studies_refuse_unknown_columns(tiny_file, asked, said):
    with pytest.raises(HostnetError, match=said):
        studies.run(study(tiny_file, asked))
    with pytest.raises(HostnetError, match=said):
        studies.check([study(tiny_file, asked)], quick=False)


def test_plots_and_reports_refuse_unknown_columns(tiny_file, tmp_path):
    frame = pl.DataFrame({"ways": [2, 4], "lat_p99_us": [1.0, 2.0]})
    with pytest.raises(HostnetError, match="the table has no column 'lat_p9_us'; did you mean \"lat_p99_us\""):
        plots.plot_sweep(frame, "ways", "lat_p9_us")
    for drawn, metrics in (
        ({"plot": {"x": "ways", "y": ("mem_bw_gbs",), "lines": ()}}, ()),
        (None, ("mem_bw_gbs",)),
    ):
        with pytest.raises(HostnetError, match="the table has no column 'mem_bw_gbs'"):
            plots.figure_of("mine_one", frame, metrics=metrics, drawn=drawn)
    done = studies.run(study(tiny_file, "throughput_mrps"), out=tmp_path / "one")
    lacking = done.frame.drop("throughput_mrps")
    lacking.write_parquet(tmp_path / "one/mine_one.parquet")
    with pytest.raises(HostnetError, match=r"mine_one.parquet has no column 'throughput_mrps'"):
        write_report(tmp_path / "one")


# ---- claims ---------------------------------------------------------------------------------------------------------


def claim(eval: str):
    (one, *_) = (c for c in scoreboard.shipped() if c.id.startswith("sweeper.") and c.eval)
    return replace(one, eval=eval, file="mine.toml", id="mine")


@pytest.mark.parametrize(
    "query, said",
    [
        (
            "SELECT max(lat_p9_us) AS value FROM sweeper_fig5",
            "no table has the column 'lat_p9_us'; did you mean \"lat_p90_us\"",
        ),
        (
            'SELECT max("tenant.a.cpj") AS value FROM sweeper_fig9b',
            "tenants have no column 'cpj'; did you mean \"tenant.a.cpi\"",
        ),
        ("SELECT max(tenant.a.cpi) AS value FROM sweeper_fig9b", "tenant.a.cpi in double quotes"),
    ],
)
def test_claims_refuse_unknown_columns_before_anything_runs(query, said):
    with pytest.raises(scoreboard.ClaimError, match=f"mine.toml: claim mine: key `eval`: .*{re.escape(said)}"):
        scoreboard.BuiltStudies().check([claim(query)])


def test_claims_may_name_columns_themselves():
    queries = (
        "WITH t(a, b) AS (SELECT ways, buf FROM sweeper_fig5) SELECT b, max(a) AS value FROM t GROUP BY b",
        "SELECT x.most AS value FROM (SELECT max(mem_bw_gbs) AS most FROM sweeper_fig5) x",
        "SELECT list_max(list_transform(list(ways), lambda w: w + 1)) AS value FROM sweeper_fig5",
        'SELECT max("tenant.l3fwd.lat_p99_us") AS value FROM sweeper_fig9b',
        "SELECT MAX(Mem_BW_GBs) AS value FROM sweeper_fig5",
    )
    scoreboard.BuiltStudies().check(map(claim, queries))


def test_every_shipped_claim_reads_columns_that_exist():
    scoreboard.BuiltStudies().check(scoreboard.shipped())
