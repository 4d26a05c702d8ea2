"""`%loopscope` and `%%loopscope`: what the command line does, for a notebook, with the widget as its screen.

Apart from the widget, which can be used without IPython. A line's words are read as a shell's.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from loopscope.errors import LoopscopeError, UsageError
from loopscope.samples import samples
from loopscope.session.live import LiveSession
from loopscope.session.session import Session
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import why
from loopscope.views.model import plain
from loopscope_widgets.notebook.following import Following
from loopscope_widgets.notebook.widget import LoopWidget

__all__ = ["LoopscopeMagics", "register"]

_USE = """%loopscope open TARGET [--policy P] [--set K=V]   show a recording, a sample or a checkpoint file
%loopscope attach PROCESS [--control]             follow a process that listens, by pid or name
%loopscope why [N]                                why batch N of what was opened last got its verdict
%loopscope whatif K=V ...                         the same run under other limits
%loopscope tune K=3..12 ...                       every combination of limits, as a table
%%loopscope [--record FILE] [--set K=V]           run the cell, and watch its graphs meanwhile"""
_WIDTH = 100


class _Parser(argparse.ArgumentParser):
    """Complains with an error of ours, and does not leave the kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}\n{_USE}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or f"{self.prog}: status {status}")


def _parser(prog: str, *arguments: tuple[str, Mapping[str, Any]]) -> _Parser:
    parser = _Parser(prog=prog, add_help=False)
    for name, options in arguments:
        parser.add_argument(name, **options)
    return parser


_POLICY = (
    ("--policy", {"metavar": "P", "help": "a file or a preset"}),
    ("--set", {"metavar": "K=V", "action": "append", "default": [], "dest": "sets"}),
)
_LINES: Mapping[str, _Parser] = {
    "open": _parser("%loopscope open", ("target", {}), *_POLICY),
    "attach": _parser("%loopscope attach", ("target", {}), ("--control", {"action": "store_true"})),
    "why": _parser("%loopscope why", ("at", {"nargs": "?", "type": int})),
    "whatif": _parser("%loopscope whatif", ("sets", {"nargs": "+", "metavar": "K=V"})),
    "tune": _parser("%loopscope tune", ("grid", {"nargs": "+", "metavar": "K=3..12"})),
}
_CELL = _parser("%%loopscope", ("--record", {"metavar": "FILE"}), ("--name", {}), *_POLICY)


