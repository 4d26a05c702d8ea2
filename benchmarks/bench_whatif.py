"""Other limits on a run of 10,000 batches: the whole of it decided again, and the pane that follows what one types.

In the pane a key counts until the last of what it made the program draw: the value, both strips, what differs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.big_recording import write
from benchmarks.frame import Figure, in_turns, timed
from benchmarks.terminal import Terminal
from loopscope.engine.policy import BOUNDED, DEFAULT, Policy
from loopscope.session.session import Session
from loopscope.settings import Choice
from loopscope.targets import open_session

_BATCHES = 10_000
_EVENTS = 20_600
"""As many as make a little more than those batches."""
_ROUNDS = 5
_PRESSES = 40
_QUIET = 0.35
_BAR_SECONDS, _BAR_MILLIS = 1.0, 100
_TRIED = {
    "other limits": DEFAULT.with_(hard_limit=8),
    "another identity": DEFAULT.with_(identity="full_args"),
    "all layers": BOUNDED.with_(hard_limit=8),
}


def figures() -> list[Figure]:
    """What-if by itself, and in a terminal."""
    with tempfile.TemporaryDirectory(prefix="loopscope-whatif-") as folder:
        path = Path(folder) / "run.jsonl"
        write(path, _EVENTS)
        session = open_session(path, Choice.of())
        found = [_again(session, path, name, policy) for name, policy in _TRIED.items()]
        return [*found, _typing(path, len(session))]


def _again(session: Session, path: Path, name: str, policy: Policy) -> Figure:
    """Every batch decided again, beside reading the recording."""
    times = in_turns(
        _ROUNDS,
        lambda: timed(lambda: session.whatif(policy)),
        lambda: timed(lambda: open_session(path, Choice.of())),
    )
    per = _BATCHES / len(session)
    ours, reading = (seconds * per for seconds in times)
    return Figure(
        f"10,000 batches again: {name}",
        f"{ours * 1e3:.0f} ms",
        f"{reading * 1e3:.0f} ms: reading them",
        f"<= {_BAR_SECONDS:g} s",
        ours <= _BAR_SECONDS,
    )


def _typing(path: Path, batches: int) -> Figure:
    """Arrow keys on the hard limit, never twice to a value that was tried before."""
    with Terminal(["-m", "loopscope", "attach", str(path)]) as seen:
        seen.wait(b"DISTANCE TO FIRE", b"WHY ")
        seen.press(b"t", _QUIET)
        seen.press(b"j", _QUIET)
        bare = sorted(seen.press(key, _QUIET) for key in [b"k", b"j"] * 10)
        painted = sorted(seen.press(b"\x1b[C", _QUIET) for _ in range(_PRESSES))
    if b"decisions differ" not in seen.drawn:
        print(f"the pane never told what differs: {seen.drawn[-300:]!r}", file=sys.stderr)
    p95 = painted[int(len(painted) * 0.95)]
    return Figure(
        f"What-if follows a key, {batches:,} batches, p95",
        f"{p95 * 1e3:.0f} ms (half: {painted[len(painted) // 2] * 1e3:.0f})",
        f"{bare[len(bare) // 2] * 1e3:.0f} ms: a key that changes no limit",
        f"<= {_BAR_MILLIS} ms",
        p95 * 1e3 <= _BAR_MILLIS and b"decisions differ" in seen.drawn,
    )
