"""`loopscope attach`: the debugger on a terminal, and its view as plain text where there is none.

What runs is looked at in the same way as what was recorded; `loopscope.cli.watch` does it without a screen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from loopscope.cli.options import channel_option, json_option, policy_choice, policy_options, target_argument
from loopscope.cli.uncollected import uncollected
from loopscope.errors import UsageError

if TYPE_CHECKING:
    from loopscope.cli.watch import Wish
    from loopscope.session.session import Session

__all__ = ["command"]

_AT_ONCE = 0.1
"""Seconds for which a recording is read before the screen opens: all of most, the beginning of others."""


@click.command()
@target_argument(required=False)
@policy_options
@channel_option
@click.option(
    "--control", is_flag=True, help="Of what is live: ask for leave to steer it (pause, step, stop, set limits)."
)
@click.option("--record", metavar="FILE", help="Of what is live: write what comes as a recording.")
@click.option("--follow", is_flag=True, help="Of a checkpoint file: go on with what its program adds to it.")
@json_option("No screen: print the events, one JSON object a line, until the end.")
@click.option("--web", is_flag=True, help="Serve the debugger to a browser on this machine, and print its address.")
@click.option("--theme", metavar="NAME", help="dark (the default), light, or the name of a Textual theme.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@click.option("--no-color", is_flag=True, envvar="LOOPSCOPE_NO_COLOR", help="Draw in greys, as with NO_COLOR.")
def command(
    target: str | None,
    policy: str | None,
    sets: tuple[str, ...],
    channel: str | None,
    theme: str | None,
    record: str | None,
    *,
    control: bool,
    follow: bool,
    as_json: bool,
    web: bool,
    ascii_only: bool,
    no_color: bool,
) -> None:
    """Open the debugger on TARGET: a recording, a checkpoint file, sample:NAME, - for stdin, or what is live.

    Without TARGET you pick one: what runs, recordings opened lately, and the samples.

    The cursor is on the first stop, if there is one; ? shows the keys and q quits. Where there is no terminal to draw
    on, or TERM is dumb, the same view is printed as text.

    A live process is named by its pid, its name or its socket, as `loopscope ps` lists them. Its agents go on
    undisturbed, unless you ask for control and pause them; when you quit, they go on.

    With --follow, a LangGraph checkpoint file is read on as its program writes it. The URL of a LangGraph server shows
    the runs that go on there; http://HOST:PORT/threads/ID those of one thread. Limits are your own in both.

    With --web the same debugger is in a browser. Its address works once, on this machine, and in that browser alone.
    """
    if web:
        _serve(target, as_json=as_json)
        return
    if target is None:
        if record is not None or as_json or follow:
            raise UsageError("attach needs a TARGET for --record, --follow and --json")
        _pick(policy, sets, channel, theme, ascii_only=ascii_only, no_color=no_color, control=control)
        return
    from loopscope.cli.watch import Wish

    wish = Wish(control, record, as_json, theme, ascii_only, no_color)
    if not _watched(target, policy, sets, channel, wish, follow=follow):
        _open(target, policy, sets, channel, wish)


def _serve(target: str | None, *, as_json: bool) -> None:
    """The same command without `--web`, behind a web page."""
    if as_json or target == "-":
        raise UsageError("attach --web needs a screen: it takes neither --json nor the standard input")
    try:
        from loopscope.cli.web import serve
    except ImportError:
        raise UsageError("attach --web: pip install 'loopscope[web]' brings what serves it") from None
    words = sys.argv[sys.argv.index("attach") + 1 :] if "attach" in sys.argv else [target or ""]
    serve([word for word in words if word != "--web"], f"loopscope {target or ''}".strip())


def _watched(
    target: str, policy: str | None, sets: tuple[str, ...], channel: str | None, wish: Wish, *, follow: bool
) -> bool:
    """Follow what is live; False where it is to be read as it is."""
    with uncollected():
        from loopscope.targets import live_process

        process = live_process(target)
    if process is not None:
        if policy is not None or sets or channel is not None:
            raise UsageError("attach: a live process has its own limits; `loopscope ctl` sets them")
        from loopscope.cli.watch import watch

        watch(process, wish)
        return True
    if target.startswith(("http://", "https://")):
        if channel is not None:
            raise UsageError("attach: --channel is for checkpoint files")
        from loopscope.cli.watch import watch_server

        watch_server(target, policy_choice(policy, sets), wish)
        return True
    if follow:
        from loopscope.cli.watch import watch_file

        return watch_file(target, policy_choice(policy, sets), channel, wish)
    if wish.control or wish.record is not None:
        raise UsageError("attach: --control and --record are for what is live; `loopscope import` converts")
    return False


def _open(target: str, policy: str | None, sets: tuple[str, ...], channel: str | None, wish: Wish) -> None:
    """The debugger on something recorded, or its events or its view as text."""
    if wish.as_json:
        from loopscope.cli.watch import print_events

        print_events(target, channel)
        return
    from loopscope.cli.output import can_draw, report, tell
    from loopscope.cli.terminal import reopen_terminal, why_no_screen
    from loopscope.targets import STDIN, start_session

    if target == STDIN:
        reopen_terminal()
    reason = why_no_screen()
    with uncollected():
        loading = start_session(target, policy_choice(policy, sets), channel)
        if not reason:
            loading.begin(_AT_ONCE)
    if not reason:
        from loopscope_widgets.terminal import run

        run(
            loading.session, theme=wish.theme, ascii=wish.ascii_only, no_color=wish.no_color,
            opener=_opener(policy, sets, channel), loading=loading,
        )  # fmt: skip
        return
    session = loading.finish()
    from loopscope.views.text import render

    report(session.source, session.problems)
    if "stderr" in reason:
        # Said on both: who redirected stderr sees only stdout.
        tell(reason)
        click.echo(f"({reason}: this is the view as text)\n")
    click.echo(render(session, ascii_only=wish.ascii_only or not can_draw(sys.stdout.encoding)), nl=False)


def _opener(policy: str | None, sets: tuple[str, ...], channel: str | None) -> Callable[[str], Session]:
    """Opens what is picked later, under the same limits."""

    def opener(target: str) -> Session:
        from loopscope.sources import detect
        from loopscope.targets import open_session

        foreign = channel is not None and not target.startswith("sample:") and detect(target) is not None
        return open_session(target, policy_choice(policy, sets), channel if foreign else None)

    return opener


def _pick(
    policy: str | None,
    sets: tuple[str, ...],
    channel: str | None,
    theme: str | None,
    *,
    ascii_only: bool,
    no_color: bool,
    control: bool,
) -> None:
    """Let the user pick a process or a recording, where there is a terminal to do so."""
    from loopscope.cli.terminal import why_no_screen

    policy_choice(policy, sets)  # a wrong option is told before anything is drawn
    if reason := why_no_screen():
        raise UsageError(f"attach needs a TARGET here: {reason}, so that none can be picked")
    from loopscope_widgets.terminal import run

    opener = _opener(policy, sets, channel)
    run(None, theme=theme, ascii=ascii_only, no_color=no_color, opener=opener, control=control)
