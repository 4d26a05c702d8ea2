"""The policy: everything that decides, as one frozen value, and the reading of it from plain data.

Names, defaults and rules of the thresholds are those of DeerFlow's `loop_detection:` section (snapshot 2026-09-10),
so that its YAML can be used as it is. Where a policy file came from is not known here: `loopscope.settings` finds
files and lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from loopscope.engine.parsing import INTEGERS, READERS, Limits, unknown
from loopscope.engine.sections import Budget, Cycle, OnStop, Pair, RepeatInBatch, Stagnation
from loopscope.errors import PolicyError, Problem

__all__ = ["BOUNDED", "DEFAULT", "PRESETS", "PROGRESS", "UNBOUNDED", "IdentityMode", "Limits", "Policy"]

IdentityMode: TypeAlias = Literal["salient", "full_args"]
ReadWindow: TypeAlias = Literal["buckets", "exact"]
FrequencyWindow: TypeAlias = Literal["limits", "unbounded"]
CountedIn: TypeAlias = Literal["run", "thread"]

UNBOUNDED = 1 << 62
"""The frequency window that holds whatever comes."""


class Policy(Struct, frozen=True, kw_only=True):
    """Thresholds of the detector. All are inclusive: a count that reaches one fires it.

    Build one with keywords, `Policy.parse(mapping)` or `Policy.load(path)`; change one with
    `policy.with_(hard_limit=6)`.

    Raises:
        PolicyError: with every value that breaks a rule, not only the first.
    """

    warn_threshold: int = 3
    """Equal batches in the window that warn the model."""
    hard_limit: int = 5
    """Equal batches in the window that stop the run."""
    window_size: int = 20
    """Batches of one scope that are remembered."""
    max_tracked_threads: int = 100
    """Scopes (in spite of the name) that are remembered; the least recently used goes first."""
    tool_freq_warn: int = 30
    """Calls of one tool in the frequency window that warn the model."""
    tool_freq_hard_limit: int = 50
    """Calls of one tool in the frequency window that stop the run."""
    tool_freq_overrides: dict[str, Limits] = {}
    """Other frequency limits for single tools, by tool name."""
    identity: IdentityMode = "salient"
    """Which arguments make two calls the same: the salient ones, or all of them."""
    identity_fields: dict[str, tuple[str, ...]] = {}
    """The arguments that count for single tools, by tool name."""
    read_window: ReadWindow = "buckets"
    """What makes two `read_file` calls of a path the same: the 200-line buckets of their first and last lines, or (in
    DeerFlow from 2026-09-16 on) exactly the lines that they ask for."""
    tool_freq_window: FrequencyWindow = "limits"
    """Which calls the frequency layer counts: the newest ones, as many as its largest limit asks for, or (in DeerFlow
    until July 2026) all of the scope."""
    severity_first: bool = True
    """A batch is accounted whole before it is decided. False (as in DeerFlow until 2026-09-07): a warning ends the look
    at it, so that what comes later in it is not counted and cannot stop it."""
    scope: CountedIn = "run"
    """What has one history: a run of a thread, or (as in DeerFlow until 2026-09-10) the whole thread over all runs."""
    result_aware: bool = False
    """Hard limits count only occurrences that brought nothing new."""
    cycle: Cycle = Cycle()
    """Blocks of batches that repeat."""
    error_streak: Pair = Pair()
    """Batches in a row in which every call failed."""
    stagnation: Stagnation = Stagnation()
    """Iterations in a row without progress of a witness."""
    repeat_in_batch: RepeatInBatch = RepeatInBatch()
    """One call several times in one batch."""
    budget: dict[str, Budget] = {}
    """What a scope and those below it may spend, by counter."""
    on_stop: OnStop = "strip"
    """What the middleware does to a batch that is stopped."""

    def __post_init__(self) -> None:
        settings = msgspec.structs.asdict(self)
        problems = list(_problems(settings))
        for name in _SECTIONS:
            if settings[name] is not _UNSET[name]:
                READERS[name](name, settings[name], problems)
        if problems:
            raise PolicyError(problems)

    def __hash__(self) -> int:
        # Of what differs most often, and of nothing that may hold a name which cannot be encoded.
        return hash(
            (self.warn_threshold, self.hard_limit, self.window_size, self.tool_freq_warn, self.tool_freq_hard_limit)
        )

    @property
    def frequency_window(self) -> int:
        """Calls of one scope that the frequency layer remembers: enough to reach every limit, or all of them."""
        if self.tool_freq_window == "unbounded":
            return UNBOUNDED
        highest = max((limits.hard_limit for limits in self.tool_freq_overrides.values()), default=0)
        return max(self.window_size, self.tool_freq_hard_limit, highest)

    @property
    def looks_at_results(self) -> bool:
        """Whether any layer needs the results of the calls."""
        return self.result_aware or self.error_streak.active or self.stagnation.limits.active

    def frequency_limits(self, tool: str) -> Limits:
        """The two limits of this tool: its own, else the general ones."""
        own = self.tool_freq_overrides.get(tool)
        return own if own is not None else Limits(self.tool_freq_warn, self.tool_freq_hard_limit)

    def with_(self, **changes: Any) -> Policy:
        """A copy with some fields changed; values as for `parse`.

        Raises:
            PolicyError: if a field is unknown or a value breaks a rule.
        """
        return Policy.parse(self.to_dict() | changes)

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data that `parse` takes and JSON holds: all thresholds, the other settings where set."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        for name in _SECTIONS:
            if getattr(self, name) == _UNSET[name]:
                del data[name]
        return data

    @classmethod
    def parse(cls, mapping: Mapping[str, Any]) -> Policy:
        """A policy from plain data, as a file or a recording holds it.

        Args:
            mapping: fields by name. `tool_freq_overrides` maps a tool to `{warn, hard_limit}` or to a pair. DeerFlow's
                `enabled` is accepted and left to the application that reads it.

        Raises:
            PolicyError: with every unknown name, wrong type and broken rule.
        """
        fields: dict[str, Any] = {}
        problems: list[Problem] = []
        for name, value in mapping.items():
            if name in READERS:
                fields[name] = READERS[name](name, value, problems)
            elif name != "enabled":
                problems.append(unknown(name, READERS))
        if problems:
            told = {problem.field for problem in problems}
            raise PolicyError(problems + [each for each in _problems(_UNSET | fields) if each.field not in told])
        return cls(**fields)

    @classmethod
    def recorded(cls, mapping: Mapping[str, Any]) -> Policy:
        """The policy of a recording: as `parse`, but settings that this version does not know are passed over.

        Raises:
            PolicyError: if a known setting breaks a rule.
        """
        return cls.parse({name: value for name, value in mapping.items() if name in READERS})

    @classmethod
    def load(cls, path: str) -> Policy:
        """A policy from a TOML, YAML or JSON file, or a preset's name.

        Raises:
            PolicyError: with file and line of every wrong value; also if the file cannot be read, or is malformed.
        """
        from loopscope.settings import load_policy  # noqa: PLC0415 - the layer above, reached only when a user asks

        return load_policy(path)


def _problems(settings: Mapping[str, Any]) -> Iterable[Problem]:
    """Every broken rule: whole numbers from 1, and no hard limit below its warning."""
    overrides: Mapping[str, Limits] = settings["tool_freq_overrides"]
    numbers = {name: settings[name] for name in INTEGERS}
    for tool, limits in overrides.items():
        numbers[f"tool_freq_overrides.{tool}.warn"] = limits.warn
        numbers[f"tool_freq_overrides.{tool}.hard_limit"] = limits.hard_limit
    for name, value in numbers.items():
        if type(value) is not int or value < 1:
            yield Problem(name, f"must be a whole number from 1, is {value!r:.80}")
    pairs = [("warn_threshold", "hard_limit"), ("tool_freq_warn", "tool_freq_hard_limit")]
    pairs += [(f"{base}.warn", f"{base}.hard_limit") for base in map("tool_freq_overrides.{}".format, overrides)]
    for warn, hard in pairs:
        if type(numbers[warn]) is int and type(numbers[hard]) is int and numbers[hard] < numbers[warn]:
            yield Problem(hard, f"must be at least {warn} ({numbers[warn]}), is {numbers[hard]}")


_SECTIONS = tuple(name for name in READERS if name not in INTEGERS and name != "tool_freq_overrides")
_UNSET = {
    info.name: info.default if info.default is not msgspec.NODEFAULT else {} for info in msgspec.structs.fields(Policy)
}
DEFAULT = Policy()
BOUNDED = DEFAULT.with_(
    cycle=Cycle(hash=Pair(3, 5), names=Pair(6, None)),
    error_streak=Pair(3, 5),
    stagnation=Stagnation("results", warn=3, hard_limit=5),
    repeat_in_batch=RepeatInBatch(3),
)
PROGRESS = BOUNDED.with_(result_aware=True, stagnation=Stagnation("results", warn=3))
_SNAPSHOT = DEFAULT.with_(severity_first=False, scope="thread")
PRESETS: Mapping[str, Policy] = {
    "deerflow": DEFAULT,
    "deerflow-2026-04": _SNAPSHOT.with_(tool_freq_window="unbounded"),
    "deerflow-2026-08-22": _SNAPSHOT,
    "deerflow-2026-09-16": DEFAULT.with_(read_window="exact"),
    "bounded": BOUNDED,
    "progress": PROGRESS,
}
"""Policies that are known by name; those with a date are the rules that DeerFlow had then (its pull requests 4072,
5245, 5344 and 5486 lie between them). `docs/tuning.md` has what they find in public cases."""
