"""Figures that lead in a result, and the groups of all its metrics, as the engine declares them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .declared import Lead, MetricInfo, groups, matching, metric_info, subjects, tenant_info
from .errors import HostnetError

Metrics = Mapping[str, float | None]

#: Group of the values that follow from the scenario alone.
CONSTANTS = "constants"


def subject_of(metrics: Metrics) -> str:
    """The subject of a result, which follows from the metrics that have values."""
    marked = {m["marks"] for m in metric_info().values() if m["marks"] and metrics.get(m["name"]) is not None}
    return next((subject for subject in subjects() if subject in marked), "sizes")


def group_of(metric: str) -> str:
    """The group in which a metric stands."""
    return metric_info()[metric]["group"]


def _place(leads: Sequence[Lead], subject: str) -> Lead | None:
    return next((lead for lead in leads if lead["subject"] == subject), None)


def _leads(metric: MetricInfo, place: Lead, metrics: Metrics) -> bool:
    """Whether a metric with this place leads among these values: a part that the scenario leaves idle does not."""
    value = metrics.get(metric["name"])
    if value is None or (metric["idle_at_zero"] and not value):
        return False
    beside, unless = place["beside"], metric["unless"]
    return not (beside and not metrics.get(beside)) and not (unless and metrics.get(unless))


def leading(metrics: Metrics) -> dict[str, list[str]]:
    """The metrics that a run shows first, by group. Metrics of parts that the scenario does not use are omitted."""
    subject = subject_of(metrics)
    found: dict[str, list[tuple[int, str]]] = {g: [] for g in groups()}
    for m in metric_info().values():
        place = _place(m["run"], subject)
        if place is not None and _leads(m, place, metrics):
            found[place["under"] or m["group"]].append((place["rank"], m["name"]))
    return {g: [name for _, name in sorted(names)] for g, names in found.items() if names}


def every(metrics: Metrics) -> dict[str, list[str]]:
    """Every metric that has a value, by group; constants, and metrics about the simulation itself, come last."""
    found: dict[str, list[str]] = {g: [] for g in groups()}
    for name, m in metric_info().items():
        if metrics.get(name) is not None:
            found[m["group"]].append(name)
    return {g: names for g, names in found.items() if names}


def columns_for(results: Iterable[Metrics]) -> list[str]:
    """Columns of a table of several results: those of the subjects among them, where any result has a value."""
    results = list(results)
    wanted: dict[str, None] = {}
    for subject in dict.fromkeys(map(subject_of, results)):
        places = [(place["rank"], name) for name, m in metric_info().items() if (place := _place(m["sweep"], subject))]
        wanted.update(dict.fromkeys(name for _, name in sorted(places)))

    def used(name: str) -> bool:
        unless = metric_info()[name]["unless"]
        better = unless is not None and any(r.get(unless) for r in results)
        return not better and any(r.get(name) is not None for r in results)

    return list(filter(used, wanted))


def of_tenants() -> list[str]:
    """Columns of the table ``tenants`` that a run shows, in a width of 80 characters."""
    places = [(place["rank"], name) for name, m in tenant_info().items() if (place := _place(m["run"], "tenants"))]
    return [name for _, name in sorted(places)]


def chosen(wanted: Sequence[str]) -> list[str]:
    """The metrics named in ``--metrics``: names or patterns, separated by commas. Raises HostnetError for a name that no
    metric and no column of tenants has."""
    found: dict[str, None] = {}
    for name in (n.strip() for text in wanted for n in text.split(",")):
        try:
            found.update(dict.fromkeys(matching(name)))
        except HostnetError as e:
            raise HostnetError(f"--metrics {name or '(nothing)'}: {e}") from None
    return list(found)
