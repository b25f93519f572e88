"""What the terminal shows: every value at any width and in a pipe, and of a run the figures that matter for it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.console import Console

from hostnet import headlines
from hostnet.declared import metric_info
from hostnet.tables import MOST_TURNED, Column, layout

WIDTHS = (80, 120, 200)


def at_a_terminal(width, *args, cwd):
    """What a command prints on a terminal of so many columns, without its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", "from hostnet.cli import main; main()", *map(str, args)],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=theirs,
        cwd=cwd,
        env=env,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end has gone
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait(timeout=120) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", seen.decode()).replace("\r\n", "\n")


def words(text):
    """Everything but the space and the lines between cells, which depend on the width."""
    return sorted(w for w in re.sub(r"[─\s]+", " ", text).split())


def numbers(text):
    return set(re.findall(r"(?<![\w.])[+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?(?![\w.])", text))


@pytest.mark.parametrize(
    "args",
    [
        ["explain", "quadrant3"],
        ["run", "quadrant3", "--all"],
        ["study", "sweeper", "sizing"],
        ["sweep", "TINY", "--vary", "placement.ways=2,4", "--vary", "tenant.0.app.get_fraction=0.05,0.5"],
        ["platforms", "sim24"],
    ],
    ids=lambda a: " ".join(a[:2]),
)
@pytest.mark.long
def test_no_number_is_lost_at_any_width(cli, tiny_file, args):
    args = [str(tiny_file) if a == "TINY" else a for a in args]
    cli(*args, check=0)
    whole = cli(*args, check=0).stdout  # all points from the cache, as below
    assert len(numbers(whole)) > 10 and "…" not in whole
    for width in WIDTHS:
        shown = at_a_terminal(width, *args, cwd=cli.cwd)
        assert "…" not in shown
        assert numbers(whole) <= numbers(shown), width
        assert max(map(len, shown.splitlines())) <= width


def test_a_pipe_gets_one_line_a_row(cli):
    out = cli("explain", "quadrant3", check=0).stdout
    (row,) = [line for line in out.splitlines() if "C2M-Write, to the CHA" in line]
    assert len(re.findall(r"\d+\.\d", row)) >= 4


def test_a_pipe_is_as_wide_as_columns_says(cli, tiny_file):
    whole = cli("run", tiny_file, check=0).stdout
    for width in (60, 80):
        shown = cli("run", tiny_file, check=0, env={**os.environ, "COLUMNS": str(width)}).stdout
        assert max(map(len, shown.splitlines())) <= width < 120 < max(map(len, whole.splitlines()))
        assert numbers(whole) <= numbers(shown)


@pytest.mark.parametrize("said", ["0", "1", "10"])
def test_a_terminal_of_no_size_or_hardly_any_shows_every_number(cli, tiny_file, said):
    whole = cli("run", tiny_file, check=0).stdout
    shown = cli("run", tiny_file, check=0, env={**os.environ, "COLUMNS": said}).stdout
    assert numbers(whole) <= numbers(shown)
    assert cli("explain", tiny_file, check=0, env={**os.environ, "COLUMNS": said}).stdout


def printed(columns, rows, width):
    console = Console(width=width, color_system=None)
    with console.capture() as caught:
        for table in layout(columns, rows, width):
            console.print(table)
    return caught.get()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [1, MOST_TURNED, 40])
@pytest.mark.parametrize("columns", [2, 8, 30])
def test_cells_are_whole_whatever_the_shape(width, rows, columns):
    head = [
        Column("system", text=True, key=True),
        Column("ways", key=True),
        *(Column(f"some_metric_of_number_{i}_gbs", "GB/s") for i in range(columns)),
    ]
    cells = [["ddio + sweeper", str(r), *(f"{1000 * r + i}.25" for i in range(columns))] for r in range(rows)]
    text = printed(head, cells, width)
    assert {f"{1000 * r + i}.25" for r in range(rows) for i in range(columns)} <= set(text.split())
    assert max(map(len, text.splitlines())) <= width


def test_a_narrow_table_repeats_the_names_of_its_rows():
    head = [Column("system", text=True, key=True), *(Column(f"metric_number_{i}", "GB/s") for i in range(12))]
    text = printed(head, [[f"s{r}", *("12345.678" for _ in range(12))] for r in range(20)], 80)
    assert text.count("s19") == text.count("system") > 1


def test_names_too_wide_to_be_repeated_become_numbers():
    head = [Column("x" * 30, key=True), Column("y" * 30, key=True), Column("value")]
    text = printed(head, [["a" * 30, "b" * 30, str(r)] for r in range(20)], 70)
    assert text.count("row") == 2 and "a" * 30 in text


def test_headings_fold_at_their_words_before_a_table_is_parted():
    head = [Column("ways", key=True), *(Column(f"throughput_of_{n}_mrps", "Mrps") for n in ("one", "two", "six"))]
    (table,) = layout(head, [["2", "1.5", "2.5", "3.5"]] * 20, 50)
    assert str(table.columns[1].header) == "throughput_\nof_one_mrps\nMrps"


# ---- what leads -----------------------------------------------------------------------------------------------------


