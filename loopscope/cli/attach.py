"""`loopscope attach`: the debugger on a terminal, and its view as plain text where there is none."""

from __future__ import annotations

import sys

import click

from loopscope.cli.options import channel_option, policy_choice, policy_options, target_argument

__all__ = ["command"]


@click.command()
@target_argument()
@policy_options
@channel_option
@click.option("--theme", metavar="NAME", help="dark (the default), light, or the name of a Textual theme.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@click.option("--no-color", is_flag=True, envvar="LOOPSCOPE_NO_COLOR", help="Draw in greys, as with NO_COLOR.")
def command(
    target: str,
    policy: str | None,
    sets: tuple[str, ...],
    channel: str | None,
    theme: str | None,
    *,
    ascii_only: bool,
    no_color: bool,
) -> None:
    """Open the debugger on TARGET: a recording, a checkpoint file, sample:NAME, or - for stdin.

    The cursor is on the first stop, if there is one; ? shows the keys and q quits. Where there is no terminal to draw
    on, or TERM is dumb, the same view is printed as text.
    """
    from loopscope.cli.output import report, tell
    from loopscope.cli.terminal import reopen_terminal, why_no_screen
    from loopscope.targets import STDIN, open_session

    session = open_session(target, policy_choice(policy, sets), channel)
    if target == STDIN:
        reopen_terminal()
    reason = why_no_screen()
    if not reason:
        from loopscope_widgets.terminal import run

        run(session, theme=theme, ascii=ascii_only, no_color=no_color)
        return
    from loopscope.views.text import render

    report(session.source, session.problems)
    if "stderr" in reason:
        # Said on both: who redirected stderr sees only stdout.
        tell(reason)
        click.echo(f"({reason}: this is the view as text)\n")
    click.echo(render(session, ascii_only=ascii_only or not _can_draw(sys.stdout.encoding)), nl=False)


def _can_draw(encoding: str) -> bool:
    return encoding.lower().replace("-", "").startswith("utf")
