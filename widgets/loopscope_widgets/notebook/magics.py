"""`%loopscope` and `%%loopscope`: what the command line does, for a notebook, with the widget as its screen.

Apart from the widget, which can be used without IPython. A line's words are read as a shell's.
"""

from __future__ import annotations

import argparse
import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from loopscope.engine.policy import DEFAULT, PRESETS
from loopscope.errors import LoopscopeError, UsageError
from loopscope.samples import samples
from loopscope.session.draft import Draft, settings, tools_of
from loopscope.session.live import LiveSession
from loopscope.session.session import Session
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import why
from loopscope.views.model import plain
from loopscope_widgets.notebook.following import Following
from loopscope_widgets.notebook.widget import LoopWidget

__all__ = ["LoopscopeMagics", "register"]

_VERBS = "open, attach, why, whatif or tune; %loopscope? tells what they take"
_MAGICS = frozenset({"%loopscope", "%%loopscope"})
_HELP = frozenset({"-h", "--help", "help"})
_WIDTH = 100


class _Parser(argparse.ArgumentParser):
    """Complains in one line with an error of ours, and does not leave the kernel.

    Args:
        prog: what is parsed.
        takes: its arguments, for who gets them wrong.
    """

    def __init__(self, prog: str, takes: str) -> None:
        super().__init__(prog=prog, add_help=False)
        self.takes = takes

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}; it takes {self.takes}")


def _parser(prog: str, takes: str, *arguments: tuple[str, Mapping[str, Any]]) -> _Parser:
    parser = _Parser(prog, takes)
    for name, options in arguments:
        parser.add_argument(name, **options)
    return parser


_POLICY = (
    ("--policy", {"metavar": "P"}),
    ("--set", {"metavar": "K=V", "action": "append", "default": [], "dest": "sets"}),
)
_TARGET = ("target", {"metavar": "TARGET"})
_CONTROL = ("--control", {"action": "store_true"})
_LINES: Mapping[str, _Parser] = {
    "open": _parser("%loopscope open", "TARGET [--policy P] [--set K=V]", _TARGET, *_POLICY),
    "attach": _parser("%loopscope attach", "TARGET [--control]", _TARGET, _CONTROL),
    "why": _parser("%loopscope why", "[N]", ("at", {"nargs": "?", "type": int, "metavar": "N"})),
    "whatif": _parser("%loopscope whatif", "K=V ...", ("sets", {"nargs": "+", "metavar": "K=V"})),
    "tune": _parser("%loopscope tune", "K=3..12 ...", ("grid", {"nargs": "+", "metavar": "K=3..12"})),
}
_CELL_TAKES = "[--record FILE] [--name NAME] [--policy P] [--set K=V]"
_CELL = _parser("%%loopscope", _CELL_TAKES, ("--record", {"metavar": "FILE"}), ("--name", {}), *_POLICY)


@magics_class
class LoopscopeMagics(Magics):
    """The magics, and the session that was opened last."""

    session: ClassVar[Session | None] = None

    @line_cell_magic
    def loopscope(self, line: str, cell: str | None = None) -> object:
        """Open, attach, explain and tune; as `%%loopscope`, run a cell and watch its graphs.

        %loopscope open TARGET [--policy P] [--set K=V]   show a recording, sample:NAME or a checkpoint file
        %loopscope attach TARGET [--control]              follow a process that listens, by pid or name
        %loopscope why [N]                                why batch N of what was opened last got its verdict
        %loopscope whatif K=V ...                         the same run under other limits
        %loopscope tune K=3..12 ...                       every combination of limits, as a table

        %%loopscope [--record FILE] [--name NAME] [--policy P] [--set K=V]
            run the cell and watch its graphs meanwhile; nothing is stopped.

        --policy P    a preset or a file
        --set K=V     one setting, by its dotted name; may be given again: --set hard_limit=8
        --record FILE keep what was seen, for `loopscope.open` and `loopscope attach`
        --name NAME   what others see it as who attach to this kernel
        --control     pause, step and stop it too, where it allows that
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"%loopscope: {error}") from None
        if words[-1:] and words[-1] in _HELP:
            print(inspect.getdoc(type(self).loopscope))  # noqa: T201 - its output
            return None
        if cell is not None:
            return self._watch(_CELL.parse_args(words), cell)
        parser = _LINES.get(words[0]) if words else None
        if parser is None:
            raise UsageError(f"%loopscope: what is to be done? {_VERBS}")
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


@context_matcher()  # type: ignore[untyped-decorator]  # IPython's
def _complete(context: CompletionContext) -> SimpleMatcherResult:
    """What can follow in the line of a magic, and nothing else.

    IPython replaces only what comes after the last colon or sign of a word.
    """
    before, _, word = context.line_with_cursor[: context.cursor_position].rpartition(" ")
    words = before.split()
    known = _next(words, word) if words and words[0] in _MAGICS else ()
    cut = len(word) - len(context.token)
    found = [SimpleCompletion(text[cut:], type="magic") for text in known if text.startswith(word)]
    return SimpleMatcherResult(completions=found, suppress=True)


def _next(before: Sequence[str], word: str) -> Iterable[str]:
    """The words that can follow these."""
    magic, *rest = before
    if rest and rest[-1] in {"--policy", "--set", "--record"}:
        named = {"--policy": (*PRESETS, *_files(word)), "--set": _settings()}
        return named.get(rest[-1], _files(word))
    if magic == "%%loopscope":
        return ("--record", "--name", "--policy", "--set")
    if not rest:
        return _LINES
    if rest[0] == "open":
        return (*(f"sample:{sample.name}" for sample in samples()), *_files(word), "--policy", "--set")
    if rest[0] == "attach":
        from loopscope.link.target import discover  # noqa: PLC0415 - asked for by a key alone

        return (*(live.entry.name for live in discover()), "--control")
    return _settings() if rest[0] in {"whatif", "tune"} else ()


def _settings() -> list[str]:
    """`hard_limit=` and all others, with the tools of what was opened last."""
    session = LoopscopeMagics.session
    draft = Draft.of(DEFAULT if session is None else session.policy)
    return [f"{'.'.join(path)}=" for path in settings(draft, [] if session is None else tools_of(session.timeline))]


def _files(start: str) -> list[str]:
    """The files and folders that begin so."""
    folder, slash, name = start.rpartition("/")
    try:
        there = [file for file in Path(f"{folder}{slash}").iterdir() if file.name.startswith(name)]
    except OSError:
        return []
    return sorted(f"{folder}{slash}{file.name}{'/' * file.is_dir()}" for file in there)


def register(shell: Any) -> None:
    """Put the magics and their completion into a shell."""
    shell.register_magics(LoopscopeMagics)
    if _complete not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.append(_complete)
    shell.set_custom_exc((LoopscopeError,), _tell)


def _tell(*told: object, **_: object) -> list[str]:
    """One line, as everywhere, of what IPython tells of an error of ours: no traceback helps its reader."""
    line = f"loopscope: {told[2]}"
    sys.stderr.write(f"{line}\n")
    return [line]
