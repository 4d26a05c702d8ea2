"""The debugger is asked to end by a signal."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from loopscope_widgets.terminal.ending import Ending

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


def test_a_signal_is_told_and_leaves() -> None:
    """Once, however often it is sent; the exit code is that of a program that the signal ended."""
    told: list[int] = []

    async def asked_twice() -> None:
        left = asyncio.Event()
        ending = Ending(left.set)
        ending.told = told.append
        ending.listen()
        assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        await left.wait()
        ending.settle()

    with pytest.raises(SystemExit) as ended:
        asyncio.run(asked_twice())
    assert ended.value.code == 128 + signal.SIGTERM
    assert told == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_whoever_is_in_charge_of_a_signal_stays_in_charge() -> None:
    """As under nohup, or in a program of one's own; and who leaves by a key ends as ever."""

    async def looks() -> None:
        ending = Ending(lambda: None)
        ending.listen()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        ending.settle()

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        asyncio.run(looks())
    finally:
        signal.signal(signal.SIGTERM, before)