@magics_class
class LoopscopeMagics(Magics):
    """The magics, and the session that was opened last."""

    session: ClassVar[Session | None] = None

    @line_cell_magic
    def loopscope(self, line: str, cell: str | None = None) -> object:
        """Open, attach, explain and tune; as `%%loopscope`, run a cell and watch its graphs.

        %loopscope open TARGET [--policy P] [--set K=V]
        %loopscope attach PROCESS [--control]
        %loopscope why [N]
        %loopscope whatif K=V ...
        %loopscope tune K=3..12 ...
        %%loopscope [--record FILE] [--name NAME] [--policy P] [--set K=V]
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"%loopscope: {error}") from None
        if cell is not None:
            return self._watch(_CELL.parse_args(words), cell)
        parser = _LINES.get(words[0]) if words else None
        if parser is None:
            raise UsageError(f"%loopscope: what is to be done? There is\n{_USE}")
        act: Callable[[argparse.Namespace], object] = getattr(self, f"_{words[0]}")
        return act(parser.parse_args(words[1:]))

    def _open(self, asked: argparse.Namespace) -> LoopWidget:
        session = open_session(asked.target, Choice.of(asked.policy, asked.sets, project=Path.cwd()))
        LoopscopeMagics.session = session
        return LoopWidget(session)

    def _attach(self, asked: argparse.Namespace) -> LoopWidget:
        from loopscope.link.follow import Follow  # noqa: PLC0415 - a notebook that attaches to nothing needs no link

        feed = Follow(asked.target, control=asked.control, name="loopscope notebook")
        following = Following(feed, LiveSession(feed.name))
        return self._follow(following)

    def _follow(self, following: Following) -> LoopWidget:
        LoopscopeMagics.session = following.live.session
        widget = LoopWidget(following.live.session, following=following)
        following.start()
        return widget

    def _known(self) -> Session:
        if LoopscopeMagics.session is None:
            raise UsageError("%loopscope: nothing is open yet; %loopscope open TARGET opens a recording")
        return LoopscopeMagics.session

    def _why(self, asked: argparse.Namespace) -> None:
        session = self._known()
        try:
            found = session.explain(asked.at)
        except IndexError as error:
            raise UsageError(f"%loopscope why: {error}") from None
        print("\n".join(plain(line) for line in why.body(found, len(session), _WIDTH)))  # noqa: T201 - its output

    def _whatif(self, asked: argparse.Namespace) -> LoopWidget:
        """The widget with what is tried in its fields, and the tab of it in front."""
        session = self._known()
        tried = Choice.of(sets=tuple(asked.sets)).over(session.policy.to_dict())
        return LoopWidget(session, overrides=tried.policy, tab="whatif")

    def _tune(self, asked: argparse.Namespace) -> object:
        session = self._known()
        display(session.plot(*asked.grid))  # type: ignore[no-untyped-call]  # IPython's
        return session.tune(*asked.grid)

    def _watch(self, asked: argparse.Namespace, cell: str) -> object:
        """Run the cell under the tap; its widget follows, and stays when it is over."""
        from loopscope.adapters.tap.handler import tap  # noqa: PLC0415 - LangChain, which a reader of files needs not
        from loopscope.adapters.tap.hook import observing  # noqa: PLC0415 - as above
        from loopscope.link.endpoint import listen  # noqa: PLC0415 - as above
        from loopscope.link.follow import Follow  # noqa: PLC0415 - as above
        from loopscope.link.gate import blocking_allowed  # noqa: PLC0415 - as above

        policy = Choice.of(asked.policy, asked.sets, project=Path.cwd()).settings.policy
        handler = tap(policy=policy, record=asked.record)
        link = listen(asked.name or "notebook", control=True)
        try:
            feed = Follow(link.entry, control=True, name="loopscope notebook")
            following = Following(feed, LiveSession(feed.name))
            widget = self._follow(following)
            handle: Any = display(widget, display_id=True)  # type: ignore[no-untyped-call]  # IPython's
            try:
                with observing(handler), blocking_allowed():
                    return self._run(cell)
            finally:
                handler.close()
                link.close()
                following.drain()
                if handle is not None:
                    # What stands for the widget where there is no kernel is the run at its end.
                    handle.update(widget)
        finally:
            link.close()

    def _run(self, cell: str) -> object:
        """As the cell would run by itself; its error is raised, and so told once."""
        shell: Any = self.shell
        with _quiet(shell):
            done = shell.run_cell(cell)
        done.raise_error()
        return None


@contextmanager
def _quiet(shell: Any) -> Iterator[None]:
    """What goes wrong within is told by whoever is outside."""
    told = shell.showtraceback
    shell.showtraceback = lambda *_, **__: None
    try:
        yield
    finally:
        shell.showtraceback = told


def _complete(_shell: object, event: Any) -> Sequence[str]:
    """The verbs, then samples and options."""
    words = str(event.line)[: getattr(event, "text_until_cursor", event.line).__len__()].split()
    last = str(event.symbol)
    if len(words) < 2 or (len(words) == 2 and last == words[1]):  # noqa: PLR2004 - the magic and a verb
        return list(_LINES)
    if words[1] == "open":
        return [f"sample:{sample.name}" for sample in samples()] + ["--policy", "--set"]
    if words[1] == "attach":
        from loopscope.link.target import discover  # noqa: PLC0415 - asked for by a key alone

        return [live.entry.name for live in discover()] + ["--control"]
    return []


def register(shell: Any) -> None:
    """Put the magics and their completion into a shell."""
    shell.register_magics(LoopscopeMagics)
    shell.set_hook("complete_command", _complete, str_key="%loopscope")
    shell.set_custom_exc((LoopscopeError,), _tell)


def _tell(*told: object, **_: object) -> list[str]:
    """One line, as everywhere, of what IPython tells of an error of ours: no traceback helps its reader."""
    line = f"loopscope: {told[2]}"
    sys.stderr.write(f"{line}\n")
    return [line]
