"""The page of results: of one run, of a few side by side, or of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .. import capture, tenants
from ..declared import metric_info, unit
from ..drops import losses
from ..errors import HostnetError
from ..plots import CLASS_COLOURS, axis_label
from .charts import Chart, Curve, Piece, columns_of, grid, percentile_chart, spread, stacks, thinned
from .compare import NOISE_NOTE, comparison, every, important, leading, metric_cell, metric_head, summary
from .html import Cell, Head, Markup, details, joined, left_out, markup, section, specifications, table, value_cell
from .numbers import short
from .opening import hosts
from .sources import differences, labels
from .swept import swept_curves
from .verdict import Verdict

Data = Mapping[str, Any]

# Number of results beyond which a report lists them in rows, and numbers that keep a page readable. The report says what it
# leaves out for its size.
MOST_COLUMNS, MOST_BARS, MOST_DETAILS, MOST_SHOWN = 5, 40, 100, 15
#: Number of results whose tables a report holds, and number of numbers in a table of all results.
MOST_TABLES, MOST_CELLS, MOST_ROWS = 24, 20_000, 500
#: Credits of a domain without a limit.
UNLIMITED = 2**32 - 1


def body(results: Sequence[Data]) -> Markup:
    """All sections of a report of results."""
    if not results:
        raise HostnetError("there are no results to report.")
    names = labels(results)
    host, verdicts = hosts(results, names)
    several = [(r, n) for r, n in zip(results, names, strict=True) if tenants.several(r)]
    parts = [
        section("The host", host),
        section("What differs in the scenarios", _changed(results, names)),
        _numbers(results, names),
        section("Curves against what was swept", swept_curves(results)),
        section("Latency", _latency(results, names), "Each further nine of the percentile has the same room."),
        section("Where a request’s time goes", _paths(results, names), "Mean time of a line on its way, by segment."),
        section("DRAM accesses per request, by who caused them", _breakdown(results, names)),
        section("Over time", _timeline(results, names)),
        section("Lost packets", _drops(results, names)),
        section("Captures", joined([f"<p>{escape(str(h))}.</p>" for h in capture.distinct(results)])),
        section(
            "Tenants",
            _tables([r for r, _ in several], [n for _, n in several], "tenants"),
            "What each tenant does, and its share of the host.",
        ),
        section("Domains", _folded(results, _domains(results, names)), "Who holds how many credits for how long."),
    ]
    for heading, name in (
        ("Packets of the window", "packets"),
        ("Search for the peak", "search"),
        ("Events", "events"),
        ("Accesses of CC-NIC by object", "off_core"),
    ):
        parts.append(section(heading, _folded(results, _tables(results, names, name))))
    parts += [
        section("Every metric", _every(results, names)),
        section("What hostnet explain says", _folded(results, _explained(verdicts, names))),
        section("Resolved specifications", _folded(results, _specs(results, names))),
        section("Provenance", _folded(results, _provenance(results, names))),
    ]
    return joined(parts)


def _folded(results: Sequence[Data], content: Markup) -> Markup:
    """Content of many results, folded away so that the page stays short."""
    return details(f"of {len(results)} results", content) if content and len(results) > MOST_COLUMNS else content


# ---- numbers


def _numbers(results: Sequence[Data], names: Sequence[str]) -> Markup:
    lead = leading(results)
    by_tenant = (
        [m for m in every(results) if metric_info()[m]["dimension"] == "tenant"]
        if any(map(tenants.several, results))
        else []
    )
    if len(results) == 1:
        return section("Key figures", _tiles(results[0], lead))
    if len(results) > MOST_COLUMNS:
        return section("Comparison", _rows(results, names, lead + by_tenant, "comparison"))
    said = joined([f"<p>{markup(s)}</p>" for s in summary(results, names)])
    shown = list(dict.fromkeys(important(results) + by_tenant))
    return section("Comparison", said + comparison(results, names, shown, "comparison"), NOISE_NOTE)


def _tiles(result: Data, metrics: Sequence[str]) -> Markup:
    tiles = []
    for m in metrics:
        about = metric_info()[m]["description"]
        value, of = result["metrics"].get(m), unit(m)
        if of == "fraction" and value is not None:
            value, of = 100 * value, "%"
        tiles.append(
            f'<div class="tile" title="{escape(about)}"><b>{escape(short(value))}<small> {escape(of)}</small></b>'
            f"<span>{escape(m).replace('_', '_<wbr>')}</span><p>{escape(about)}</p></div>"
        )
    return Markup(f'<div class="tiles">{"".join(tiles)}</div>') if tiles else Markup()


def _rows(results: Sequence[Data], names: Sequence[str], metrics: Sequence[str], label: str) -> Markup:
    heads = [Head("result"), *map(metric_head, metrics)]
    most = MOST_CELLS // max(len(metrics), 1)
    rows = [[Cell(n), *(value_cell(r["metrics"].get(m)) for m in metrics)] for n, r in zip(names[:most], results)]
    return joined(
        [table(heads, rows, label), left_out(len(results), most, "the tables beside this report hold all of them")]
    )


def _changed(results: Sequence[Data], names: Sequence[str]) -> Markup:
    """The values that differ between a few scenarios; those of the platform are folded away where they are many."""
    if not 1 < len(results) <= MOST_COLUMNS:
        return Markup()
    found = differences(results)

    def made(paths: Sequence[str]) -> Markup:
        rows = [[Cell(p), *(Cell("–" if v is None else str(v), of="text") for v in found[p])] for p in paths]
        return table([Head("key"), *map(Head, names)], rows, "what differs in the scenarios")

    own = [p for p in found if not p.startswith("platform.")]
    platform = [p for p in found if p.startswith("platform.")]
    parts = [(f"{len(own)} values", own), (f"{len(platform)} values of the platform", platform)]
    return joined([made(p) if len(p) <= MOST_SHOWN else details(said, made(p)) for said, p in parts if p])


def _every(results: Sequence[Data], names: Sequence[str]) -> Markup:
    metrics = every(results)
    if len(results) == 1:
        rows = [
            [
                metric_cell(m),
                value_cell(results[0]["metrics"].get(m)),
                Cell(unit(m), of="text"),
                Cell(metric_info()[m]["group"], of="text"),
                Cell(metric_info()[m]["description"], of="text long"),
            ]
            for m in metrics
        ]
        heads = [Head("metric"), Head("value"), Head("unit"), Head("group"), Head("meaning")]
        return details(f"{len(metrics)} metrics", table(heads, rows, "every metric"))
    made = (
        _rows(results, names, metrics, "every metric")
        if len(results) > MOST_COLUMNS
        else comparison(results, names, metrics, "every metric")
    )
    return details(f"{len(metrics)} metrics", made)


# ---- curves and bars


def _latency(results: Sequence[Data], names: Sequence[str]) -> Markup:
    charts = []
    kinds = [
        ("request_latency_cdf", "Request latency [µs]", True),
        ("rtt", "Round trips at the load generator [µs]", True),
        ("dram_latency_cdf", "DRAM access latency [ns]", False),
    ]
    for name, title, log in kinds:
        of = [(n, r) for n, r in zip(names, results) if name != "rtt" or _has_wire(r["spec"])]
        cdfs = {}
        for n, r in of:
            columns = columns_of(r, name)
            if columns:
                x, y = list(columns.values())[:2]
                cdfs[n] = [(a, b) for a, b in zip(x, y) if not log or a > 0]
        shown = {n: cdfs[n] for n in spread(list(cdfs)) if cdfs[n]}
        if shown:
            charts.append((percentile_chart(title, shown, log), len(cdfs), len(shown)))
    notes = [left_out(there, shown, "the files beside this report hold the others") for _, there, shown in charts]
    return joined([grid([c for c, _, _ in charts]), *dict.fromkeys(notes)])


def _has_wire(spec: Data) -> bool:
    """Whether packets cross a wire between generator and NIC; without a wire, a round trip is the request's latency."""
    kinds = [p.get("kind") for p in spec.get("peripheral") or ()]
    return bool((spec.get("traffic") or {}).get("link")) or "ethernet" in kinds


