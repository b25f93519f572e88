"""References made of the engine's declarations: the pages docs/use/metrics.md and docs/use/keys.md."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .declared import PREFIX, MetricInfo, groups, matching, metric_info, tenant_info

#: First lines of the pages, by which a later one knows its own.
METRICS_MARK, KEYS_MARK = "# Metrics\n\nLook up here", "# Keys of a scenario\n"

_BEGIN = """\
# Metrics

Look up here what each number of a result means, in what unit and of what part of the host. `hostnet metrics 'lat_*'` prints the
same on the terminal. The page is made of the declarations in `crates/hostnet/src/meter`, which a test compares with it.

A result has a value for each metric that has a meaning for its scenario. `hostnet run SCENARIO --all` prints them by group,
`--metrics A,'lat_*'` prints some, and tables of sweeps and studies have a column for each.

| dimension | what one value describes |
|---|---|
| host | the host as a whole |
| tenant | one tenant; the table `tenants` has a row for each |
| node | the two nodes and the links between them |
| port | PCIe ports and the devices behind them, taken together |
| domain | a kind of credit domain, taken together; the table `domains` has a row for each domain |
"""
_TENANTS = """
## Tenants

Each column of the table `tenants` has a value for each tenant. A column with a unit is also called `tenant.NAME.COLUMN`, in
`--metrics`, in frames and studies, in SQL (in double quotes) and as `result["tenant.NAME.COLUMN"]`. Metrics such as `t0_mops` are
aliases of columns of the first two tenants.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [_BEGIN]
    for group in groups():
        there = [m for m in metric_info().values() if m["group"] == group]
        if there:
            parts.append(f"\n## {group[0].upper()}{group[1:]}\n\n{_table('metric', there)}")
    parts.append(f"{_TENANTS}\n{_table('column', tenant_info().values())}")
    return "".join(parts)


def named(pattern: str | None) -> list[MetricInfo]:
    """The metrics that a name or a pattern stands for, or all of them. Raises HostnetError when there are none."""
    if pattern is None:
        return list(metric_info().values())
    if not pattern.startswith(PREFIX):
        return [metric_info()[name] for name in matching(pattern)]
    column = pattern.rpartition(".")[2]
    if column != "*":
        matching(f"{PREFIX}*.{column}")
    return [m for name, m in tenant_info().items() if fnmatchcase(name, column)]


def _table(what: str, declared: Iterable[MetricInfo]) -> str:
    rows = [f"| `{m['name']}` | {m['unit']} | {m['dimension']} | {meaning(m)} |\n" for m in declared]
    return f"| {what} | unit | dimension | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def meaning(m: MetricInfo) -> str:
    """The meaning of a metric, and the column of a tenant of which it is an alias."""
    if m["alias"] is None:
        return m["description"]
    column, tenant = m["alias"]
    return f"{m['description']}: alias of `{column}` in row {tenant} of the table `tenants`"


_KEYS = """\
# Keys of a scenario

Look up here every key that a scenario may have, with the values that it takes, its default and its meaning. `hostnet schema traffic`
prints the same for one table. The page is made of the engine's schema, which a test compares with it; `hostnet schema` without a name
prints the schema as JSON Schema.

- A key in a text is a path, such as `traffic.rate`, which `--set` and `--vary` take; `tenant.0.cores` counts tenants from 0.
- A quantity is a text with its unit, such as `"15 us"`, of which the column *takes* has an example. A number without a unit is in the
  unit that its meaning names.
- A key without a default is required, or its meaning says what its absence means.
- A table `tenant.app.mica` has the keys of `tenant.app` where `kind = "mica"`.
- The habits of single machines and simulators stand [by themselves](#quirks), in tables `quirks`.
- The tables under `override` are those of a platform's file; a scenario writes the values that differ from its platform.
"""

_QUIRKS = """
## Quirks

The tables `quirks` hold the habits of single processors, simulators, drivers and prototypes. A platform's file sets them, and a
scenario leaves them alone. Where a table has a key `preset`, a name such as `"gem5"` stands for the values of many of its keys, and
single keys override them: `[override.caches.llc.quirks]` with `preset = "zsim"` and `upgrade_miss = "fetch"`. `hostnet schema
quirks` prints these tables.
"""


def keys_page() -> str:
    """The reference of all keys of a scenario as Markdown."""
    from .keys import distinct, is_quirk

    met: list[str] = [_KEYS]
    quirks: list[str] = [_QUIRKS]
    for path, cells, first in distinct():
        text = "| key | takes | default | meaning |\n|---|---|---|---|\n" + "".join(
            f"| `{key}` | {_escaped(takes)} | {_escaped(default)} | {_escaped(about)} |\n"
            for key, takes, default, about in cells
        )
        if first != path:
            text = f"The keys are those of [`{first}`](#{first.replace('.', '')}).\n"
        parts = quirks if is_quirk(path) else met
        parts.append(f"\n## {f'`{path}`' if path else 'Scenario'}\n\n{text}")
    return "".join(met + quirks)


def _escaped(text: str) -> str:
    """A text as a cell of a table shows it."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
