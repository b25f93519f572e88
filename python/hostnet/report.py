"""A self-contained HTML report: everything inline, nothing fetched, readable offline and on paper."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import capture, headlines, tenants
from .declared import info, metric_info, unit
from .errors import HostnetError
from .output import WAYS_OUT, add_file, files_of
from .paths import nearest
from .plots import CLASS_COLOURS, axis_label, figure_of, horizontal_bars, horizontal_stack, lines, style
from .results import fault

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Number of results beyond which a report lists them in rows, and number of lines in one plot that can still be
# distinguished. The report says what it leaves out for its size.
MOST_COLUMNS, MOST_LINES, MOST_BARS, MOST_POINTS, MOST_DETAILS = 5, 8, 40, 400, 100
#: Text for the credits of a domain without a limit.
UNLIMITED = 2**32 - 1
_SYSTEMS = {"dma": "DMA", "ddio": "DDIO", "ideal": "ideal DDIO"}


def write_report(
    source: str | Path | Sequence[Mapping[str, Any]],
    out: str | Path | None = None,
    title: str | None = None,
    *,
    replace: bool = False,
) -> Path:
    """Writes the report of `source` and returns its path.

    `source` is a directory that a run, sweep, demo or study wrote, or a list of results (objects as `Result.data`; an
    additional `label` names one). `out` defaults to `report.html` in that directory. Raises HostnetError when there is
    nothing to report, when the file cannot be written, or when `out` exists and is not a report of results that are all
    in `source`. With `replace`, any file is overwritten.
    """
    if isinstance(source, (str, Path)):
        folder = Path(source)
        out = Path(out) if out is not None else folder / "report.html"
        if (folder / "study.json").is_file():
            body, default = _study(folder)
            specs = [s["spec"] for s in _objects(folder / "specs.json", ("point", "spec"))]
        else:
            results = _load(folder)
            body, default = _results(results), f"Results in {folder.name}"
            specs = [r["spec"] for r in results]
    else:
        if out is None:
            raise HostnetError("a report of results in memory needs the name of the HTML file.")
        results = [dict(getattr(r, "data", r)) for r in source]
        body, default = _results(results), "Results"
        specs = [r["spec"] for r in results]
    out, digests = Path(out), [hashlib.sha256(json.dumps(s, sort_keys=True).encode()).hexdigest()[:16] for s in specs]
    lost = None if replace else _lost(out, digests)
    if lost is not None:
        raise HostnetError(f"{out}: {lost}; {WAYS_OUT}.")
    add_file(out, _page(title or default, body, digests))
    return out


_REPORTED = re.compile(r'<meta name="hostnet-results" content="([0-9a-f ]*)">')


def _lost(out: Path, digests: Sequence[str]) -> str | None:
    """The loss when a report of these results replaces `out`, as the end of a sentence; None when nothing is lost."""
    if not out.is_file():
        return None
    try:
        there = _REPORTED.search(out.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        there = None
    except OSError as e:
        return f"cannot be read ({e.strerror})"
    if there is None:
        return "is there and is no report of hostnet's"
    old = there[1].split()
    missing = len(set(old) - set(digests))
    many = f"{len(old):,} result{'' if len(old) == 1 else 's'}"
    return f"is a report of {many}, of which this one lacks {missing:,}" if missing else None


def _load(folder: Path) -> list[dict[str, Any]]:
    """The results that the directory's command wrote; for a directory without a command, all results in it."""
    if not folder.is_dir():
        raise HostnetError(
            f"{folder}: {'is not a directory' if folder.exists() else 'does not exist'}; give the directory "
            "that a run, sweep, study or demo wrote."
        )
    results = []
    for file in files_of(folder, "*.json"):
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(data, dict) and {"metrics", "spec", "version"} <= data.keys():
            why = fault(data)
            if why is not None:
                raise HostnetError(f"{file}: not a saved hostnet result ({why}).")
            results.append(data)
    if not results:
        raise HostnetError(f"{folder}: no results here; give the directory that a run, sweep, study or demo wrote.")
    return results


