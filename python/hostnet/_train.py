"""Training run that the compiler profiles for `make pgo`: every scenario that comes with hostnet, run once.

Started by `maturin --pgo` (`pgo-command` in pyproject.toml) with a module that counts branches and calls.
"""

from __future__ import annotations

from . import _core
from .paths import SCENARIOS, search_dirs


def main() -> None:
    """Run each shipped scenario in this process; results are not kept."""
    for file in sorted(SCENARIOS.glob("*.toml")):
        print(f"  {file.stem}", flush=True)
        _core.run(_core.resolve(file.read_text(encoding="utf-8"), str(file), search_dirs(file)))


if __name__ == "__main__":
    main()
