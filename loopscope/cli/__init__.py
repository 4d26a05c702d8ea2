"""The command line: one file a verb, each imported when it is called, so that `--help` costs little more than click.

Data goes to stdout, everything else to stderr; an error is one line and an exit code, never a traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from loopscope.cli.lazy import LazyGroup, ReaderGone
from loopscope.errors import LoopscopeError

__all__ = ["cli", "main", "run"]

INTERRUPTED = 130
USAGE = 2
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

VERBS = {
    "attach": "Open the debugger on a running or a recorded agent.",
    "run": "Run a program and observe its graphs, nothing in it changed.",
    "ps": "List the processes that can be attached to.",
    "ctl": "Pause, step, continue or stop a live process; set its limits.",
    "replay": "Print the decision for every batch of a recording.",
    "explain": "Say why a batch was warned, stopped or passed.",
    "whatif": "Show what a run would have met under other limits.",
    "tune": "Try limits on many runs, and tell which to take.",
    "import": "Write a checkpoint file, or any recording, as a recording.",
    "export": "Write a run as a web page or a picture.",
    "export-test": "Write a recorded loop as a pytest that proves its bound.",
    "lint": "Say what bounds the cycles of a graph.",
    "samples": "List the recorded runs that come with loopscope.",
    "config": "Show, check, export or begin a policy file.",
    "doctor": "Show versions, terminal and folders; clean up.",
    "completion": "Print the completion script for a shell.",
}


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    package="loopscope.cli",
    context_settings=CONTEXT,
    invoke_without_command=True,
    epilog="Exit codes: 0 ok, 1 findings (--fail-on), 2 usage or policy, 3 unreadable input, 4 cannot attach, "
    "5 replay differs (--verify), 130 interrupted.",
)
@click.option("--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(context: click.Context, *, version: bool) -> None:
    """Find out why an agent loops, how far each limit was, and what other limits would have done.

    Begin with `loopscope attach sample:sql-retry-storm`.
    """
    if version:
        from loopscope import __version__

        click.echo(f"loopscope {__version__}")
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> NoReturn:
    """The `loopscope` command: runs it and leaves with its exit code."""
    if "loopscope.autostart" in sys.modules:
        # LOOPSCOPE is meant for the programs that are observed.
        sys.modules["loopscope.autostart"].disarm()
    _open_what_is_closed()
    sys.exit(run(sys.argv[1:], in_place=True))


def run(arguments: Sequence[str], *, in_place: bool = False) -> int:
    """Runs a command line and gives its exit code; errors are told on stderr in one line.

    Args:
        arguments: without the name of the command.
        in_place: a program that is to be run takes the place of this process.
    """
    try:
        return _invoke(arguments, in_place=in_place)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "loopscope"
        _tell(f"{path}: {error.format_message()} See `{path} --help`.")
        return USAGE
    except LoopscopeError as error:
        _tell(f"loopscope: {error}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _tell("loopscope: interrupted")
        return INTERRUPTED
    except (ReaderGone, BrokenPipeError):
        _give_up_stdout()
        return 0
    except OSError as error:
        _tell(f"loopscope: {_place(error)}{error.strerror or error}")
        if error.errno in _UNWRITABLE:
            _give_up_stdout()
        return USAGE


def _invoke(arguments: Sequence[str], *, in_place: bool) -> int:
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    result = cli.main(list(arguments), prog_name="loopscope", standalone_mode=False)
    sys.stdout.flush()
    if hasattr(result, "become"):
        result = result.become() if in_place else result.run()
    return result if isinstance(result, int) else 0


def _place(error: OSError) -> str:
    """What could not be read or written, where that is known: verbs name their files, so a full disk is stdout's."""
    if error.filename is not None:
        return f"{error.filename}: "
    return "stdout: " if error.errno in _UNWRITABLE else ""


def _give_up_stdout() -> None:
    """What is still buffered would fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_what_is_closed() -> None:
    """The null device for each standard stream that the caller closed, lest a file that we open gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - for as long as the process lives


def _tell(message: str) -> None:
    from loopscope.recording.inert import inert

    line = inert(" ".join(message.split()))
    sys.stderr.write(f"{line.encode(sys.stderr.encoding or 'utf-8', 'backslashreplace').decode('utf-8', 'replace')}\n")
