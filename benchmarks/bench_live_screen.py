"""The debugger on a live process, in a terminal of 160 x 45: its first screen, and keys while much happens."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.frame import Figure, in_turns, ratio
from benchmarks.terminal import Terminal

_ROUNDS = 6
_PAST = 2_000
_RATE = 2_000
"""Events a second."""
_PRESSES = 100
_NUMBER = re.compile(rb"Inspect #(\d+)")
_PAINTED = 100.0
_KEPT_UP = 0.95


def figures() -> list[Figure]:
    """Attaching to a process that has a past, and walking through it while it goes on."""
    with _process(_PAST, 0) as running:
        whole: list[float] = []
        times = in_turns(_ROUNDS, lambda: _first(running, whole), _bare)
    what = f"attach to a process with {_PAST:,} batches behind it: first screen"
    figure = ratio(what, times, 1.5, "a bare Textual app")
    told = f"{figure.yardstick}; all {_PAST:,} batches are there at {min(whole) * 1e3:.0f} ms"
    return [figure._replace(yardstick=told), _keys()]


def _bare() -> float:
    with Terminal(["-m", "benchmarks.bare_textual"]) as seen:
        seen.wait(b"first screen")
        return seen.age


def _first(running: subprocess.Popen[str], whole: list[float]) -> float:
    """Seconds until batches, their distances and the reasons are drawn; `whole` gets those until the last batch is."""
    with Terminal(["-m", "loopscope", "attach", str(running.pid)]) as seen:
        seen.wait(b"LIVE", b"DISTANCE TO FIRE", b"3 Inspect #")
        first = seen.age
        seen.wait(b"3 Inspect #%d" % _PAST)
        whole.append(seen.age)
        return first


def _keys() -> Figure:
    """One batch back after the other, each painted when the pane shows another number."""
    with _process(0, _RATE) as running:
        with Terminal(["-m", "loopscope", "attach", str(running.pid)]) as seen:
            seen.wait(b"LIVE", b"DISTANCE TO FIRE")
            time.sleep(1)
            seen.press_for(b"h", _NUMBER)
            painted = sorted(_back(seen) * 1e3 for _ in range(_PRESSES))
        assert running.stdin is not None  # noqa: S101 - it is a pipe
        assert running.stdout is not None  # noqa: S101 - as above
        running.stdin.close()
        made = float(running.stdout.readline())
    p95 = painted[int(len(painted) * 0.95)]
    return Figure(
        f"keypress to paint at {_RATE:,} events/s, p95",
        f"{p95:.0f} ms",
        f"median {painted[len(painted) // 2]:.0f} ms; {made:,.0f} events/s came",
        f"<= {_PAINTED:.0f} ms",
        p95 <= _PAINTED and made >= _KEPT_UP * _RATE,
    )


def _back(seen: Terminal) -> float:
    at = _NUMBER.findall(seen.drawn[-1_000_000:])[-1]
    return seen.press_for(b"h", re.compile(rb"Inspect #(?!%s\b)\d" % at))


@contextlib.contextmanager
def _process(batches: int, rate: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.live_process", str(batches), str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None  # noqa: S101 - it is a pipe
        running.stdout.readline()
        try:
            yield running
        finally:
            running.kill()
