"""The command line. Every command is a thin layer over :mod:`hostnet.api`; imports are late so that help is quick."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
import typer.core

from . import complete
from .errors import HostnetError, no_text, printable

if TYPE_CHECKING:
    import polars as pl

    from . import runner
    from .parquet import ColumnInfo
    from .results import Result
    from .specs import Scenario

#: Columns of a terminal from which on help in boxes cuts no name. Help without boxes wraps on narrower ones.
BOXED = 72


class _Commands(typer.core.TyperGroup):
    """The commands, which help without boxes lists with their whole sentences."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, c.get_short_help_str(limit=200)) for name, c in self.commands.items()])


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Simulates what happens to a packet, and to everybody else's memory traffic, between the wire and the core.",
)

Given = Annotated[
    str,
    typer.Argument(
        help="A scenario's file, or a name that `hostnet scenarios` lists.", autocompletion=complete.scenario
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Worker processes; default one per core.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Workers of a Dask scheduler, such as tcp://node1:8786, in place of this machine's.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Directory for the results.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Overwrite other results that --out holds; they are refused otherwise.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change one value, such as placement.ways=4; repeatable.",
        autocompletion=complete.key,
    ),
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Replay a damaged capture as far as it can be read.")]
Platform = Annotated[
    str | None,
    typer.Option(
        "--platform", help="Another platform that the studies are made for.", autocompletion=complete.platform
    ),
]
Chosen = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        metavar="A,B,C",
        help="Metrics to print, by name or pattern such as 'lat_*'; the files hold all.",
        autocompletion=complete.metric,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer requests per point; the table says so.")]


def _say_version(wanted: bool) -> None:
    if wanted:
        from . import _core

        typer.echo(f"hostnet {_core.version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_say_version,
            help="Print the engine's version, the one in results, and exit.",
        ),
    ] = False,
) -> None:
    pass


def _scenario(name: str, changes: list[str] | None) -> Scenario:
    from .specs import Scenario, parse_assignment, parse_value

    sc = Scenario.load(name)
    for text in changes or ():
        path, value = parse_assignment(text)
        sc.set(path, parse_value(value, path))
    return sc


def _owned(
    out: Path | None,
    command: str,
    replace: bool,
    specs: Sequence[str],
    points: Sequence[Mapping[str, Any]] | None = None,
    seeds: int | None = None,
) -> AbstractContextManager[Path | None]:
    """The directory for a command's results, locked for as long as the command runs; None without ``--out``."""
    from contextlib import nullcontext

    from .cache import contents
    from .output import directory

    if out is None:
        if replace:
            raise HostnetError("--replace is about the directory that --out names; give both or neither.")
        return nullcontext()
    return directory(out, command, contents(specs, points, seeds=seeds or 1), replace=replace)


@contextmanager
def _workers(jobs: int | None, cluster: str | None) -> Iterator[runner.Jobs]:
    """Workers that run points: a number of local processes, or a cluster."""
    if cluster is None:
        yield jobs
        return
    if jobs is not None:
        raise HostnetError(f"--jobs {jobs} is for this machine, and --cluster {cluster} for others; give one of them.")
    from .cluster import connect

    with connect(cluster) as executor:
        yield executor


def _write_tables(
    folder: Path, name: str, frame: pl.DataFrame, results: Iterable[Result], about: Mapping[str, ColumnInfo]
) -> None:
    import json

    from .output import write_frame
    from .results import SEEDS, column_info

    write_frame(frame, folder / name, {**column_info(), **SEEDS, **about})
    for i, r in enumerate(results):
        (folder / f"{name}-{i:04d}.json").write_text(json.dumps(r.data) + "\n", encoding="utf-8")


