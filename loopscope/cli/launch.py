"""A program that is begun with the debugger: its process, what it writes, and the feed that waits for its graphs.

Apart from `run`, which only says what is to be run. While the debugger is open it has the terminal, and the program
writes into a pane; afterwards the terminal is the program's again.
"""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, get_args

from loopscope.cli.output import tell
from loopscope.errors import CannotAttachError
from loopscope.link.folder import folders
from loopscope.link.follow import Follow
from loopscope.link.target import resolve
from loopscope.recording.feed import Connection, Message, Verb
from loopscope.recording.inert import inert
from loopscope.session.output import Output

if TYPE_CHECKING:
    from loopscope.engine.events import ScopeKey
    from loopscope.link.discovery import Entry

__all__ = ["Child", "Launched"]

_CHUNK = 1 << 16
_BREATH = 0.002
"""Seconds between two chunks of a flood, so that the keys stay alive."""
_LOOK = 0.03
"""Seconds between two looks for the endpoint of the program."""
_LAST_WORDS = 1.0
"""Seconds for what was written before the end; what the program started may hold its output open for ever."""
_ENDING = 10.0
"""Seconds from the end of its endpoint to that of the process, which tells how it ended."""


class Child:
    """A program that runs beside us.

    Args:
        command: to be run.
        environment: gives its environment; told the number of a file from which nothing can be read until the debugger
            is there, or None where there is no such thing.
        stdin: what it reads; None for nothing, since the keys are the debugger's.
    """

    def __init__(
        self, command: list[str], environment: Callable[[int | None], dict[str, str]], stdin: IO[Any] | None
    ) -> None:
        self.output = Output()
        self.over = threading.Event()
        self._command = command
        self._environment = environment
        self._stdin = stdin
        self._process: subprocess.Popen[bytes] | None = None
        self._held: int | None = None
        self._told = False
        self._pump = threading.Thread(target=self._read, daemon=True)
        self._writing = threading.Lock()
        self._sink: Callable[[bytes], object] = self.output.feed

    @property
    def pid(self) -> int:
        """Of the process that was started; 0 before."""
        return self._process.pid if self._process is not None else 0

    @property
    def end(self) -> str:
        """How it ended, in words; nothing while it runs."""
        code = self._process.returncode if self._process is not None else None
        if code is None:
            return ""
        return f"exit code {code}" if code >= 0 else _signal_name(-code)

    def start(self) -> None:
        """Begin it.

        Raises:
            OSError: where it cannot be begun.
        """
        waits, self._held = os.pipe() if sys.platform != "win32" else (None, None)
        self._process = subprocess.Popen(  # noqa: S603 - the user's own program
            self._command,
            env=self._environment(waits),
            stdin=self._stdin if self._stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            pass_fds=() if waits is None else (waits,),
            # It could read the keys, or write over the debugger, if this terminal were its own.
            start_new_session=True,
        )
        if waits is not None:
            os.close(waits)
        self._pump.start()
        threading.Thread(target=self._wait, daemon=True).start()

    def pass_on(self, number: int) -> None:
        """Tell the program what this process was told; it goes on or ends as it likes."""
        self._told = True
        if self._process is not None:
            self._process.send_signal(number)

    def let_go(self) -> None:
        """The debugger is there, or will not come: the program need not wait for it."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def finish(self) -> int:
        """Leave the terminal to the program until its end.

        What it wrote is left there. Its exit code, or 128 and the number of the signal that ended it.
        """
        process = self._process
        if process is None:
            return 0
        self.let_go()
        runs = process.poll() is None
        with self._writing:
            self._leave_lines()
            self._sink = _Copy().feed
        if runs:
            if not self._told:
                tell("the debugger is closed; the program goes on, ctrl+c interrupts it")
            with _forwarded(process):
                self.over.wait()
        self.over.wait()
        self._pump.join(_LAST_WORDS)
        code = process.returncode
        return code if code >= 0 else 128 - code

    def _leave_lines(self) -> None:
        output = self.output
        if output.dropped:
            _print(f"({output.dropped} earlier lines are not kept)\n")
        kept = output.lines(0, len(output))
        _print("\n".join(kept) + "\n" if kept else "")

    def _wait(self) -> None:
        if self._process is not None:
            self._process.wait()
            self.over.set()

    def _read(self) -> None:
        out = self._process.stdout if self._process is not None else None
        while out is not None and (data := out.read(_CHUNK)):
            with self._writing:
                self._sink(data)
            if len(data) == _CHUNK:
                time.sleep(_BREATH)


class Launched:
    """The feed of a program that begins when the feed is read.

    Args:
        child: the program.
        name: what to call it.
    """

    def __init__(self, child: Child, name: str) -> None:
        self._child = child
        self._name = name
        self._follow: Follow | None = None
        self._closed = threading.Event()

    @property
    def name(self) -> str:
        """As `Feed` has it."""
        return self._name

    @property
    def capabilities(self) -> Mapping[str, str]:
        """As `Feed` has it."""
        if self._follow is not None:
            return self._follow.capabilities
        return dict.fromkeys(get_args(Verb), "the program has loaded no LangGraph yet")

    def __iter__(self) -> Iterator[Message]:
        """As `Feed` has it: `back` when the program can be followed, and at the end how it ended."""
        try:
            self._child.start()
        except OSError as error:
            yield Connection(state="ended", reason=f"it cannot be begun: {error.strerror}")
            return
        try:
            yield from self._messages()
        finally:
            self._child.let_go()

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """As `Feed` has it."""
        if self._follow is None:
            raise CannotAttachError(f"{self._name}: {self.capabilities[verb]}")
        return self._follow.request(verb, scope, **arguments)

    def close(self) -> None:
        """As `Feed` has it."""
        self._closed.set()
        if self._follow is not None:
            self._follow.close()

    def _messages(self) -> Iterator[Message]:
        follow = self._found()
        if follow is None:
            if not self._closed.is_set():
                yield Connection(state="ended", reason=f"{self._child.end}; no graph of LangGraph could be observed")
            return
        self._follow = follow
        if self._closed.is_set():
            follow.close()
        yield Connection(state="back")
        for message in follow:
            self._child.let_go()
            if isinstance(message, Connection) and message.state == "ended":
                self._child.over.wait(_ENDING)
                yield Connection(state="ended", reason=self._child.end or message.reason)
            else:
                yield message

    def _found(self) -> Follow | None:
        """The program, once it can be attached to; None where it ends before, or nobody looks any more."""
        while not self._closed.is_set() and not self._child.over.is_set():
            entry = _entry_of(self._child.pid)
            if entry is not None:
                with suppress(CannotAttachError):
                    return Follow(entry, control=True, name="loopscope run")
            self._closed.wait(_LOOK)
        return None


def _entry_of(pid: int) -> Entry | None:
    """How this process can be attached to; other processes are not disturbed while it cannot."""
    if not any(next(folder.glob(f"{pid}-*.json"), None) for folder in folders()):
        return None
    with suppress(CannotAttachError):
        return resolve(pid)
    return None


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


class _forwarded:  # noqa: N801 - used as a function
    """While this lasts, what interrupts us interrupts the program, which is in a session of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
                self._before.setdefault(number, signal.signal(number, self._forward))

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _forward(self, number: int, _frame: object) -> None:
        self._process.send_signal(number)


class _Copy:
    """What the program writes from now on, as visible text, at once; a line that it writes over is one of its own."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def feed(self, data: bytes) -> None:
        """Write it."""
        text = self._decoder.decode(data).replace("\r\n", "\n").replace("\r", "\n")
        _print("\n".join(inert(piece.expandtabs(8)) for piece in text.split("\n")))


def _print(text: str) -> None:
    with suppress(OSError):
        sys.stdout.write(text)
        sys.stdout.flush()