def test_a_run_leads_with_groups_of_about_a_dozen_figures(cli, tiny_file):
    out = cli("run", tiny_file, check=0).stdout
    groups = re.findall(r"^  (\w[\w ,]*):\s*$", out, re.M)
    assert groups == ["throughput and latency", "memory", "NIC and drops", "domains"]
    body, rest = out.split("constants: ")
    shown = [m for m in metric_info() if re.search(rf"^ +{m} ", body, re.M)]
    assert 10 <= len(shown) <= 16 and {"throughput_mrps", "lat_p99_us", "drop_rate", "mem_bw_gbs"} <= set(shown)
    constants, left = re.match(r"(.*)\n(\d+) more metrics: --all\n$", rest, re.S).groups()
    assert "channels 4" in constants and "mem_peak_gbs" in constants and "channels" not in shown
    every = cli("run", tiny_file, "--all", check=0).stdout
    assert len([m for m in metric_info() if re.search(rf"^ +{m} ", every, re.M)]) >= len(shown) + int(left)


@pytest.mark.parametrize(
    "scenario, leads, lacks",
    [
        ("quadrant3", {"c2m_gbs", "p2m_gbs", "iio_write_occ"}, {"throughput_mrps", "drops", "t0_mops"}),
        ("directed-rx", {"dram_reads_per_block", "first_read_cycles"}, {"mem_bw_gbs"}),
    ],
)
def test_what_leads_depends_on_the_scenario(cli, scenario, leads, lacks):
    out = cli("run", scenario, check=0).stdout
    assert all(re.search(rf"^ +{m} ", out, re.M) for m in leads)
    assert not any(re.search(rf"^ +{m} ", out, re.M) for m in lacks)


def test_a_sweep_picks_its_columns_by_scenario(cli):
    head = cli("sweep", "quadrant3", "--vary", "tenant.0.cores=1,2", check=0).stdout
    assert "c2m_gbs" in head and "iio_write_occ" in head and "throughput_mrps" not in head


def test_a_sweep_prints_the_metrics_asked_for(cli, tiny_file):
    out = cli("sweep", tiny_file, "--vary", "seed=1,2", "--metrics", "amat_cycles,lat_p9*", check=0).stdout
    named = [m for m in metric_info() if re.search(rf"\b{m}\b", out)]
    assert named == ["lat_p90_us", "lat_p99_us", "lat_p999_us", "amat_cycles"]
    wrong = cli("sweep", tiny_file, "--vary", "seed=1,2", "--metrics", "amat_cycle")
    assert wrong.returncode == 2 and 'there is no metric "amat_cycle"; did you mean "amat_cycles"' in wrong.stderr


def test_a_run_prints_the_metrics_asked_for_and_names_those_without_a_value(cli, tiny_file):
    done = cli("run", tiny_file, "--metrics", "amat_cycles,lat_p9*,p2m_gbs", "--metrics", "seed_*,tcp_rtt_us")
    assert done.returncode == 2 and '--metrics seed_*: there is no metric "seed_*"' in done.stderr
    done = cli("run", tiny_file, "--metrics", "amat_cycles,lat_p9*", "--metrics", "tcp_rtt_us", check=0)
    first = [line.split()[0] for line in done.stdout.splitlines() if line.split()]
    named = [word for word in first if word in metric_info()]
    assert named == ["amat_cycles", "lat_p90_us", "lat_p99_us", "lat_p999_us"]
    assert done.stderr == "hostnet: note: tcp_rtt_us has no value here.\n"
    wrong = cli("run", tiny_file, "--metrics", "amat_cycle")
    assert wrong.returncode == 2 and 'there is no metric "amat_cycle"; did you mean "amat_cycles"' in wrong.stderr
    assert cli("run", tiny_file, "--metrics", "amat_cycles", "--all").returncode == 2


def test_names_of_metrics_carry_their_units():
    """A binary unit is never written as its decimal namesake."""
    endings = {"KiB": "_kib", "MiB": "_mib", "GB/s": "_gbs", "Gb/s": "_gbps", "ns": "_ns", "us": "_us", "Mrps": "_mrps"}
    for m in metric_info().values():
        end = endings.get(m["unit"])
        assert end is None or m["name"].endswith(end), m
        assert not re.search(r"_(kb|mb|gb)$", m["name"]), m


def test_tables_of_hosts_with_more_columns_stack():
    import polars as pl

    from hostnet.results import tidy_table

    class Run:
        def __init__(self, frame):
            self.tables = {"timeline": frame}

        def table(self, name):
            return self.tables[name]

    one = Run(pl.DataFrame({"t_us": [1.0], "core0": [3]}))
    two = Run(pl.DataFrame({"t_us": [1.0], "core0": [4], "core1": [5]}))
    stacked = tidy_table("timeline", [one, two], [{"cores": 1}, {"cores": 2}])
    assert stacked.select("cores", "core0", "core1").rows() == [(1, 3, None), (2, 4, 5)]


def test_behind_a_pcie_nic_the_link_and_the_round_trip_lead():
    on_chip = {"throughput_mrps": 1.0, "rtt_median_us": 2.0, "pcie_up_util": 0.0}
    behind = {**on_chip, "pcie_up_util": 0.4, "pcie_down_util": 0.2}

    def shown(metrics):
        return {m for names in headlines.leading(metrics).values() for m in names}

    assert shown(on_chip) == {"throughput_mrps"} and shown(behind) == set(behind)
    assert "rtt_median_us" in shown({"achieved_mpps": 1.0, "rtt_median_us": 2.0})