def _timeline(results: Sequence[Data], names: Sequence[str]) -> Markup:
    there = {n: c for n, r in zip(names, results) if (c := columns_of(r, "timeline"))}
    shown = spread(list(there))
    units = {
        c["name"]: c["unit"]
        for r in results
        for c in ((r.get("tables") or {}).get("timeline") or {"columns": ()})["columns"]
    }
    panels: dict[str, list[Curve]] = {}
    for n in shown:
        t = there[n].get("t_us", [])
        for name, values in there[n].items():
            points = thinned([(a, b) for a, b in zip(t, values) if b is not None]) if name != "t_us" else []
            if len(points) > 1:
                panels.setdefault(axis_label(name, units.get(name, "")), []).append(
                    Curve(n, [a for a, _ in points], [b for _, b in points], colour=shown.index(n))
                )
    charts = [
        Chart(label, "simulated time [µs]", curves, sync="time")
        for label, curves in panels.items()
        if any(any(c.y) for c in curves)
    ]
    return (
        joined([grid(charts), left_out(len(there), len(shown), "the files beside this report hold the others")])
        if charts
        else Markup()
    )


def _breakdown(results: Sequence[Data], names: Sequence[str]) -> Markup:
    there = len(results)
    classes = [m for m in metric_info() if m.startswith("acc_") and m != "acc_total"]
    bars = {
        n: [Piece(_class_name(c), r["metrics"].get(c) or 0.0, i) for i, c in enumerate(classes)]
        for n, r in zip(names[:MOST_BARS], results[:MOST_BARS])
    }
    drawn = stacks(bars, "lines")
    if not drawn:
        return Markup()
    used = [c for c in classes if any(r["metrics"].get(c) for r in results[:MOST_BARS])]
    rows = [
        [Cell(_class_name(c)), *(value_cell(r["metrics"].get(c) or 0.0) for r in results[:MOST_BARS])] for c in used
    ]
    numbers = details(
        "the numbers",
        table([Head("64 B transfers per request"), *map(Head, names[:MOST_BARS])], rows, "DRAM accesses by class"),
    )
    return joined([drawn, numbers, left_out(there, MOST_BARS, "the metrics acc_* below list all")])


