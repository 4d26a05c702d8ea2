"""`make bench`: every figure beside its yardstick, its bar, and whether it is met.

Each file is measured in a process of its own, so that none pays for what another one loaded. A missed bar is told
and is no error: on a busy machine look again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.frame import Figure

_CODE = "import json; from benchmarks import {0}; print(json.dumps({0}.figures()))"


def main(names: list[str]) -> None:
    """Measure the named files, or all of them."""
    found = sorted(file.stem for file in Path(__file__).parent.glob("bench_*.py"))
    figures: list[Figure] = []
    with TemporaryDirectory() as folder:
        environment = _with_bytecode(folder)
        for name in names or found:
            print(f"measuring {name} ...", file=sys.stderr)
            done = subprocess.run(
                [sys.executable, "-c", _CODE.format(name)],
                stdout=subprocess.PIPE,
                cwd=Path(__file__).parents[1],
                env=environment,
                check=True,
            )
            figures += [Figure(*entry) for entry in json.loads(done.stdout.splitlines()[-1])]
    rows = [("what", "measured", "yardstick", "bar", ""), *((*figure[:4], _word(figure)) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"{sum(figure.met for figure in figures)} of {len(figures)} bars met")


def _with_bytecode(folder: str) -> dict[str, str]:
    """An environment in which modules are compiled once, as they are where a package is installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": folder}


def _word(figure: Figure) -> str:
    return "met" if figure.met else "MISSED"


if __name__ == "__main__":
    main(sys.argv[1:])
