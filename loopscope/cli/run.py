"""`loopscope run`: a program with the tap on, run by Python itself, with nothing in it changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from loopscope.cli.options import policy_choice, policy_options
from loopscope.errors import UsageError

__all__ = ["Program", "command"]

_STDIN = "-"


class Program:
    """A Python program that is ready to be run under observation.

    Args:
        arguments: what follows `python` on the command line.
        environment: of its process.
    """

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self._command = [sys.executable, *arguments]
        self._environment = environment

    def become(self) -> NoReturn:
        """Run it in place of this process, so that its pid, signals and exit code are the program's own."""
        if sys.platform == "win32":  # pragma: no cover - there, the shell would not wait for it
            sys.exit(self.run())
        os.execve(self._command[0], self._command, self._environment)  # noqa: S606 - the user's own program

    def run(self) -> int:
        """Run it beside this process; its exit code, or 128 and the number of the signal that ended it."""
        code = subprocess.run(self._command, env=self._environment, check=False).returncode  # noqa: S603 - as above
        return code if code >= 0 else 128 - code


class _Command(click.Command):
    """A command whose options end where the program begins: what follows SCRIPT or MODULE is the program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, with a mark after `-m MODULE`; SCRIPT needs none, since it is the first that is no option."""
        options = [each for each in self.params if isinstance(each, click.Option)]
        valued = {name for option in options if not option.is_flag for name in option.opts}
        rest = iter(range(len(args)))
        for place in rest:
            argument = args[place]
            if argument.startswith("-m"):
                end = place + 1 if argument != "-m" else place + 2
                return super().parse_args(ctx, [*args[:end], "--", *args[end:]])
            if argument in valued:
                next(rest, None)
            elif argument == "--" or not argument.startswith("--"):
                break
        return super().parse_args(ctx, args)


@click.command(cls=_Command, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m MODULE`.")
@click.option("--record", metavar="FILE", help="Record the runs; {pid} in FILE is the process.")
@click.option("--wait", is_flag=True, help="Hold the first batch of tool calls until a viewer is there.")
@click.option("--control", is_flag=True, help="Let viewers that ask for it pause, step, stop and set limits.")
@click.option(
    "--attach", is_flag=True, help="Open the debugger here; a pane has what the program writes. With --control."
)
@policy_options
@click.argument("program", nargs=-1, metavar="SCRIPT|-m MODULE [ARGS]", type=click.UNPROCESSED)
def command(
    module: str | None,
    record: str | None,
    policy: str | None,
    sets: tuple[str, ...],
    program: tuple[str, ...],
    *,
    wait: bool,
    control: bool,
    attach: bool,
) -> Program | int:
    """Run a Python program and observe every LangGraph graph in it; nothing in the program is changed.

    While it runs, `loopscope attach` finds it. The limits (of --policy, else of the nearest loopscope.toml) only show
    what they would do: nothing is warned or stopped by them. Whatever follows SCRIPT or MODULE is the program's own.

    With --attach the program reads nothing from the terminal, which is the debugger's; q closes the debugger, and the
    program goes on here.
    """
    if module is None and not program:
        raise click.UsageError("Name a script, or a module after -m.", click.get_current_context())
    if module is None and program[0] != _STDIN and not os.path.exists(program[0]):  # noqa: PTH110 - of any length
        raise UsageError(f"{program[0]:.200}: there is no such script to run")
    if attach and (reason := _why_not_here()):
        raise UsageError(f"run: --attach cannot open the debugger here: {reason}")
    asked = {"control": control or attach, "policy": _policy(policy, sets), "record": record and _checked(record)}
    arguments = [*(("-m", module) if module is not None else ()), *program]
    if attach:
        return _attached(arguments, asked, module or Path(program[0]).name)
    return Program(arguments, _environment({**asked, "wait": wait}))


def _why_not_here() -> str:
    """Why there can be no debugger on this terminal; keys are taken from it even where something is piped in."""
    from loopscope.cli.terminal import reopen_terminal, why_no_screen

    if sys.__stdin__ is not None and not sys.__stdin__.isatty():
        reopen_terminal()
    return why_no_screen()


def _attached(arguments: Sequence[str], asked: Mapping[str, object], name: str) -> int:
    """The program with the debugger on it, and without once that is closed; its exit code."""
    from loopscope.cli.launch import Child, Launched
    from loopscope.recording.inert import inert
    from loopscope.session.live import LiveSession
    from loopscope_widgets.terminal import run

    piped = None if sys.stdin.isatty() else sys.stdin
    child = Child(
        [sys.executable, *arguments], lambda hold: _environment({**asked, "hold": hold, "lines": True}), piped
    )
    feed = Launched(child, inert(name, 80))
    live = LiveSession(feed.name)
    live.state = "starting"
    ended = 0
    try:
        run(live.session, feed=feed, live=live, output=child.output, told=child.pass_on)
    except SystemExit as end:
        ended = int(end.code or 0)
    finally:
        feed.close()
        code = child.finish()
    return code if child.pid else ended


def _policy(policy: str | None, sets: tuple[str, ...]) -> str:
    import json

    return json.dumps(policy_choice(policy, sets).settings.policy.to_dict())


def _checked(record: str) -> str:
    """The whole path of a recording that can be written."""
    from loopscope.recording.appending import Appending

    path = os.path.abspath(record)  # noqa: PTH100 - as text, and symbolic links stay
    trial = path.replace("{pid}", str(os.getpid()))
    new = not os.path.lexists(trial)
    Appending(trial).close()
    if new:
        # The program makes it, when it has something to record.
        with suppress(OSError):
            os.unlink(trial)  # noqa: PTH108 - as above
    return path


def _environment(asked: Mapping[str, object]) -> dict[str, str]:
    """The environment in which Python finds our `sitecustomize`, which undoes it all again."""
    import json

    import loopscope

    environment = dict(os.environ)
    before = environment.get("PYTHONPATH")
    site = str(Path(loopscope.__file__).parent / "_site")
    environment["PYTHONPATH"] = f"{site}{os.pathsep}{before}" if before else site
    if before is not None:
        environment["LOOPSCOPE_PYTHONPATH"] = before
    environment["LOOPSCOPE_RUN"] = json.dumps(asked)
    return environment