def _write_intervals(
    folder: Path, name: str, results: Sequence[Result], columns: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Write the intervals of the results as a table of their own."""
    from . import intervals
    from .output import write_frame

    write_frame(intervals.frame(results, columns), folder / f"{name}-intervals", intervals.COLUMNS)


def _note_void(metrics: list[str] | None, results: Sequence[Result]) -> None:
    """Name the metrics of ``--metrics`` that have no value in any result; a pattern stands for the metrics with a
    value, and one of tenants' columns may match none."""
    from . import tenants
    from .declared import PREFIX, matching
    from .renamed import metric

    def void(name: str, result: Result) -> bool:
        if name.startswith(PREFIX):
            own = tenants.values(result.data)
            return all(own[n] is None for n in tenants.matching(matching(name), own))
        return not set("*?[") & set(name) and result.metrics.get(name) is None

    for name in (metric(n.strip()) for text in metrics or () for n in text.split(",")):
        if all(void(name, r) for r in results):
            typer.echo(f"hostnet: note: {name} has no value here.", err=True)


Seeds = Annotated[
    int | None,
    typer.Option("--seeds", metavar="N", help="Run with N seeds: means, and 95 % intervals over the runs."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="2%",
        help="Measure until the 95 % intervals are so narrow (run.precision); off for whole windows.",
    ),
]


def _share(precision: str | None) -> float | None:
    """The number that ``--precision`` stands for, such as 0.02 for 2%; 0 for "off"."""
    if precision is None:
        return None
    if precision.strip() == "off":
        return 0.0
    number, share = precision.strip().removesuffix("%"), precision.strip().endswith("%")
    try:
        value = float(number) / (100 if share else 1)
    except ValueError:
        raise HostnetError(f"--precision {precision} is no number; give one such as 2% or 0.02, or off.") from None
    if not 0 < value < 0.5:
        raise HostnetError(
            f"--precision {precision} is not above 0 and below 50%; give one such as 2% or 0.02, or off."
        )
    return value


_PRECISION = "run.precision"


def _precisely(sc: Scenario, precision: str | None, changes: list[str] | None) -> Scenario:
    """The scenario, to which ``changes`` have been made, measured until its metrics are known to ``precision``, such as 2% or
    0.02. Raises HostnetError where a change says so as well."""
    from .specs import parse_assignment

    value = _share(precision)
    if value is None:
        return sc
    for text in changes or ():
        if sc.target(parse_assignment(text)[0]) == _PRECISION:
            raise HostnetError(f"--precision {precision} and --set {text} say the same key; give one of them.")
    return sc.with_({_PRECISION: value or None})


def _check_varied(
    sc: Scenario, grid: Mapping[str, Sequence[Any]], changes: list[str] | None, precision: str | None
) -> None:
    """Raises HostnetError for an option whose value every point of a sweep replaces."""
    from .specs import parse_assignment

    varied = {sc.target(path): path for path in grid}
    given = {f"--set {text}": sc.target(parse_assignment(text)[0]) for text in changes or ()}
    given |= {} if precision is None else {f"--precision {precision}": _PRECISION}
    for option, target in given.items():
        for key, path in varied.items():
            if f"{target}.".startswith(f"{key}."):
                raise HostnetError(
                    f"{option} has no effect, as --vary {path} gives its value at every point; leave one of them out."
                )


@app.command()
def run(
    scenario: Given,
    changes: Set = None,
    out: Out = None,
    every: Annotated[bool, typer.Option("--all", help="Every metric, not only those that lead.")] = False,
    metrics: Chosen = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    pcap: Annotated[
        Path | None,
        typer.Option("--pcap", metavar="FILE", help="Capture the packets that came back to the load generator."),
    ] = None,
    lenient: Lenient = False,
    seeds: Seeds = None,
    precision: Precision = None,
    replace: Replace = False,
    quiet: Quiet = False,
) -> None:
    """Simulate one scenario and print the figures that matter for it."""
    import json

    from . import api, headlines, show, tenants

    if metrics and (every or as_json):
        raise HostnetError(f"--metrics chooses what {'--all' if every else '--json'} prints in full; give one of them.")
    wanted = headlines.chosen(metrics) if metrics else None
    sc = _scenario(scenario, changes)
    sc = _precisely(api.leniently(sc) if lenient else sc, precision, changes)
    spec = sc.resolve()
    seeds = sc._seeds if seeds is None and pcap is None else seeds
    tenants.check(wanted or (), [spec])
    with _owned(out, "run", replace, [spec], seeds=seeds) as folder:
        result = api.run(sc, quiet=quiet, pcap=pcap, seeds=seeds)
        if folder is not None:
            _write_tables(folder, "result", result.to_frame(), [result], {})
            _write_intervals(folder, "result", [result])
    if as_json:
        typer.echo(json.dumps(result.data))
    elif wanted is not None:
        show.chosen(result, wanted)
        _note_void(metrics, [result])
    else:
        show.metrics(result, every)


@app.command()
def sweep(
    scenario: Given,
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="PATH=A,B,C",
            help="Values to sweep; repeat for a grid.",
            autocompletion=complete.key,
        ),
    ],
    metrics: Chosen = None,
    changes: Set = None,
    out: Out = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    lenient: Lenient = False,
    seeds: Seeds = None,
    precision: Precision = None,
    replace: Replace = False,
    quiet: Quiet = False,
) -> None:
    """Simulate every combination of the given values and print one row per point."""
    from . import api, headlines, quantities, show, tenants
    from .progress import Progress
    from .results import tidy
    from .specs import parse_assignment, parse_value, split_values

    sc = _scenario(scenario, changes)
    sc = _precisely(api.leniently(sc) if lenient else sc, precision, changes)
    grid: dict[str, list[Any]] = {}
    for path, values in (parse_assignment(v) for v in vary):
        if path in grid:
            raise HostnetError(f"--vary {path} is given twice; list all its values in one, such as {path}=A,B,C.")
        grid[path] = [parse_value(v, path) for v in split_values(values)]
        if "" in grid[path]:
            raise HostnetError(f"--vary {path}={values}: a value is missing.")
    _check_varied(sc, grid, changes, precision)
    seeds = sc._seeds if seeds is None else seeds
    wanted = headlines.chosen(metrics) if metrics else None
    points, specs = api.sweep_specs(sc, grid, quiet=quiet)
    tenants.check(wanted or (), specs)
    with _owned(out, "sweep", replace, specs, points, seeds) as folder, _workers(jobs, cluster) as workers:
        with api.named_by_file(sc):
            results = api.run_points(specs, workers, None, Progress(quiet), seeds)
        columns = quantities.swept(points, results)
        frame, own = tenants.beside(tidy(results, columns), results, wanted or ()), tenants.described(results)
        if folder is not None:
            _write_tables(folder, "sweep", frame, results, own | quantities.described(points, results))
            _write_intervals(folder, "sweep", results, columns)
    shown = tenants.matching(wanted, own) if wanted else headlines.columns_for(r.metrics for r in results)
    units = {name: about["unit"] for name, about in own.items()}
    show.rows(frame, list(columns[0]), shown, units=units, results=results)
    _note_void(metrics, results)
    show.captures(r.data for r in results)
    show.warnings(results)
    for path in api.without_effect(points, results):
        typer.echo(f"hostnet: note: no metric depends on {path} here.", err=True)


