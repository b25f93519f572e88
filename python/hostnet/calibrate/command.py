"""The command `hostnet calibrate`: what it asks for, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ..errors import HostnetError
from ..output import check_file, check_no_input, write_text
from .drift import drifts, sources_of
from .hierarchy import notes
from .machine import Here, choose_base, here, write_here
from .measured import Measured, measure, read
from .page import MARK as PAGE_MARK
from .page import residuals, write_page
from .transfer import MARK, platform_tables, write_platform

#: First characters of kept measurements, of this command and of `hostnet-measure`.
_KEPT = ('{\n "format"', '{\n  "format"')
#: Generations of the fit.
_FULL, _QUICK = 20, 6


def transfer(tables: list[Path], base: str, out: Path) -> str:
    """Writes the platform whose core-to-core latency `ccnic-bench` measured; returns the sentence to print."""
    c = write_platform(tables, base, out)
    return (
        f"{out}: caches.noc_cycles = {c.noc_cycles} ({c.base}: {c.was}); a load of a line modified in another "
        f"core takes {c.modelled_ns:.1f} ns, measured {c.transfer_ns:.1f} ns "
        f"(median of {c.samples}, spread {c.spread_ns:.1f} ns)"
    )


def run(
    *,
    out: Path | None,
    base: str | None,
    quick: bool,
    measured: Path | None,
    keep: Path | None,
    check: Path | None,
    fitted: bool,
    quiet: bool,
) -> Iterator[str]:
    """Measures, and writes a platform or says what has drifted; yields the lines to print."""
    if out is None and check is None and keep is None:
        raise HostnetError("where to? Give -o FILE.toml, such as `hostnet calibrate -o here.toml`.")
    if out is not None:
        if check is not None:
            raise HostnetError("--check compares with a platform, and -o writes one; give one of them.")
        if out.suffix != ".toml":
            raise HostnetError(f"--out {out}: a platform is a .toml file; name it {out.with_suffix('.toml')}.")
        check_file(out, MARK)
        check_file(out.with_suffix(".html"), PAGE_MARK)
    if base is not None:
        platform_tables(base)
    if check is not None:
        sources_of(check, "--check")
    if keep is not None:
        check_file(keep, *_KEPT)
        check_no_input(keep, [p for p in (measured, check) if p is not None])
    m = read(measured) if measured is not None else measure(quick, quiet)
    if keep is not None:
        write_text(keep, json.dumps(dict(m.data), indent=1) + "\n")
        yield f"{keep}: the measurements"
    if check is not None:
        yield from _compared(check, m)
    if out is not None:
        yield from _written(out, m, base, (_QUICK if quick else _FULL) if fitted else None, quiet)


def _compared(path: Path, m: Measured) -> Iterator[str]:
    found = drifts(path, m)
    for d in found:
        said = "drifted" if d.drifted else "as it was"
        yield (
            f"{d.what}: {d.now.median:.4g} {d.unit}, was {d.then.median:.4g} ({d.then.low:.4g} to {d.then.high:.4g}): {said}"
        )
    yield from notes(m)
    changed = [d.what for d in found if d.drifted]
    yield f"{path}: {len(changed)} of {len(found)} figures drifted beyond their spread" + (
        f": {', '.join(changed)}; write the platform anew." if changed else "."
    )


def _written(out: Path, m: Measured, base: str | None, generations: int | None, quiet: bool) -> Iterator[str]:
    chosen, why = (base, "as --base says") if base is not None else choose_base(m)
    yield f"base: {chosen}, {why}"
    if generations is not None:
        yield f"fitting to {len(m.points())} points, which may take an hour; after a stop, --keep and --measured spare new measurements"
    made = here(m, chosen, out.stem, generations=generations, quiet=quiet)
    write_here(made, out)
    write_page(made, out.with_suffix(".html"))
    yield from (f"{level}: {figure.text('ns')}" for level, figure in made.levels.items())
    yield from _residual_lines(made)
    yield from made.notes
    counts = ", ".join(f"{made.count(kind)} {kind}" for kind in ("measured", "read", "fitted", "base"))
    shown = "the measured curves" if made.fit is None else "measured and simulated curves"
    yield f"{out}: {counts}; {out.with_suffix('.html')} shows {shown}"


def _residual_lines(made: Here) -> Iterator[str]:
    fit = made.fit
    if fit is None:
        yield "no fit: queues, prefetcher and static latency are the base's"
        return
    for name, value in residuals(fit.points, fit.simulated).items():
        yield f"{name}: residual {value:.1%}"
    if fit.fitted:
        yield "fitted: " + ", ".join(f"{key} = {value:g}" for key, value in fit.fitted.items())
    if fit.untold:
        yield "the curves do not tell, so that the base's value is kept: " + ", ".join(fit.untold)
