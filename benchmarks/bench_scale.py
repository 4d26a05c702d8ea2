"""The debugger on big recordings, in a terminal of 160 x 45: 100,000 events, and a gigabyte with an argument of 50 MB.

The recordings are made for this and removed. A keypress is painted when the terminal has been quiet for a moment after
it, so that a picture that comes in two parts counts to its end. What it waited for a core meanwhile is not counted, and
told beside: machines are shared.
"""

from __future__ import annotations

import gc
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Self

from benchmarks.big_recording import GIGABYTE, HUGE, events, write
from benchmarks.frame import Figure, timed
from benchmarks.terminal import PATIENCE, Terminal
from loopscope.engine.events import Batch
from loopscope.settings import Choice
from loopscope.targets import open_session

_NEEDED = 3 * GIGABYTE
_KEYS = b"nNnn[]]NgGnN"
_PRESSES = 120
_SEEKS = 200
_SEEK = 20


def figures() -> list[Figure]:
    """All figures; those of the gigabyte only where the disk has room for it."""
    with tempfile.TemporaryDirectory(prefix="loopscope-scale-") as folder:
        path = Path(folder) / "events.jsonl"
        write(path)
        found = [*_events(path), _seek(path)]
        path.unlink()
        if shutil.disk_usage(folder).free < _NEEDED:
            print("a gigabyte: not measured, the disk has less than 3 GB free", file=sys.stderr)
            return [*found, *_huge(Path(folder) / "huge.jsonl")]
        write(path, size=GIGABYTE, huge=HUGE)
        return [*found, *_huge(Path(folder) / "huge.jsonl"), *_gigabyte(path)]


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
        painted = _Painted.of(seen, _presses())
        peak = seen.peak
    yardstick = f"{bare * 1e3:.0f} ms: a bare Textual app"
    return [
        _seconds("100,000 events: first screen", min(firsts), yardstick, 2.0),
        _seconds("100,000 events: all of it read", whole, yardstick, None),
        _megabytes("100,000 events: peak memory, keys pressed", peak, 300),
        painted.figure("100,000 events: keypress to paint, p95", 100),
    ]


def _gigabyte(path: Path) -> list[Figure]:
    with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
        seen.wait(b"DISTANCE TO FIRE", b"WHY ")
        first = seen.age
        reading = _Painted()
        mark = len(seen.drawn)
        while b"opened at" not in seen.drawn[mark:] and seen.age < PATIENCE:
            reading.press(seen, _KEYS[len(reading.own) % len(_KEYS)])
        painted = _Painted.of(seen, _presses())
        peak = seen.peak
    return [
        _seconds("1 GB, one argument of 50 MB: first screen", first, "", 2.0),
        _megabytes("1 GB: peak memory, keys pressed", peak, 500),
        reading.figure("1 GB: keypress to paint while it is read, p95", 200),
        painted.figure("1 GB: keypress to paint, p95", 100),
    ]


def _huge(path: Path) -> list[Figure]:
    """Onto a batch with an argument of 50 MB, away from it, and to the clipboard; the same with one of a megabyte."""
    found = []
    for size, what in ((1_000_000, "an argument of 1 MB"), (HUGE, "an argument of 50 MB")):
        write(path, count=2_000, huge=size)
        number = _number(size)
        with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
            seen.wait(b"opened at")
            _go(seen, number - 1)
            painted = _Painted.of(seen, b"nnNnNNnNNN" * 4)
            _go(seen, number)
            mark = len(seen.drawn)
            seen.press(b"y", quiet=0.3)
            sent = len(seen.drawn) - mark
            peak = seen.peak
        with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
            seen.wait(b"opened at")
            drawn = _go(seen, number, b"notes/")
        found += [
            painted.figure(f"{what}: keypress to paint around it, slowest", 200, part=1.0),
            _seconds(f"{what}: read and drawn", drawn, "", 2.0),
            Figure(f"{what}: bytes to the terminal for y", f"{sent:,}", "", "<= 500,000", sent <= 500_000),  # noqa: PLR2004
            _megabytes(f"{what}: peak memory", peak, 500),
        ]
    path.unlink()
    return found


def _go(seen: Terminal, number: int, until: bytes = b"") -> float:
    seen.press_for(b":", re.compile(b"Go to"))
    return seen.press_for(f"{number}\r".encode(), re.compile(until or b"Inspect #%d" % number))


def _number(size: int) -> int:
    """Of the batch with the large argument."""
    number = 0
    for event in events(2_000, huge=size):
        if isinstance(event, Batch):
            number += 1
            if len(str(event.calls[0].args)) >= size:
                return number
    raise AssertionError("there is none")


def _seek(path: Path) -> Figure:
    session = open_session(path, Choice.of())
    gc.collect()
    gc.freeze()  # as the debugger does when all is read
    rng = random.Random(1)  # noqa: S311 - the same batches each time

    def look(number: int) -> None:
        session.seek(number)
        _ = session.state, session.row(number), session.batch(number), session.results(number)

    spent: list[float] = []
    whole: list[float] = []
    for number in [rng.randint(1, len(session)) for _ in range(_SEEKS)]:
        start = time.thread_time()
        whole.append(timed(partial(look, number)))
        spent.append(time.thread_time() - start)
    worst = max(spent) * 1e3
    said = f"{max(whole) * 1e3:.1f} ms with waiting for a core"
    what = f"100,000 events: seek to any batch, worst of {_SEEKS}"
    return Figure(what, f"{worst:.1f} ms", said, f"<= {_SEEK} ms", worst <= _SEEK)


def _presses() -> bytes:
    return (_KEYS * (_PRESSES // len(_KEYS) + 1))[:_PRESSES]


class _Painted:
    """How long keys took until what they made the program draw was drawn."""

    def __init__(self) -> None:
        self.own: list[float] = []
        """Without what the program waited for a core."""
        self.whole: list[float] = []

    @classmethod
    def of(cls, seen: Terminal, keys: bytes) -> Self:
        found = cls()
        for key in keys:
            found.press(seen, key)
        return found

    def press(self, seen: Terminal, key: int) -> None:
        took = seen.press(key)
        self.whole.append(took)
        self.own.append(max(min(took, seen.busy), took - seen.held))

    def figure(self, what: str, bar: float, part: float = 0.95) -> Figure:
        """The time that this part of the keys did not exceed, in milliseconds."""
        own, whole = (_quantile(times, part) * 1e3 for times in (self.own, self.whole))
        said = f"{whole:.0f} ms with waiting for a core" if whole - own > 1 else ""
        return Figure(what, f"{own:.1f} ms", said, f"<= {bar} ms", own <= bar)


def _quantile(times: Sequence[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] if times else 0.0


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