@app.command()
def study(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="SYSTEM|FILE",
            help="Such as sweeper; or a file of your own, such as mine.toml.",
            autocompletion=complete.system,
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Argument(
            help="Such as fig5, or several: fig1*, rdma-*, tcp-*, all. Of your own file all, unless you name some.",
            autocompletion=complete.figure,
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the studies.")] = False,
    platform: Platform = None,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured", metavar="FILE", help="Mixtures of `hostnet-measure --mixtures` for real here, not new ones."
        ),
    ] = None,
    out: Out = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    quick: Quick = False,
    precision: Precision = None,
    replace: Replace = False,
    quiet: Quiet = False,
) -> None:
    """Run a published figure, or a study of your own: table (CSV, Parquet), plot and resolved specs."""
    from . import show, studies
    from .progress import Progress

    if listing or system is None:
        show.studies(studies.all_studies() if system is None else studies.of(system))
        return
    if figure is None and system.endswith(".toml"):
        figure = "all"
    if figure is None:
        found = studies.of(system)
        raise HostnetError(
            f"which figure of {system!r}, such as {found[0].figure!r}? `hostnet study --list` shows them."
        )
    several = figure == "all" or any(c in figure for c in "*?[")
    chosen = studies.matching(system, figure) if several else [studies.get(system, figure)]
    studies.check((s for s in chosen if s.file), quick=quick)
    with _workers(jobs, cluster) as workers:
        for s in chosen:
            folder = s.table if platform is None else f"{s.table}-{Path(platform).stem}"
            s = studies.on(s, platform, measured)
            where = (out or Path("results")) / folder if several or out is None else out
            done = studies.run(
                s,
                quick=quick,
                jobs=workers,
                progress=Progress(quiet),
                out=where,
                replace=replace,
                precision=_share(precision),
            )
            show.rows(done.frame, list(done.columns[0]), done.shown.metrics, title=s.title, units=done.headings())
            for sentence in done.sentences():
                typer.echo(sentence)
            typer.echo(
                f"{s.system} {s.figure}: {len(done.points)} points, "
                f"{sum(r.cached for r in done.results)} from the cache; files in {where}/"
            )