# ---- what the results are called --------------------------------------------------------------------------------


def labels(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short, unique name per result, made of the differences between their specs."""
    flat = [_flatten(r["spec"]) for r in results]
    paths = dict.fromkeys(p for f in flat for p in f)
    placement = ("placement.policy", "placement.sweep_rx", "placement.sweep_tx")
    differing = [p for p in paths if p not in ("name", "seed") and len({repr(f.get(p)) for f in flat}) > 1]
    # A seed distinguishes results that differ in no other value.
    same = [repr([f.get(p) for p in differing]) for f in flat]
    seeds = len(set(same)) < len(same) and len({f.get("seed") for f in flat}) > 1
    systems = len(results) == 1 or any(p in placement for p in differing)
    names = []
    for r, f in zip(results, flat, strict=False):
        parts = [_system(f)] if systems else []
        others = [p for p in differing if p not in placement and f.get(p) is not None]
        parts += [f"{p.split('.')[-1].replace('_', ' ')} {f[p]}" for p in others[:3]]
        parts += [f"seed {f['seed']}"] if seeds and "seed" in f else []
        names.append(r.get("label") or ", ".join(parts) or str(f.get("name", "result")))
    return [n if names.count(n) == 1 else f"{n} #{names[: i + 1].count(n)}" for i, n in enumerate(names)]


def _system(flat: Mapping[str, Any]) -> str:
    policy = str(flat.get("placement.policy", "result"))
    name = _SYSTEMS.get(policy, policy)
    return name + (" + Sweeper" if flat.get("placement.sweep_rx") else "")


def _flatten(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {
            k: v
            for key, child in value.items()
            for k, v in _flatten(child, f"{path}.{key}" if path else str(key)).items()
        }
    if isinstance(value, list):
        return {k: v for i, child in enumerate(value) for k, v in _flatten(child, f"{path}.{i}").items()}
    return {path: value}


# ---- a report of results -----------------------------------------------------------------------------------------


def _results(results: Sequence[Mapping[str, Any]]) -> str:
    if not results:
        raise HostnetError("there are no results to report.")
    names = labels(results)
    shown = _headline(results)
    every = list(dict.fromkeys(m for r in results for m in r["metrics"] if r["metrics"][m] is not None))
    of_tenants = [m for m in every if m in metric_info() and metric_info()[m]["dimension"] == "tenant"]
    by_tenant = of_tenants if any(tenants.several(r) for r in results) else []
    parts = [
        _section("Comparison", _comparison(results, names, shown + by_tenant)),
        _section("Throughput and bandwidth", _bars(results, names)),
    ]
    parts.append(_section("DRAM accesses per request, by who caused them", _breakdown(results, names)))
    parts.append(
        _section("Request latency", _cdf(results, names, "request_latency_cdf", "request latency [µs]", log=True))
    )
    far = [(r, n) for r, n in zip(results, names, strict=False) if _has_wire(r["spec"])]
    parts.append(
        _section(
            "Round trips at the load generator",
            _cdf([r for r, _ in far], [n for _, n in far], "rtt", "round trip [µs]", log=True),
        )
    )
    parts.append(
        _section("DRAM access latency", _cdf(results, names, "dram_latency_cdf", "DRAM access latency [ns]", log=False))
    )
    parts.append(_section("Over time", _timeline(results, names)))
    parts.append(_section("Captures", "".join(f"<p>{escape(str(h))}.</p>" for h in capture.distinct(results))))
    several = [(r, n) for r, n in zip(results, names, strict=True) if tenants.several(r)]
    parts.append(
        _section(
            "Tenants: what each does, and its share of the host",
            _tables([r for r, _ in several], [n for _, n in several], "tenants"),
        )
    )
    for heading, table in (
        ("Lost packets: where, why, since when", "drops"),
        ("Packets of the window", "packets"),
        ("Domains: who holds how many credits for how long", "domains"),
        ("Search for the peak", "search"),
        ("Events", "events"),
    ):
        parts.append(_section(heading, _tables(results, names, table)))
    parts.append(_section("Every metric", _details("all metrics", _comparison(results, names, every))))
    parts.append(
        _section(
            "Resolved specifications",
            "".join(_details(n, _json(r["spec"])) for n, r in zip(names[:MOST_DETAILS], results, strict=False))
            + _left_out(len(results), MOST_DETAILS, "the files beside this report hold them all"),
        )
    )
    parts.append(_section("Provenance", _provenance(results, names)))
    return "".join(parts)


def _has_wire(spec: Mapping[str, Any]) -> bool:
    """Whether packets cross a wire between generator and NIC; without a wire, a round trip is the request's latency."""
    kinds = [p.get("kind") for p in spec.get("peripheral") or ()]
    return bool((spec.get("traffic") or {}).get("link")) or "ethernet" in kinds


def _headline(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The leading metrics of these results, in the order of their groups."""
    groups: dict[str, dict[str, None]] = {}
    for r in results:
        for group, names in headlines.leading(r["metrics"]).items():
            groups.setdefault(group, {}).update(dict.fromkeys(names))
    return [m for names in groups.values() for m in names]


def _left_out(there: int, shown: int, where: str) -> str:
    """A sentence about the results that a section does not show; empty when the section shows all."""
    return f'<p class="note">{shown} of {there} results are shown here; {where}.</p>' if there > shown else ""


def _comparison(results: Sequence[Mapping[str, Any]], names: Sequence[str], metrics: Sequence[str]) -> str:
    if len(results) > MOST_COLUMNS:
        head = [
            "result",
            *(_metric(m) + (f" <small>[{escape(unit(m))}]</small>" if unit(m) else "") for m in metrics),
        ]
        return _table(
            head,
            [
                [escape(n), *(_number(r["metrics"].get(m)) for m in metrics)]
                for n, r in zip(names, results, strict=False)
            ],
        )
    rows = []
    for m in metrics:
        first, *others = (r["metrics"].get(m) for r in results)
        cells = [_number(first)] + [c for v in others for c in (_number(v), f"<small>{_change(v, first)}</small>")]
        rows.append([_metric(m), escape(unit(m)), *cells])
    to = f"<small>to {escape(names[0])}</small>"
    return _table(["metric", "unit", escape(names[0]), *(c for n in names[1:] for c in (escape(n), to))], rows)


def _change(value: float | None, base: float | None) -> str:
    """Difference of a value from the first result's value; empty where both print alike."""
    if not value or not base or (value < 0) != (base < 0):
        return ""
    ratio = value / base
    if ratio >= 10:
        return f"×{ratio:.3g}"
    if ratio <= 0.01:
        return f"÷{1 / ratio:.3g}"
    text = f"{100 * (ratio - 1):+.1f} %"
    return "" if float(text[:-2]) == 0 else text


def _bars(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    wanted = ("throughput_mrps", "net_gbs", "c2m_gbs", "p2m_gbs", "mem_bw_gbs")
    panels = {m: [r["metrics"].get(m) for r in results[:MOST_BARS]] for m in wanted}
    panels = {m: v for m, v in panels.items() if any(v)}
    if not panels:
        return ""
    drawn = _figure(
        horizontal_bars(names[:MOST_BARS], panels),
        f"Bars: {', '.join(axis_label(m) for m in panels)} of " + ", ".join(names[:MOST_BARS]),
    )
    return drawn + _left_out(len(results), MOST_BARS, "the comparison above lists all")


def _breakdown(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    there = len(results)
    results, names = results[:MOST_BARS], names[:MOST_BARS]
    classes = {c: [r["metrics"].get(c) or 0.0 for r in results] for c in CLASS_COLOURS}
    if not any(map(any, classes.values())):
        return ""
    drawn = _figure(
        horizontal_stack(names, classes),
        "Stacked bars: 64-byte DRAM transfers per request by class for " + ", ".join(names),
    )
    used = [c for c, values in classes.items() if any(values)]
    rows = [[escape(CLASS_COLOURS[c][0]), *(_number(v) for v in classes[c])] for c in used]
    numbers = _details("the numbers", _table(["64 B transfers per request", *map(escape, names)], rows))
    return drawn + numbers + _left_out(there, MOST_BARS, "the metrics acc_* below list all")


def _cdf(results: Sequence[Mapping[str, Any]], names: Sequence[str], table: str, label: str, log: bool) -> str:
    curves = {}
    for n, r in zip(names, results, strict=False):
        columns = _columns(r, table)
        if columns:
            x, y = list(columns.values())[:2]
            curves[n] = _thin([(a, b) for a, b in zip(x, y, strict=False) if not log or a > 0])
    drawn = _spread(curves)
    if not any(drawn.values()):
        return ""
    return _figure(
        lines({label: drawn}, "fraction not slower", log=log, cdf=True),
        f"Curves: cumulative distribution of {label} for " + ", ".join(drawn),
    ) + _left_out(len(curves), len(drawn), "the files beside this report hold the others")


def _spread(curves: Mapping[str, Any]) -> dict[str, Any]:
    """As many curves as can be distinguished, evenly from the first to the last."""
    names = list(curves)
    if len(names) > MOST_LINES:
        names = [names[round(i * (len(names) - 1) / (MOST_LINES - 1))] for i in range(MOST_LINES)]
    return {n: curves[n] for n in names}


def _timeline(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    there = {n: c for n, r in zip(names, results, strict=False) if (c := _columns(r, "timeline"))}
    drawn = _spread(there)
    tables = [(r.get("tables") or {}).get("timeline") or {"columns": ()} for r in results]
    units = {c["name"]: c["unit"] for t in tables for c in t["columns"]}
    for n, columns in drawn.items():
        t = columns.pop("t_us", [])
        for name, values in columns.items():
            points = [(a, b) for a, b in zip(t, values, strict=False) if b is not None]
            if len(points) > 1:
                panels.setdefault(axis_label(name, units[name]), {})[n] = _thin(points)
    if not panels:
        return ""
    return _figure(
        lines(panels, "simulated time [µs]"), f"Curves over simulated time: {', '.join(panels)} for " + ", ".join(drawn)
    ) + _left_out(len(there), len(drawn), "the files beside this report hold the others")


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    step = max(1, len(points) // MOST_POINTS)
    return points[::step] + ([points[-1]] if points and (len(points) - 1) % step else [])


def _columns(result: Mapping[str, Any], table: str) -> dict[str, list[Any]]:
    found = (result.get("tables") or {}).get(table)
    if not found or not found["rows"]:
        return {}
    return {c["name"]: [row[i] for row in found["rows"]] for i, c in enumerate(found["columns"])}


def _tables(results: Sequence[Mapping[str, Any]], names: Sequence[str], table: str) -> str:
    there = [
        (n, t) for n, r in zip(names, results, strict=False) if (t := (r.get("tables") or {}).get(table)) and t["rows"]
    ]
    out = ""
    for n, found in there[:MOST_DETAILS]:
        head = [
            escape(c["name"]) + (f" <small>[{escape(c['unit'])}]</small>" if c.get("unit") else "")
            for c in found["columns"]
        ]
        credits = [c["name"] == "credits" for c in found["columns"]]
        rows = [
            ["unlimited" if limit and v == UNLIMITED else _number(v) for v, limit in zip(row, credits)]
            for row in found["rows"]
        ]
        out += _details(f"{n}: {len(rows)} rows", _table(head, rows), opened=len(results) == 1)
    return out + _left_out(len(there), MOST_DETAILS, "the files beside this report hold them all")


def _provenance(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    head = [
        "result",
        "scenario",
        "engine",
        "seed",
        "wall time [s]",
        "simulated [µs]",
        "warm-up [µs]",
        "measurement window [µs]",
    ]
    keys = ("version", "seed", "wall_s", "sim_us", "warmup_us", "measure_us")
    rows = [
        [escape(n), escape(str(r["spec"].get("name", ""))), *(_number(r.get(k)) for k in keys)]
        for n, r in zip(names, results, strict=False)
    ]
    return _table(head, rows)


# ---- a report of a study -----------------------------------------------------------------------------------------


def _study(folder: Path) -> tuple[str, str]:
    import polars as pl

    (about,) = _objects(folder / "study.json", _ABOUT, whole=True)
    name = about["table"]
    try:
        tables = {f.stem: pl.read_parquet(f) for f in sorted(folder.glob(f"{name}*.parquet"))}
        frame = tables.pop(name)
    except (KeyError, OSError, pl.exceptions.PolarsError):
        raise HostnetError(f"{folder}: {name}.parquet is missing or cannot be read.") from None
    specs = _objects(folder / "specs.json", ("point", "spec"))
    units = about["units"]
    for m in about["metrics"]:
        # A column that the study makes of others may have no value in any row; every other column is there.
        if m not in frame.columns and (info(m) or m not in units):
            raise HostnetError(f"{folder}: {name}.parquet has no column {m!r}; {nearest(m, list(frame.columns))}")
    figure = figure_of(name, frame, tables, about["metrics"], about.get("drawn"))
    swept = [c for c in specs[0]["point"] if c in frame.columns and frame[c].count()]
    metrics = [m for m in about["metrics"] if m in frame.columns and m not in swept]

    def head(column: str) -> str:
        return escape(column) + (f" <small>[{escape(units[column])}]</small>" if units.get(column) else "")

    rows = [[_number(v) for v in row] for row in frame.select(swept + metrics).iter_rows()]
    facts = [
        ("points", about["points"]),
        ("from the cache", about["cached"]),
        ("wall time of all points [s]", about["wall_s"]),
        ("engine", about["engine"]),
        ("host", about["host"]),
        ("quick", about["quick"]),
        ("written", about["written"]),
    ]
    if "seed" in frame.columns:
        facts.append(("seeds", ", ".join(str(s) for s in frame["seed"].unique().sort())))
    for column, text in (
        ("sim_us", "simulated [µs], all points"),
        ("warmup_us", "warm-up [µs], all points"),
        ("measure_us", "measurement window [µs], all points"),
    ):
        if column in frame.columns:
            facts.append((text, frame[column].sum()))
    body = _section("Figure", _figure(figure, f"{about['title']}; the numbers are in the table below"))
    body += _section("Every point", _table([head(c) for c in swept + metrics], rows))
    body += _section(
        "Resolved specifications",
        "".join(
            _details(", ".join(f"{k} {v}" for k, v in s["point"].items() if v is not None), _json(s["spec"]))
            for s in specs[:MOST_DETAILS]
        )
        + _left_out(len(specs), MOST_DETAILS, "specs.json holds them all"),
    )
    body += _section("Provenance", _table(["", ""], [[escape(k), _number(v)] for k, v in facts]))
    return body, f"{about['system']} {about['figure']}: {about['title']}"


# Keys of `study.json` that the report uses.
_ABOUT = (
    "system",
    "figure",
    "title",
    "table",
    "metrics",
    "units",
    "points",
    "cached",
    "wall_s",
    "engine",
    "host",
    "quick",
    "written",
)


def _objects(file: Path, keys: Sequence[str], *, whole: bool = False) -> list[dict[str, Any]]:
    """The JSON objects of a file, one for the whole file or one per line, that have these keys."""
    text = _text(file)
    try:
        found = [json.loads(t) for t in ([text] if whole else text.splitlines())]
    except ValueError:
        found = []
    if not found or not all(isinstance(x, dict) and set(keys) <= x.keys() for x in found):
        raise HostnetError(f"{file}: is not as a study wrote it; run the study again.")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as e:
        raise HostnetError(f"{file}: cannot be read ({e.strerror}).") from None
    except UnicodeDecodeError:
        raise HostnetError(f"{file}: is not a text file.") from None


# ---- HTML --------------------------------------------------------------------------------------------------------

_CSS = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; }
body { max-width: 1180px; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #ccc; padding-bottom: .2rem; }
p.lead { color: #555; margin: 0 0 1rem; }
nav a { margin-right: 1rem; color: #0F5F92; }
.scroll { overflow-x: auto; max-width: 100%; background:
  linear-gradient(to right, #fff 40%, #fff0) left / 60px 100%, linear-gradient(to left, #fff 40%, #fff0) right / 60px 100%,
  linear-gradient(to right, #0003, #0000) left / 12px 100%, linear-gradient(to left, #0003, #0000) right / 12px 100%;
  background-repeat: no-repeat; background-attachment: local, local, scroll, scroll; }
.scroll:focus-visible { outline: 2px solid #0F5F92; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #e4e4e4; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
thead th { border-bottom: 2px solid #999; vertical-align: bottom; }
tbody th { font-weight: 500; }
tbody tr:hover, tbody tr:hover > :first-child { background: #f4f8fb; }
small { color: #666; font-weight: normal; }
p.note { color: #555; margin: .3rem 0; }
abbr { text-decoration: underline dotted #aaa; cursor: help; }
figure { margin: .5rem 0; }
figure svg { max-width: 100%; height: auto; }
figure svg text { font-family: system-ui, sans-serif !important; }
details { margin: .3rem 0; }
summary { cursor: pointer; color: #0F5F92; }
pre { background: #f6f6f6; border: 1px solid #e4e4e4; padding: .7rem; overflow-x: auto; font-size: .82rem; }
@media print {
  body { max-width: none; margin: 0; font-size: 11px; }
  nav { display: none; }
  @page { size: landscape; margin: 12mm; }
  .scroll { overflow: visible; background: none; }
  table { font-size: 8px; }
  th, td { white-space: normal; overflow-wrap: anywhere; padding: .1rem .2rem; position: static; }
  figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
}
"""


def _page(title: str, body: str, digests: Sequence[str]) -> str:
    headings = re.findall(r'<section id="([^"]+)"><h2>(.*?)</h2>', body)
    nav = "".join(f'<a href="#{key}">{text.split(":")[0]}</a> ' for key, text in headings)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="hostnet-results" content="{" ".join(digests)}"><style>{_CSS}</style></head>\n'
        f'<body><header><h1>{escape(title)}</h1><p class="lead">hostnet: what happens between the wire and the core</p>'
        f'<nav aria-label="Sections">{nav}</nav></header>\n<main>\n{body}</main></body></html>\n'
    )


def _section(heading: str, content: str) -> str:
    key = re.sub(r"\W+", "-", heading.lower()).strip("-")
    return f'<section id="{key}"><h2>{escape(heading)}</h2>{content}</section>\n' if content else ""


def _details(summary: str, content: str, opened: bool = False) -> str:
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{content}</details>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are HTML already."""
    top = "".join(f'<th scope="col">{c}</th>' for c in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{c}</td>" for c in row[1:]) + "</tr>" for row in rows
    )
    return f'<div class="scroll" tabindex="0" role="region" aria-label="table"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False))}</pre>"


def _number(value: Any) -> str:
    from .show import number

    return "–" if value is None else escape(number(value))


def _metric(name: str) -> str:
    found = info(name)
    return f'<abbr title="{escape(found["description"])}">{escape(name)}</abbr>' if found else escape(name)


def _figure(figure: Figure, description: str) -> str:
    """The figure as inline SVG. Identifiers get a prefix from the description, so that one page can hold several
    figures."""
    text = io.StringIO()
    with style():
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    prefix = "f" + hashlib.sha256(description.encode()).hexdigest()[:8]
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{prefix}", svg)
    return f'<figure role="img" aria-label="{escape(description)}">{svg}</figure>'
