"""`loopscope replay`: the decision for every batch of one or more recordings, streamed in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from loopscope.cli.options import channel_option, json_option, policy_choice, policy_options, target_argument
from loopscope.errors import CannotAttachError, LoopscopeError, ReplayDiffersError, UnreadableInputError, UsageError

if TYPE_CHECKING:
    from loopscope.cli.verify import Verifier
    from loopscope.engine.decision import Decision
    from loopscope.engine.events import Event
    from loopscope.settings import Choice
    from loopscope.targets import Opening

__all__ = ["command"]

_FINDINGS = 1


@click.command()
@target_argument("targets", nargs=-1, required=True, metavar="TARGET...")
@policy_options
@json_option("Print one JSON object a batch that has calls, and nothing else, on stdout.")
@click.option(
    "--fail-on", type=click.Choice(["warn", "stop"]), help="Exit with 1 if there is a warning or stop; or a stop."
)
@channel_option
@click.option("--verify", is_flag=True, help="Compare with the recorded decisions; exit with 5 if one differs.")
def command(
    targets: tuple[str, ...],
    policy: str | None,
    sets: tuple[str, ...],
    fail_on: str | None,
    channel: str | None,
    *,
    as_json: bool,
    verify: bool,
) -> int:
    """Print the decision for every batch of each TARGET: a recording, a checkpoint file, sample:NAME, or - for stdin.

    A recording is decided under its own policy unless --policy or --set say otherwise; one without a policy under the
    project's loopscope.toml, else the defaults. Decisions go on after a stop, as if it had been ignored.

    --verify takes no other policy than the recorded one, and a recording without decisions is a usage error.
    """
    if verify and (policy is not None or sets):
        raise UsageError("--verify replays the recorded policy: leave out --policy and --set")
    from loopscope.cli.output import tell
    from loopscope.settings import Choice

    choice = Choice() if verify else policy_choice(policy, sets)
    if choice.fixed:
        _ = choice.settings  # wrong for one target is wrong for all: told once
    codes = [0]
    for target in targets:
        try:
            codes.append(_replay(target, choice, _Wish(fail_on, channel, verify, as_json, several=len(targets) > 1)))
        except LoopscopeError as error:
            if len(targets) == 1:
                raise
            tell(str(error))
            codes.append(error.exit_code)
    return max(codes, key=_SEVERITY.index)


_SEVERITY = (
    0,
    _FINDINGS,
    ReplayDiffersError.exit_code,
    UsageError.exit_code,
    UnreadableInputError.exit_code,
    CannotAttachError.exit_code,
)
"""Exit codes from the least to the most serious: of several targets the worst one counts."""


class _Wish(NamedTuple):
    """What is asked of each target."""

    fail_on: str | None
    channel: str | None
    verify: bool
    as_json: bool
    several: bool


def _replay(target: str, choice: Choice, wish: _Wish) -> int:
    from loopscope.cli.output import JsonLines, Table, report, tell
    from loopscope.cli.verify import Verifier
    from loopscope.targets import STDIN, begin

    opening = begin(target, choice, channel=wish.channel)
    name, reader = opening.name, opening.reader
    verifier = Verifier(name) if wish.verify else None
    output = JsonLines(name if wish.several else None, live=target == STDIN) if wish.as_json else Table(name)
    found = {"warn": 0, "hard_stop": 0}
    with reader:
        for event, decisions in _decided(opening, verifier, follow=not choice.fixed):
            for decision in decisions:
                if decision.action != "pass":
                    found[decision.action] += 1
                output.write(event, decision)
    output.close()
    report(name, reader.problems, reader.skipped)
    if verifier is not None and verifier.difference:
        tell(verifier.difference)
        return verifier.exit_code
    failed = found["hard_stop"] or (wish.fail_on == "warn" and found["warn"])
    return _FINDINGS if wish.fail_on and failed else 0


def _decided(
    opening: Opening, verifier: Verifier | None, *, follow: bool
) -> Iterator[tuple[Event, tuple[Decision, ...]]]:
    """Every event that brings decisions, with them."""
    from loopscope.engine.detector import LoopDetector

    detector = LoopDetector(opening.base, follow_policy=follow)
    for line in opening.events:
        decisions = detector.observe(line.event)
        if verifier is not None:
            verifier.take(line.event, decisions)
        if decisions:
            yield line.event, decisions
    if verifier is not None:
        verifier.end()