@app.command()
def scoreboard(
    claims: Annotated[list[Path] | None, typer.Option("--claims", help="Claims file; repeatable.")] = None,
    studies: Annotated[
        list[Path] | None, typer.Option("--studies", metavar="FILE", help="Studies of your own; repeatable.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="GLOB", help="Claims to check.")] = None,
    quick: Quick = False,
    precision: Precision = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write verdicts as JSON.")] = None,
    md_file: Annotated[Path | None, typer.Option("--md", help="Write the board as Markdown.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 when a claim is off.")] = False,
    first: Annotated[
        bool, typer.Option("--first", help="Keep this run as the first of its systems; never overwrites.")
    ] = False,
    show_first: Annotated[
        str | None,
        typer.Option(
            "--show-first",
            metavar="NAME",
            help="Print the kept first run of a system, or write it with --md; runs nothing.",
        ),
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            "--platform", help="Another platform that the studies are made for; with several, one column each."
        ),
    ] = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
) -> None:
    """Check claims about the studies and print expected and measured side by side."""
    from .output import check_file, check_no_input, write_text
    from .scoreboard import FIRST_PAGE_MARK, first_page
    from .scoreboard import main as board

    if show_first is not None:
        page = first_page(show_first, claims)
        if md_file is None:
            typer.echo(page, nl=False)
        else:
            check_no_input(md_file, claims or ())
            check_file(md_file, FIRST_PAGE_MARK)
            write_text(md_file, page)
        return
    with _workers(jobs, cluster) as workers:
        code = board(
            claims,
            only,
            quick,
            json_file,
            md_file,
            workers,
            strict,
            first=first,
            platforms=platform or (),
            studies=studies or (),
            precision=_share(precision),
        )
    raise typer.Exit(code)


@app.command()
def explain(
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="[RESULT]", help="A saved result (JSON) or a scenario.", autocompletion=complete.scenario
        ),
    ] = None,
    counters: Annotated[
        Path | None,
        typer.Option(
            "--counters", metavar="FILE", help="Counters of a real machine: perf stat (-x, -j, -I, plain) or PCM CSV."
        ),
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="perf|pcm", help="Print a script that records such counters.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A value of the scenario, or of the machine that was recorded, such as channels=6; repeatable.",
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long the counters were recorded.")] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--platform", metavar="NAME", help="Platform that was recorded, for clocks, channels, cores and credits."
        ),
    ] = None,
    processor: Annotated[
        str | None,
        typer.Option(
            "--processor",
            metavar="NAME",
            help="Processor that --template is for: skylake, icelake, sapphirerapids, emeraldrapids, graniterapids, zen4 or zen5.",
        ),
    ] = None,
    out: Out = None,
    write_counters: Annotated[
        Path | None,
        typer.Option(
            "--write-counters", metavar="FILE", help="Write the run's counters under the vendor's event names."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
    replace: Replace = False,
    packet: Annotated[
        str | None,
        typer.Option(
            "--packet",
            metavar="N|median|p99|slowest",
            help="Where the time of one packet of the scenario went, as a waterfall; --out also gets a picture.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Say which domain's credits hold the host back, in which regime it is, and why; or where a packet's time went."""
    from .explain import main as explain_main

    if packet is not None:
        if given is None or any(
            x is not None for x in (counters, template, seconds, machine, processor, write_counters)
        ):
            raise HostnetError("--packet is about a scenario: give its name or file, and no counters or template.")
        return _explain_packet(given, packet, changes, out, as_json, replace, quiet)

    explain_main(
        given, counters, template, changes, seconds, out, as_json, quiet, write_counters, replace, machine, processor
    )


def _explain_packet(
    given: str, packet: str, changes: list[str] | None, out: Path | None, as_json: bool, replace: bool, quiet: bool
) -> None:
    """Print the life of one packet of a scenario as a waterfall, and draw it into a directory."""
    import json

    from . import lives, waterfall

    how, n = lives.single(packet)
    if given.endswith(".json"):
        raise HostnetError(f"{given}: a result holds no lives of packets; give the scenario.")
    sc = _scenario(given, changes)
    with _owned(out, "explain-packet", replace, [sc.resolve()]) as folder:
        found = lives.follow(sc, how, n, quiet=quiet)
        (life,) = found.packets
        about = waterfall.as_dict(found, life)
        if folder is not None:
            waterfall.picture(found, life, folder / "packet")
            (folder / "packet.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(about))
    else:
        waterfall.to_terminal(found, life)


@app.command()
def trace(
    scenario: Given,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The trace, such as t.json.")],
    packets: Annotated[
        int | None, typer.Option("--packets", metavar="N", help="Packets to follow; 100 by default.")
    ] = None,
    choose: Annotated[
        str | None,
        typer.Option("--choose", metavar="first|slowest|random", help="Which packets of the measured window."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="ramulator2|dramsim3", help="Write the requests to DRAM instead, for that simulator."
        ),
    ] = None,
    changes: Set = None,
    quiet: Quiet = False,
) -> None:
    """Write the lives of packets, with requests, threads and queues, as a trace that Perfetto and Chrome open.

    With --memory, write the requests to DRAM as a trace for another simulator.
    """
    from . import lives, memory_trace
    from .output import check_file, check_no_input
    from .trace import MARK, write

    if memory is not None:
        if packets is not None or choose is not None:
            given = "--packets" if packets is not None else "--choose"
            raise HostnetError(f"--memory traces all requests to DRAM, and {given} chooses packets; give one of them.")
        memory_trace.check_format(memory)
        result = memory_trace.write(_scenario(scenario, changes), out, memory, quiet=quiet)
        typer.echo(f"{out}: requests to DRAM of {result.data['measure_us']:,.4g} us, {out.stat().st_size:,} bytes")
        return
    how, n = lives.choice(100 if packets is None else packets, choose or "first")
    sc = _scenario(scenario, changes)
    check_no_input(out, [scenario])
    check_file(out, MARK)
    found = lives.follow(sc, how, n, quiet=quiet)
    count = write(found, out)
    typer.echo(
        f"{out}: {len(found.packets):,} of {found.ended:,} packets, {count:,} events, {out.stat().st_size:,} bytes; "
        "open it in ui.perfetto.dev or chrome://tracing"
    )


@app.command()
def watch(
    scenario: Given,
    changes: Set = None,
    lenient: Lenient = False,
) -> None:
    """Simulate one scenario and show rate, latency, queues and drops while it runs."""
    from . import api, show
    from .watch import watch as watched

    sc = _scenario(scenario, changes)
    show.metrics(watched(api.leniently(sc) if lenient else sc))


@app.command()
def scenarios() -> None:
    """List the scenarios that come with hostnet."""
    from . import api, show

    show.scenario_list(api.scenarios())


@app.command()
def platforms(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show every value of one platform: a name, or a file of yours.", autocompletion=complete.platform
        ),
    ] = None,
) -> None:
    """List the hardware descriptions, or every value of one with where it comes from."""
    from . import api, show

    if name is None:
        show.platform_list(api.platforms())
    else:
        show.platform(name, api.platform(name))


@app.command()
def schema(
    key: Annotated[
        str | None,
        typer.Argument(
            help="A table or key to explain, such as traffic, tenant.app.mica, or quirks for the habits of platforms.",
            autocompletion=complete.table,
        ),
    ] = None,
    md_file: Annotated[Path | None, typer.Option("--md", help="Write the reference of all keys as Markdown.")] = None,
) -> None:
    """Print the JSON Schema of a scenario, or the keys of one of its tables with unit, default and meaning."""
    import json

    from . import reference, show
    from .output import check_file, write_text
    from .specs import schema as described

    if md_file is not None:
        if key is not None:
            raise HostnetError(f"--md writes all keys, and {key!r} names some; leave out one of them.")
        check_file(md_file, reference.KEYS_MARK)
        write_text(md_file, reference.keys_page())
    elif key is None:
        typer.echo(json.dumps(described(), indent=2))
    else:
        show.keys(key)


@app.command()
def metrics(
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="A metric, or a pattern such as 'lat_*'; of tenants' columns 'tenant.*'.",
            autocompletion=complete.metric,
        ),
    ] = None,
    md_file: Annotated[
        Path | None, typer.Option("--md", help="Write the reference of all metrics as Markdown.")
    ] = None,
) -> None:
    """List metrics with unit, group, dimension and meaning; all of them, or those that a pattern names."""
    from . import reference, show
    from .output import check_file, write_text

    if md_file is None:
        show.metric_list(reference.named(pattern))
        return
    if pattern is not None:
        raise HostnetError(f"--md writes all metrics, and {pattern!r} names some; leave out one of them.")
    check_file(md_file, reference.METRICS_MARK)
    write_text(md_file, reference.page())


@app.command()
def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...",
            help="Directory that a run, sweep or study wrote, or the file of a result; several are compared.",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The HTML file.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite a file that is no report of these results.")
    ] = False,
) -> None:
    """Make a self-contained HTML report of results, or of several side by side."""
    from .report import write_report

    typer.echo(f"report: {write_report(sources, out, replace=replace)}")


