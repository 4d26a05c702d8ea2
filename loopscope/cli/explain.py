"""`loopscope explain`: why a batch was warned, stopped or passed, in the numbered lines that the debugger shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from loopscope.cli.options import batch_at, channel_option, json_option, policy_choice, policy_options, target_argument
from loopscope.errors import UsageError

if TYPE_CHECKING:
    from loopscope.session.session import Session

__all__ = ["command"]


@click.command()
@target_argument()
@click.option(
    "--at",
    type=int,
    metavar="N",
    help="The batch to explain; by default the first stop, else the first warning, else the last.",
)
@policy_options
@channel_option
@json_option("Print one JSON object: batch, verdict, lines and the decision.")
def command(
    target: str, at: int | None, policy: str | None, sets: tuple[str, ...], channel: str | None, *, as_json: bool
) -> None:
    """Say why a batch of TARGET (a recording, a checkpoint file, sample:NAME, or - for stdin) got its verdict.

    The rule and the batches that it counted, the limit and where it came from, the warnings before it, the effect, and
    the nearest single settings that would have changed it.
    """
    from msgspec import to_builtins

    from loopscope.cli.output import report
    from loopscope.recording.inert import inert
    from loopscope.targets import open_session

    session = open_session(target, policy_choice(policy, sets), channel)
    report(session.source, session.problems)
    explanation = session.explain(_batch(session, at))
    if as_json:
        entry = {"batch": explanation.batch, "verdict": explanation.headline, "lines": explanation.lines}
        click.echo(json.dumps(entry | {"decision": to_builtins(explanation.decision)}))
        return
    click.echo(inert(f"{session.source}: batch {explanation.batch} of {len(session)}, {explanation.headline}"))
    for number, line in enumerate(explanation.lines, 1):
        click.echo(f"{number:>2} {inert(line)}")


def _batch(session: Session, at: int | None) -> int:
    if not len(session):
        raise UsageError(f"{session.source} has no batch with tool calls to explain")
    if at is None:
        notable = session.timeline.notable
        return session.first_stop() or (notable[0] if notable else len(session))
    return batch_at(session, at)
