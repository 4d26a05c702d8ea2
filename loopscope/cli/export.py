"""`loopscope export`: a run as one web page, or as a picture, with the numbers of the debugger."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from loopscope.cli.options import batch_at, channel_option, policy_choice, policy_options, target_argument
from loopscope.errors import UsageError

if TYPE_CHECKING:
    from loopscope.session.session import Session

__all__ = ["command"]

_OURS = (b"<!doctype html>", b"<svg ")


@click.command()
@target_argument()
@click.option("--html", metavar="FILE", help="Write a page: one file without scripts that loads nothing; - is stdout.")
@click.option("--svg", metavar="FILE", help="Write a picture of the timeline and of the counts; - is stdout.")
@click.option("--at", type=int, metavar="N", help="The batch to show; by default the first stop, else the last.")
@click.option(
    "--theme", type=click.Choice(["dark", "light"]), help="By default as the reader's system; a page prints light."
)
@policy_options
@channel_option
def command(
    target: str,
    html: str | None,
    svg: str | None,
    at: int | None,
    theme: str | None,
    policy: str | None,
    sets: tuple[str, ...],
    channel: str | None,
) -> None:
    """Write TARGET, as it is at one batch, as a web page or a picture: to mail it, keep it, or put it in an issue.

    A page has the timeline, why it was stopped, every warning and stop, the counts and their limits, the scopes and the
    graph. Without --html and --svg a page goes to stdout; on a terminal, to NAME.html.

    An earlier page or picture is replaced, any other file is not. FILE is readable for you alone.
    """
    from loopscope.cli.outfile import STDOUT
    from loopscope.cli.output import report
    from loopscope.targets import open_session

    if html == svg == STDOUT:
        raise UsageError("--html - and --svg -: stdout takes one of them; name a file for the other")
    session = open_session(target, policy_choice(policy, sets), channel)
    report(session.source, session.problems)
    if at is not None:
        session.seek(batch_at(session, at))
    if html is None and svg is None:
        html = _page_name(session.source) if sys.stdout.isatty() else STDOUT
    if html is not None:
        from loopscope.views.web.page import page

        _write(html, page(session, theme=theme), session)
    if svg is not None:
        from loopscope.views.web.picture import picture

        _write(svg, picture(session, theme=theme), session)


def _page_name(source: str) -> str:
    """The file's or the sample's own name, in this folder."""
    return f"{PurePath(source.rpartition(':')[2]).name.split('.')[0] or 'run'}.html"


def _write(output: str, text: str, session: Session) -> None:
    from loopscope.cli.outfile import STDOUT, written
    from loopscope.cli.output import tell

    otherwise = "exists, and is neither a page nor a picture; name another file"
    with written(output, may_replace=lambda start: not start or start.startswith(_OURS), otherwise=otherwise) as file:
        file.write(text.encode())
    if output != STDOUT:
        tell(f"{output}: {session.source} at batch {session.cursor} of {len(session)}")
