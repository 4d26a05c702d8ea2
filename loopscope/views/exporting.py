"""The limits as the text of a file, what that changes, and the command that shows it on this recording."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from loopscope.engine.policy import DEFAULT, Policy
from loopscope.export import to_python, to_toml, to_yaml
from loopscope.recording.inert import inert, inert_lines
from loopscope.session.draft import Value, changes, get
from loopscope.views.flow import wrap
from loopscope.views.model import Line, Span, Style, crop
from loopscope.views.whatif import value_text

__all__ = ["KINDS", "Export", "Kind", "body", "command", "differences", "text"]


class Kind(NamedTuple):
    """One form of a policy."""

    name: str
    file: str
    """What the file is called unless somebody says otherwise."""
    said: str


KINDS = (
    Kind("TOML", "loopscope.toml", "loopscope.toml, or [tool.loopscope] of pyproject.toml"),
    Kind("YAML", "loop_detection.yaml", "loop_detection: of DeerFlow's config.yaml"),
    Kind("Python", "limits.py", "a program's lines"),
)


class Export(NamedTuple):
    """What is to be exported, in which form, and of which run."""

    kind: Kind
    source: str
    """The recording, as a command names it."""
    file: str
    """Where it goes."""
    before: Policy
    """What decided the run."""
    after: Policy


_DEERFLOW = (
    "warn_threshold", "hard_limit", "window_size", "max_tracked_threads", "tool_freq_warn", "tool_freq_hard_limit",
    "tool_freq_overrides",
)  # fmt: skip
"""The settings that DeerFlow's section has."""


def text(kind: Kind, policy: Policy) -> str:
    """The policy in one form, as it goes into a file."""
    if kind.name == "TOML":
        return to_toml(policy)
    if kind.name == "Python":
        return to_python(policy)
    return to_yaml(_kept(kind, policy))


def _kept(kind: Kind, policy: Policy) -> Policy:
    """What of a policy this form can say."""
    if kind.name != "YAML":
        return policy
    return Policy.parse({name: policy.to_dict()[name] for name in _DEERFLOW})


def differences(before: Policy, after: Policy) -> list[str]:
    """Each setting that is another one: `hard_limit 5 → 8`, safe to draw."""
    return [
        f"{inert('.'.join(path), 80)} {value_text(get(before, path))} → {value_text(get(after, path))}"
        for path in changes(before, after)
    ]


def command(export: Export) -> str:
    """What to type to see the policy at work on this recording; not yet safe to draw."""
    run = shlex.quote(export.source)
    if export.kind.name != "Python":
        return f"loopscope replay {run} --policy {shlex.quote(export.file)}"
    after = export.after
    sets = " ".join(f"--set {shlex.quote(_set(path, get(after, path)))}" for path in changes(export.before, after))
    return f"loopscope whatif {run} {sets}" if sets else f"loopscope replay {run}"


def _set(path: Sequence[str], value: Value) -> str:
    name = ".".join(part if part.replace("_", "").isalnum() else json.dumps(part) for part in path)
    return f"{name}={json.dumps(value)}"


def body(export: Export, width: int) -> list[Line]:
    """The window: which forms there are, what changes, how to verify it, and the whole text."""
    kind = export.kind
    lines: list[Line] = [
        _tabs(kind),
        (),
        (Span("Against the limits of this run", "title"),),
        *_changed(export, width),
        (),
        (Span("Verify", "title"),),
        *_indented(inert(command(export)), width, "key"),
        (),
        *(line for written in inert_lines(text(kind, export.after).rstrip("\n")) for line in _whole(written, width)),
    ]
    return [crop(line, width) for line in lines]


def _tabs(kind: Kind) -> Line:
    tabs: list[Span] = []
    for each in KINDS:
        here = each == kind
        tabs += [Span(f"[{each.name}]" if here else f" {each.name} ", "title" if here else "dim"), Span(" ")]
    return (*tabs, Span(f"  {kind.said}", "dim"))


def _changed(export: Export, width: int) -> list[Line]:
    """What is another one than in the run, and what the form cannot say."""
    told = differences(export.before, _kept(export.kind, export.after)) or ["nothing changes"]
    lines = [line for entry in told for line in _indented(entry, width)]
    if export.kind.name == "YAML" and (lost := differences(DEFAULT, _beyond(export.after))):
        lines += _indented("DeerFlow's section cannot say this, it is left out:", width, "warn")
        lines += [line for entry in lost for line in _indented(f" {entry}", width, "dim")]
    return lines


def _whole(line: str, width: int) -> list[Line]:
    """One line of the text as it stands, what is too long for the window on further ones."""
    words = line.lstrip(" ")
    indent = line[: len(line) - len(words)]
    return [(Span(indent + piece),) for piece in wrap(words, max(1, width - len(indent)))]


def _indented(words: str, width: int, style: Style = "text") -> list[Line]:
    return [(Span(f" {piece}", style),) for piece in wrap(words, max(1, width - 1))]


def _beyond(policy: Policy) -> Policy:
    """The settings that are none of DeerFlow's, over the defaults."""
    return Policy.parse({name: value for name, value in policy.to_dict().items() if name not in _DEERFLOW})