def _class_name(metric: str) -> str:
    known = CLASS_COLOURS.get(metric)
    return known[0] if known else metric.removeprefix("acc_").replace("_", " ")


_PATHS = {
    "c2m_read": "core reads",
    "c2m_write": "core write-backs",
    "p2m_read": "device reads",
    "p2m_write": "device writes",
}


def _paths(results: Sequence[Data], names: Sequence[str]) -> Markup:
    if len(results) > MOST_COLUMNS:
        return Markup()
    bars: dict[str, list[Piece]] = {}
    segments: dict[str, int] = {}
    for n, r in zip(names, results):
        columns = columns_of(r, "paths")
        for path, segment, ns in zip(columns.get("path", []), columns.get("segment", []), columns.get("mean_ns", [])):
            name = _PATHS.get(path, str(path)) + (f", {n}" if len(results) > 1 else "")
            colour = segments.setdefault(segment, len(segments))
            bars.setdefault(name, []).append(Piece(str(segment).replace("_", " "), ns or 0.0, colour))
    order = sorted(
        bars,
        key=lambda name: (
            list(_PATHS.values()).index(name.split(",")[0]) if name.split(",")[0] in _PATHS.values() else 9
        ),
    )
    return stacks({n: bars[n] for n in order if any(p.value for p in bars[n])}, "ns")


def _drops(results: Sequence[Data], names: Sequence[str]) -> Markup:
    """Lost packets by cause, and the table of them."""
    bars: dict[str, list[Piece]] = {}
    causes: dict[str, int] = {}
    for n, r in zip(names[:MOST_BARS], results[:MOST_BARS]):
        for loss in losses(r):  # type: ignore[arg-type]
            name = f"{loss.where}: {loss.why.rstrip('.')}"
            bars.setdefault(n, []).append(Piece(name, float(loss.count), causes.setdefault(name, len(causes))))
    return joined([stacks(bars, "packets"), _folded(results, _tables(results, names, "drops"))])


# ---- tables


