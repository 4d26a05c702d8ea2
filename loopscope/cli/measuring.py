"""Measuring recordings under policies: in this process, in others beside it, or on a cluster.

A piece of work is a recording, so that a worker reads its file itself and sends back numbers alone; or some of the
policies over a recording, where each has to be folded. Who schedules the pieces is joblib's business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache
from itertools import groupby
from socket import create_connection
from typing import Any, NamedTuple

from loopscope.engine.policy import PRESETS, Policy
from loopscope.errors import LoopscopeError, MissingExtraError, NoRecordingError, UsageError
from loopscope.session.grid import Grid
from loopscope.session.sweep import Outcome, counts_alone

__all__ = [
    "CLUSTERS", "INSTEAD", "Measured", "Piece", "Plan", "jobs_for", "measure", "measure_all", "on_cluster", "pieces",
    "whole",
]  # fmt: skip

CLUSTERS = ("dask", "ray")
INSTEAD = ("bounded", "progress")
"""Presets that are measured beside a grid: what to advise where no setting of the grid will do."""
_WORTH = 20_000_000
"""Bytes to be decided from which on other processes are worth their start."""
_LEAST_FOLDS = 40
"""Policies that are worth reading a recording once more for."""


class Plan(NamedTuple):
    """What each recording is measured under."""

    base: Policy
    grid: Grid | None = None
    policies: tuple[Policy, ...] = ()
    """Where there is no grid."""


class Measured(NamedTuple):
    """What each policy does to one recording, or why that is not known."""

    target: str
    batches: int = 0
    outcomes: Sequence[Outcome] = ()
    instead: Sequence[Outcome] = ()
    """Of the presets in `INSTEAD`."""
    problem: str = ""
    code: int = 0
    """The exit code that the problem asks for."""
    foreign: bool = False
    """It is no recording at all."""
    skipped: int = 0
    """Lines of which something could not be read."""


@lru_cache(maxsize=2)
def _policies(plan: Plan) -> tuple[Policy, ...]:
    """Once a worker, not once a recording."""
    if plan.grid is None:
        return plan.policies
    return tuple(cell.policy for cell in plan.grid.cells(plan.base))


class Piece(NamedTuple):
    """A recording, and which of the plan's policies to decide it under."""

    target: str
    first: int = 0
    end: int | None = None


def measure(piece: Piece, plan: Plan, channel: str | None = None) -> Measured:
    """Decide one recording under policies of a plan; what goes wrong is told in the result."""
    from loopscope.session.tune import outcomes
    from loopscope.settings import Choice, Settings
    from loopscope.targets import open_session

    target = piece.target
    try:
        session = open_session(target, Choice(Settings(plan.base), fixed=True), channel)
        instead = [] if plan.grid is None or piece.first else [PRESETS[name] for name in INSTEAD]
        wanted = _policies(plan)[piece.first : piece.end]
        found = outcomes(session.timeline, [*wanted, *instead], session)
    except LoopscopeError as error:
        foreign = isinstance(error, NoRecordingError)
        return Measured(target, problem=str(error), code=error.exit_code, foreign=foreign)
    last = len(wanted)
    return Measured(target, len(session), found[:last], found[last:], skipped=len(session.problems))


