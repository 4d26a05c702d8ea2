"""`loopscope export-test`: a recorded loop as a pytest that fails until the loop is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loopscope.cli.options import batch_at, channel_option, policy_choice, policy_options, target_argument
from loopscope.errors import UsageError

if TYPE_CHECKING:
    from loopscope.session.session import Session

__all__ = ["command"]


@click.command()
@target_argument()
@click.option("-o", "--output", metavar="FILE", default="-", help="Where to write it; - is stdout, the default.")
@click.option(
    "--graph",
    metavar="MODULE:GRAPH",
    help="The graph to import, with () behind it where a function makes it; without it, your fixture `graph`.",
)
@click.option(
    "--at", type=int, metavar="N", help="The batch that the loop ends at; by default the first stop or warning."
)
@click.option("--input", "value", metavar="TEXT|JSON", default="Go on.", help="What the graph is given.")
@click.option(
    "--within", type=click.IntRange(1), metavar="N", help="Failures that are allowed; by default fewer than recorded."
)
@click.option("--async", "asynchronous", is_flag=True, help="Use the graph's asynchronous methods.")
@policy_options
@channel_option
def command(
    target: str,
    output: str,
    graph: str | None,
    at: int | None,
    value: str,
    within: int | None,
    policy: str | None,
    sets: tuple[str, ...],
    channel: str | None,
    *,
    asynchronous: bool,
) -> None:
    """Write a pytest for the loop in TARGET: a recording, a checkpoint file, sample:NAME, or - for stdin.

    The test runs your graph with the recorded answers of the model and a tool that fails as it did, for ever, and
    asserts that the run ends by itself: within a number of failures, earlier where they are equal, through an
    escalation, with its state. It needs no model and no key. An earlier such file is replaced, any other is not.
    """
    from loopscope.cli.outfile import STDOUT, written
    from loopscope.cli.output import report, tell
    from loopscope.targets import open_session
    from loopscope.testing.export import MARK, Wish, exported

    session = open_session(target, policy_choice(policy, sets), channel)
    report(session.source, session.problems)
    number = _batch(session, at)
    text = exported(session, number, Wish(graph, value, within, asynchronous))
    start, otherwise = MARK.encode(), "exists, and is no such test; name another file"
    with written(output, may_replace=lambda begin: not begin or begin.startswith(start), otherwise=otherwise) as file:
        file.write(text.encode())
    if output != STDOUT:
        tell(f"{output}: a test for batch {number} of {session.source}; run it with pytest")


def _batch(session: Session, at: int | None) -> int:
    if at is not None:
        return batch_at(session, at)
    notable = session.timeline.notable
    number = session.first_stop() or (notable[0] if notable else None)
    if number is None:
        raise UsageError(f"{session.source}: no batch was warned or stopped; name the loop's last batch with --at N")
    return number