def _domains(results: Sequence[Data], names: Sequence[str]) -> Markup:
    there = [(n, t) for n, r in zip(names, results) if (t := (r.get("tables") or {}).get("domains")) and t["rows"]]
    out = []
    for n, found in there[:MOST_TABLES]:
        columns = [c["name"] for c in found["columns"]]
        heads = [Head(c["name"], c.get("unit") or "") for c in found["columns"]]
        heads.insert(1, Head("in use"))
        rows = []
        for row in found["rows"]:
            of = dict(zip(columns, row))
            credits, held = of.get("credits"), of.get("occupancy_avg")
            limited = credits is not None and credits < UNLIMITED
            cells = [
                Cell("unlimited", float("inf")) if c == "credits" and v == UNLIMITED else value_cell(v)
                for c, v in of.items()
            ]
            cells.insert(1, _meter(held / credits if limited and credits and held is not None else None))
            rows.append(cells)
        out.append(details(f"{n}: {len(rows)} rows", table(heads, rows, f"domains of {n}"), opened=len(results) == 1))
    return joined([*out, left_out(len(there), MOST_TABLES, "the files beside this report hold them all")])


def _meter(share: float | None) -> Cell:
    if share is None:
        return Cell("", None)
    share = min(share, 1.0)
    of = "full" if share >= 0.95 else "much" if share >= 0.8 else ""
    bar = f'<span class="meter {of}"><i style="width:{100 * share:.1f}%"></i></span>{100 * share:.0f} %'
    return Cell(Markup(bar), share)


def _tables(results: Sequence[Data], names: Sequence[str], name: str) -> Markup:
    there = [(n, t) for n, r in zip(names, results) if (t := (r.get("tables") or {}).get(name)) and t["rows"]]
    out = []
    for n, found in there[:MOST_TABLES]:
        used = [i for i in range(len(found["columns"])) if any(row[i] is not None for row in found["rows"])]
        heads = [Head(found["columns"][i]["name"], found["columns"][i].get("unit") or "") for i in used]
        rows = [[value_cell(row[i]) for i in used] for row in found["rows"]]
        out.append(
            details(
                f"{n}: {len(rows)} row{'s' * (len(rows) != 1)}",
                table(heads, rows, f"{name} of {n}"),
                opened=len(results) == 1,
            )
        )
    return joined([*out, left_out(len(there), MOST_TABLES, "the files beside this report hold them all")])


# ---- words and origin


def _explained(verdicts: Sequence[Verdict], names: Sequence[str]) -> Markup:
    parts = []
    for n, v in list(zip(names, verdicts))[:MOST_DETAILS]:
        if v.more:
            words = "".join(f"<li>{escape(s)}</li>" for s in v.more)
            parts.append(details(n, f"<ul>{words}</ul>", opened=len(verdicts) == 1))
    return joined(parts)


def _specs(results: Sequence[Data], names: Sequence[str]) -> Markup:
    shown = specifications([(n, r["spec"]) for n, r in zip(names[:MOST_DETAILS], results)])
    return joined([shown, left_out(len(results), MOST_DETAILS, "the files beside this report hold them all")])


def _provenance(results: Sequence[Data], names: Sequence[str]) -> Markup:
    keys = {
        "version": "engine",
        "seed": "seed",
        "wall_s": "wall time [s]",
        "sim_us": "simulated [µs]",
        "warmup_us": "warm-up [µs]",
        "measure_us": "measurement window [µs]",
    }
    heads = [Head("result"), Head("scenario"), *map(Head, keys.values())]
    rows = [
        [Cell(n), Cell(str(r["spec"].get("name", "")), of="text"), *(_origin(r, k) for k in keys)]
        for n, r in zip(names[:MOST_ROWS], results)
    ]
    left = left_out(len(results), MOST_ROWS, "the files beside this report hold them all")
    return joined([table(heads, rows, "provenance"), left])


def _origin(result: Data, key: str) -> Cell:
    seeds = result.get("seeds")
    return Cell(f"{seeds[0]} to {seeds[-1]}", seeds[0]) if key == "seed" and seeds else value_cell(result.get(key))