@app.command()
def export(
    results: Annotated[list[Path], typer.Argument(help="Saved results (JSON).")],
    format: Annotated[str, typer.Option("--format", metavar="openmetrics|influx", help="The format.")] = "openmetrics",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = None,
    start: Annotated[
        int, typer.Option("--start", metavar="SECONDS", help="Unix time at which the simulated window begins.")
    ] = 0,
    stretch: Annotated[
        int,
        typer.Option(
            "--stretch",
            metavar="N",
            help="Multiply times; Prometheus keeps milliseconds, so points 10 us apart need 100 or more.",
        ),
    ] = 1,
) -> None:
    """Write the time lines of results for Prometheus (OpenMetrics) or InfluxDB (line protocol)."""
    from .export import main as export_main

    text = export_main(results, format, out, start, stretch)
    if text is not None:
        typer.echo(text, nl=False)


@app.command()
def bench(
    tables: Annotated[list[Path], typer.Argument(help="CSV files of ccnic-bench or compare.py.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the plots.")] = Path("results/ccnic"),
    replace: Replace = False,
) -> None:
    """Plot what ccnic-bench measured on this machine."""
    from .bench import plot

    for path in plot(tables, out, replace=replace):
        typer.echo(path)


@app.command(epilog="docs/use/calibrate.md says what is measured, and what the values are worth.")
def calibrate(
    tables: Annotated[
        list[Path] | None,
        typer.Argument(help="CSV files of `ccnic-bench probe`, for the core-to-core latency alone."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The platform file to write.")] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="Platform whose other values are kept; by default by the processor.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and repetitions, and a short fit.")] = False,
    measured: Annotated[
        Path | None,
        typer.Option("--measured", metavar="FILE", help="Measurements of `hostnet-measure`, instead of new ones."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="FILE", help="Write the measurements to this file, as JSON.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", help="Measure again, and say what has drifted since.")
    ] = None,
    no_fit: Annotated[bool, typer.Option("--no-fit", help="Leave out the fit of queues and latencies.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure this machine and write a platform of it."""
    from .calibrate import command

    if tables:
        given = [
            n for n, v in (("--quick", quick), ("--measured", measured), ("--keep", keep), ("--check", check)) if v
        ]
        if given:
            raise HostnetError(f"{given[0]} is for measurements of this machine; leave out {tables[0]}.")
        if out is None:
            raise HostnetError("where to? Give -o FILE.toml, such as `hostnet calibrate probe.csv -o mine.toml`.")
        typer.echo(command.transfer(tables, base or "sim24", out))
        return
    for line in command.run(
        out=out, base=base, quick=quick, measured=measured, keep=keep, check=check, fitted=not no_fit, quiet=quiet
    ):
        typer.echo(line)


@app.command(epilog="`hostnet record show FILE [--json]` prints or draws a recording; see docs/use/record.md.")
def record(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM ARGUMENTS | show FILE", help="The program to run, or a recording to print."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="The recording to write.")] = None,
    pid: Annotated[int | None, typer.Option("--pid", help="Attach to a process, which goes on afterwards.")] = None,
    sockets: Annotated[
        bool, typer.Option("--sockets", help="Packets are messages of sockets; without it, bursts of DPDK.")
    ] = False,
    socket: Annotated[
        str | None,
        typer.Option("--socket", metavar="[udp:|tcp:]PORT", help="Only those of sockets with this protocol and port."),
    ] = None,
    enter: Annotated[
        str | None,
        typer.Option("--enter", metavar="SYMBOL|0xADDRESS", help="Where the work on a packet begins."),
    ] = None,
    leave: Annotated[
        str | None,
        typer.Option("--leave", metavar="SYMBOL|0xADDRESS", help="Where it ends; by default when --enter returns."),
    ] = None,
    frame: Annotated[
        str | None,
        typer.Option("--frame", metavar="ADDRESS:LENGTH", help="Registers of the frame at --enter, such as rdi:rsi."),
    ] = None,
    packets: Annotated[int, typer.Option("--packets", help="Packets to record.")] = 200,
    skip: Annotated[int, typer.Option("--skip", help="Packets to let pass first.")] = 0,
    longest: Annotated[
        int, typer.Option("--longest", metavar="INSTRUCTIONS", help="Longer work is let go natively and not recorded.")
    ] = 2_000_000,
    seconds: Annotated[float, typer.Option("--seconds", help="Time after which the recording ends.")] = 60,
    version: Annotated[
        str, typer.Option("--program-version", help="The program's version; by default that of its Debian package.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Of show: print the whole recording as JSON.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Of show: write a picture of a packet.")
    ] = None,
    packet: Annotated[
        int | None,
        typer.Option("--packet", metavar="NUMBER", help="Of show: draw this packet, rather than one of median length."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Record what a real program does for each packet, or show a recording."""
    import json

    from . import recorder

    words = words or []
    if out is None and words[:1] == ["show"]:
        if len(words) != 2:
            raise HostnetError("record show takes one recording, such as `hostnet record show mine.rec`.")
        if as_json and (svg or packet is not None):
            raise HostnetError("--json prints the whole recording; give it without --svg and --packet.")
        data = recorder.read(words[1])
        if as_json:
            typer.echo(json.dumps(data))
            return
        from . import accesses, tables
        from .output import check_file, check_no_input

        if not data["packets"]:
            raise HostnetError(f"{words[1]}: holds no packet to show; --json prints what it has.")
        number = accesses.chosen(data, packet)
        if svg is not None:
            check_no_input(svg, [words[1]])
            check_file(svg, accesses.MARK)
            accesses.to_svg(data, number, svg)
        recorder.table(data)
        accesses.to_terminal(data, number, tables.console(80))
        return
    for name, given in {"--json": as_json, "--svg": svg is not None, "--packet": packet is not None}.items():
        if given:
            raise HostnetError(f"{name} is for `hostnet record show FILE`.")
    if out is None:
        raise HostnetError("where to? Give -o FILE, such as `hostnet record -o mine.rec -- ./mine`.")
    parts = frame.split(":") if frame else None
    if parts is not None and len(parts) != 2:
        raise HostnetError(f"--frame {frame} is no pair of address and length, such as rdi:rsi.")
    options = {
        "run": words,
        "pid": pid,
        "sockets": sockets,
        "socket": socket,
        "enter": enter,
        "leave": leave,
        "frame": parts,
        "packets": packets,
        "skip": skip,
        "longest": longest,
        "seconds": seconds,
        "version": version,
    }
    done = recorder.record(options, out, quiet)
    typer.echo(f"{out}: {done:,} packet{'s' * (done != 1)}, {out.stat().st_size:,} bytes")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the report.")] = Path("results/demo"),
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Replay a memcached capture under DMA, DDIO and DDIO + Sweeper; print a table, write a report."""
    from .demo import main as demo_main

    demo_main(out, jobs, quiet)


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> None:
    """Say what is installed and what is missing: for what each part is needed, and how to get it."""
    from .doctor import main as doctor_main

    raise typer.Exit(doctor_main(as_json))


INTERRUPTED = 130  # the exit code that a shell shows after Ctrl-C, into which typer translates it


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"hostnet: warning: {message}", file=sys.stderr)


def main() -> None:
    """Entry point: mistakes end in one sentence on standard error and exit code 2, never in a traceback."""
    import warnings

    from typer.exceptions import TyperException

    warnings.showwarning = _one_line
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller; output goes nowhere
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        with suppress(AttributeError, ValueError):  # a stream that the caller has installed
            getattr(sys, name).reconfigure(errors="replace")  # a character that the encoding lacks is no reason to end
    if shutil.get_terminal_size().columns < BOXED:
        app.rich_markup_mode = None
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except typer.Exit as e:
        code = e.exit_code
    except HostnetError as e:
        code = _fail(str(e), e.exit_code)
    except TyperException as e:
        code = _fail(" ".join(e.format_message().split()), 2)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except UnicodeEncodeError as e:
        code = _fail(_of_no_text(e), 2)
    except RecursionError:
        code = _fail("a file or value is nested too deeply to be read.", 2)
    except (BrokenPipeError, SystemExit):  # the reader, such as `head`, has ended; rich and typer exit so too
        code = None
    except OSError as e:
        code = _fail(_of_the_system(e), 2)
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C from here on ends the process without a traceback
    except ValueError:  # not the main thread
        pass
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        _fail("interrupted; finished points are saved and the same command resumes.", code)
    try:
        sys.stdout.flush()
    except OSError as e:  # output that the exception left in the buffer, and which has not been reported yet
        code = _fail(_of_the_system(e), 2) if code == 0 else code
    # Output that could not be written is dropped; the interpreter would try to write it again at its end, and report an
    # error.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code or 0)


def _of_no_text(e: UnicodeEncodeError) -> str:
    """Sentence about the argument that holds what could not be encoded: bytes that are no text, which Python passes on."""
    wrong = e.object[e.start : e.end]
    words = [word for word in sys.argv[1:] if wrong in word]
    word = words[0] if words else wrong
    return f"{printable(word)}: {no_text(word)}."


def _of_the_system(e: OSError) -> str:
    if e.filename is None:
        return f"standard output: cannot be written ({e.strerror or e})"
    name = str(e.filename)
    return f"{name if len(name) <= 120 else name[:100] + '...'}: cannot be used ({e.strerror or e})"


def _fail(sentence: str, code: int) -> int:
    with suppress(OSError, ValueError):
        print(f"hostnet: {sentence if sentence.endswith(('.', '?')) else sentence + '.'}", file=sys.stderr)
    return code