def pieces(targets: Sequence[str], plan: Plan) -> list[Piece]:
    """The work in pieces: a recording each, or several where many policies have to be folded over much of it."""
    folds = _folds(plan)
    many = len(_policies(plan))
    found: list[Piece] = []
    for target in targets:
        step = max(_LEAST_FOLDS, _WORTH // max(1, _size(target))) if folds > _LEAST_FOLDS else many
        found += [Piece(target, first, first + step) for first in range(0, max(1, many), max(1, step))]
    return found


def jobs_for(work: Sequence[Piece], plan: Plan) -> int:
    """How many processes are worth it: one where the work is done before others have started."""
    size = sum(_size(target) for target in {piece.target for piece in work})
    return 1 if size * max(1, _folds(plan)) < _WORTH or len(work) == 1 else -1


def _folds(plan: Plan) -> int:
    """How many of the policies look-ups do not do for."""
    return sum(not counts_alone(policy) for policy in _policies(plan))


def _size(target: str) -> int:
    return os.stat(target).st_size if os.path.isfile(target) else 0  # noqa: PTH113, PTH116 - a name of any kind


def measure_all(
    work: Sequence[Piece], plan: Plan, channel: str | None, jobs: int, *, cluster: bool = False
) -> Iterator[Measured]:
    """Each piece, in order, as it is done.

    Args:
        work: recordings and policies.
        plan: what the policies are.
        channel: of checkpoint files.
        jobs: processes; 1 is this one, -1 as many as there are cores.
        cluster: leave the number to the cluster that joblib is set to.
    """
    if jobs == 1 and not cluster:
        yield from (measure(piece, plan, channel) for piece in work)
        return
    import joblib

    backend: Any = joblib.parallel.get_active_backend()[0]
    return_as = "generator" if backend.supports_return_generator else "list"
    parallel: Any = joblib.Parallel(n_jobs=-1 if cluster else jobs, return_as=return_as)
    yield from parallel(joblib.delayed(measure)(piece, plan, channel) for piece in work)


def whole(parts: Iterable[Measured]) -> Iterator[Measured]:
    """The recordings of which these are the pieces, in order."""
    for _, group in groupby(parts, key=lambda part: part.target):
        first, *others = group
        found = [outcome for part in (first, *others) for outcome in part.outcomes]
        yield first._replace(outcomes=found) if others else first


def on_cluster(name: str) -> AbstractContextManager[Any]:
    """Within it, joblib's work goes to a cluster.

    Args:
        name: `dask` starts workers here, `dask=ADDRESS` takes those of a scheduler; and so with `ray`.

    Raises:
        UsageError: if there is no such kind of cluster, or no answer at its address.
        MissingExtraError: if its package is not installed.
    """
    kind, _, address = name.partition("=")
    if kind not in CLUSTERS:
        raise UsageError(f"--cluster {name}: must be {' or '.join(CLUSTERS)}, with =ADDRESS where one runs already")
    try:
        _reach(address)
        return _KINDS[kind](address or None)
    except ImportError:
        extra = "loopscope[cluster]" if kind == "dask" else "ray"
        raise MissingExtraError(f"--cluster {kind} needs another package: pip install '{extra}'") from None
    except (OSError, OverflowError) as error:
        raise UsageError(f"--cluster {name}: no answer there: {error}") from None


def _reach(address: str) -> None:
    """Whether anybody listens there: clusters' own clients look for a scheduler for minutes."""
    place = _PLACE.fullmatch(address)
    if place is not None:
        create_connection((place[1], int(place[2])), _PATIENCE).close()


def _dask(address: str | None) -> AbstractContextManager[Any]:
    from distributed import Client
    from joblib import parallel_config

    with ExitStack() as stack:
        options = {"timeout": _PATIENCE} if address else {"dashboard_address": None}
        stack.enter_context(Client(address, **options))  # type: ignore[no-untyped-call]
        stack.enter_context(parallel_config("dask"))
        return stack.pop_all()


def _ray(address: str | None) -> AbstractContextManager[Any]:
    import ray  # pyright: ignore[reportMissingImports]
    from joblib import parallel_config
    from ray.util.joblib import register_ray  # pyright: ignore[reportMissingImports]

    try:
        ray.init(address=address, logging_level="ERROR")
    except Exception as error:  # Ray has no error of its own for this
        raise OSError(str(error).partition("\n")[0]) from error
    register_ray()
    config: AbstractContextManager[Any] = parallel_config("ray")
    return config


_KINDS: dict[str, Callable[[str | None], AbstractContextManager[Any]]] = {"dask": _dask, "ray": _ray}
_PLACE = re.compile(r"(?:(?:tcp|ray)://)?\[?([^\[\]/]+?)\]?:(\d{1,5})")
_PATIENCE = 10
"""Seconds that a scheduler may take to answer."""
