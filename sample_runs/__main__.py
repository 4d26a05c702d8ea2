"""Makes recordings again, from the root of a checkout: `python -m sample_runs [NAME...]`.

Without a name all of them are made, and the index.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sample_runs.catalogue import NAMES, index, load
from sample_runs.stage.stage import make

FOLDER = Path(__file__).parent


def main(names: list[str]) -> int:
    """Write what was asked for; the exit code."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"there is no sample {unknown[0]!r}; known are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in names or NAMES:
        recording = make(load(name))
        (FOLDER / f"{name}.jsonl").write_bytes(recording)
        print(f"{name}: {len(recording.splitlines())} events, {len(recording):,} bytes")
    if not names:
        (FOLDER / "index.json").write_text(index(), "utf-8")
    return 0


sys.exit(main(sys.argv[1:]))
