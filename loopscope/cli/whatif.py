"""`loopscope whatif`: a run under other limits, batch by batch, decided by the engine that runs in production."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loopscope.cli.options import channel_option, complete_policy, json_option, target_argument
from loopscope.errors import UsageError

if TYPE_CHECKING:
    from loopscope.engine.decision import Decision
    from loopscope.engine.policy import Policy
    from loopscope.session.session import Session
    from loopscope.session.whatif import Difference, Side

__all__ = ["command"]

_WIDTH = 34
_SHOWN = 200


class _Named(NamedTuple):
    """One override and what it is called."""

    name: str
    policy: Policy
    difference: Difference


@click.command()
@target_argument()
@click.option(
    "--policy",
    "policies",
    metavar="FILE|PRESET",
    multiple=True,
    shell_complete=complete_policy,
    help="An override; repeat it to compare some.",
)
@click.option(
    "--set", "sets", metavar="KEY=VALUE", multiple=True, help="One limit, laid over each override; repeatable."
)
@channel_option
@json_option("Print one JSON object: the baseline, and for each override its policy, totals and differing batches.")
def command(
    target: str, policies: tuple[str, ...], sets: tuple[str, ...], channel: str | None, *, as_json: bool
) -> None:
    """Show what TARGET (a recording, a checkpoint file, sample:NAME, or - for stdin) would have met under other limits.

    The baseline is the recording's own policy, else the project's; without --policy, --set is laid over it.
    """
    from loopscope.cli.output import report
    from loopscope.settings import Choice
    from loopscope.targets import open_session

    if not policies and not sets:
        raise UsageError("whatif: name what to change, for example --set hard_limit=8 or --policy progress")
    session = open_session(target, Choice.of(project=Path.cwd()), channel)
    report(session.source, session.problems)
    overrides = [_named(session, name, policy) for name, policy in _overrides(session, policies, sets)]
    if as_json:
        click.echo(json.dumps({"source": session.source, "batches": len(session)} | _data(overrides)))
    else:
        _table(session, overrides)


def _overrides(session: Session, policies: tuple[str, ...], sets: tuple[str, ...]) -> list[tuple[str, Policy]]:
    """Each override with its name: the files or presets as they are called, or the limits that are changed."""
    from loopscope.settings import Choice

    flags = " ".join(sets)
    if policies:
        names = [f"{name} {flags}".strip() for name in policies]
        return [(label, Choice.of(name, sets).settings.policy) for label, name in zip(names, policies, strict=True)]
    baseline = session.timeline.policies[0] if session.timeline.policies else session.timeline.detector.policy
    return [(flags, Choice.of(None, sets).over(baseline.to_dict()).policy)]


def _named(session: Session, name: str, policy: Policy) -> _Named:
    return _Named(name, policy, session.whatif(policy))


def _data(overrides: list[_Named]) -> dict[str, Any]:
    from msgspec import to_builtins

    def entry(named: _Named) -> dict[str, Any]:
        data: dict[str, Any] = to_builtins(named.difference)
        del data["baseline"]
        data |= {"name": named.name, "policy": named.policy.to_dict()}
        return data | {"first_difference": named.difference.first, "notes": named.difference.notes()}

    return {
        "baseline": to_builtins(overrides[0].difference.baseline),
        "overrides": [entry(named) for named in overrides],
    }


def _table(session: Session, overrides: list[_Named]) -> None:
    from loopscope.recording.inert import inert

    click.echo(inert(f"{session.source}: {len(session)} batches"))
    click.echo(
        f"{'':>8}{'baseline':{_WIDTH}}" + "".join(f"{inert(named.name, _WIDTH - 2):{_WIDTH}}" for named in overrides)
    )
    numbers = sorted({differs.batch for named in overrides for differs in named.difference.differing})
    verdicts = [{d.batch: d.override for d in named.difference.differing} for named in overrides]
    for number in numbers[:_SHOWN]:
        baseline = session.timeline.verdict(number)
        cells = [_verdict(baseline), *(_verdict(found.get(number, baseline)) for found in verdicts)]
        click.echo(f"{number:>6}  " + "".join(f"{inert(cell, _WIDTH - 2):{_WIDTH}}" for cell in cells).rstrip())
    if len(numbers) > _SHOWN:
        click.echo(f"        and {len(numbers) - _SHOWN} more; --json has all of them")
    sides = [overrides[0].difference.baseline, *(named.difference.override for named in overrides)]
    for label, totals in (("warned", _warned(sides)), ("stops", _stopped(sides))):
        click.echo(f"{label:>6}  " + "".join(f"{total:{_WIDTH}}" for total in totals).rstrip())
    for named in overrides:
        _tell(named, alone=len(overrides) == 1)


def _warned(sides: Sequence[Side]) -> list[str]:
    return [_total(side.warnings, side.first_warning) for side in sides]


def _stopped(sides: Sequence[Side]) -> list[str]:
    return [_total(side.stops, side.first_stop) for side in sides]


def _total(count: int, first: int | None) -> str:
    return str(count) if first is None else f"{count} (first at #{first})"


def _tell(named: _Named, *, alone: bool) -> None:
    """What the first stop would have saved, and what is not certain."""
    from loopscope.recording.inert import inert
    from loopscope.views.whatif import spent

    prefix = "" if alone else f"{inert(named.name)}: "
    difference = named.difference
    if difference.first is None:
        click.echo(f"{prefix}nothing differs.")
    after = difference.after_first_stop
    if after is not None:
        click.echo(f"{prefix}after its first stop at #{difference.override.first_stop} came {spent(after)}.")
    for note in difference.notes():
        click.echo(f"{prefix}{note}")


def _verdict(decision: Decision) -> str:
    if decision.action == "pass":
        return "·"
    word = "STOP" if decision.action == "hard_stop" else "WARN"
    tool = f" {decision.tool}" if decision.tool is not None else ""
    return f"{word} {decision.layer}{tool} {decision.count:g}/{decision.threshold:g}"
