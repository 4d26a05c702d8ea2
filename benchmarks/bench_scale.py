"""The debugger on big recordings, in a terminal of 160 x 45: 100,000 events, and a gigabyte with an argument of 50 MB.

The recordings are made for this and removed. A keypress is painted when the terminal has been quiet for a moment after
it, so that a picture that comes in two parts counts to its end.
"""

from __future__ import annotations

import gc
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.big_recording import GIGABYTE, HUGE, write
from benchmarks.frame import Figure, timed
from benchmarks.terminal import PATIENCE, Terminal
from loopscope.settings import Choice
from loopscope.targets import open_session

_NEEDED = 3 * GIGABYTE
_KEYS = b"nNnn[]]NgGnN"
_PRESSES = 120
_SEEKS = 200


def figures() -> list[Figure]:
    """All figures; those of the gigabyte only where the disk has room for it."""
    with tempfile.TemporaryDirectory(prefix="loopscope-scale-") as folder:
        path = Path(folder) / "events.jsonl"
        write(path)
        found = [*_events(path), _seek(path)]
        path.unlink()
        if shutil.disk_usage(folder).free < _NEEDED:
            print("a gigabyte: not measured, the disk has less than 3 GB free", file=sys.stderr)
            return found
        write(path, size=GIGABYTE, huge=HUGE)
        return found + _gigabyte(path)


def _events(path: Path) -> list[Figure]:
    bare = min(_until_first([sys.executable, "-m", "benchmarks.bare_textual"], b"first screen") for _ in range(3))
    firsts = []
    for _ in range(3):
        with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
            seen.wait(b"DISTANCE TO FIRE", b"WHY ")
            firsts.append(seen.age)
    with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
        seen.wait(b"DISTANCE TO FIRE", b"WHY ")
        seen.wait(b"opened at")
        whole = seen.age
        painted = sorted(seen.press(key) for key in _presses())
        peak = seen.peak
    yardstick = f"{bare * 1e3:.0f} ms: a bare Textual app"
    return [
        _seconds("100,000 events: first screen", min(firsts), yardstick, 2.0),
        _seconds("100,000 events: all of it read", whole, yardstick, None),
        _megabytes("100,000 events: peak memory, keys pressed", peak, 300),
        _millis("100,000 events: keypress to paint, p95", _p95(painted), 100),
    ]


def _gigabyte(path: Path) -> list[Figure]:
    with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
        seen.wait(b"DISTANCE TO FIRE", b"WHY ")
        first = seen.age
        reading: list[float] = []
        mark = len(seen.drawn)
        while b"opened at" not in seen.drawn[mark:] and seen.age < PATIENCE:
            reading.append(seen.press(_KEYS[len(reading) % len(_KEYS)]))
        painted = sorted(seen.press(key) for key in _presses())
        peak = seen.peak
    return [
        _seconds("1 GB, one argument of 50 MB: first screen", first, "", 2.0),
        _megabytes("1 GB: peak memory, keys pressed", peak, 500),
        _millis("1 GB: keypress to paint while it is read, p95", _p95(sorted(reading)), 200),
        _millis("1 GB: keypress to paint, p95", _p95(painted), 100),
    ]


def _seek(path: Path) -> Figure:
    session = open_session(path, Choice.of())
    gc.collect()
    gc.freeze()  # as the debugger does when all is read
    rng = random.Random(1)  # noqa: S311 - the same batches each time

    def look(number: int) -> None:
        session.seek(number)
        _ = session.state, session.row(number), session.batch(number), session.results(number)

    times = sorted(timed(lambda: look(rng.randint(1, len(session)))) for _ in range(_SEEKS))
    return _millis(f"100,000 events: seek to any batch, worst of {_SEEKS}", times[-1], 20)


def _presses() -> bytes:
    return (_KEYS * (_PRESSES // len(_KEYS) + 1))[:_PRESSES]


def _p95(times: Sequence[float]) -> float:
    return times[int(len(times) * 0.95)] if times else 0.0


def _seconds(what: str, found: float, yardstick: str, bar: float | None) -> Figure:
    return Figure(what, f"{found:.2f} s", yardstick, "-" if bar is None else f"<= {bar} s", bar is None or found <= bar)


def _millis(what: str, found: float, bar: float) -> Figure:
    return Figure(what, f"{found * 1e3:.1f} ms", "", f"<= {bar} ms", found * 1e3 <= bar)


def _megabytes(what: str, found: float, bar: float) -> Figure:
    return Figure(what, f"{found:.0f} MB", "", f"<= {bar} MB", found <= bar)


def _until_first(command: list[str], text: bytes) -> float:
    with Terminal(command[1:]) as seen:
        seen.wait(text)
        return seen.age
