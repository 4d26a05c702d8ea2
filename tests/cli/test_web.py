"""`attach --web`: the debugger in a browser, for the one who has the address, once."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

ROOT = Path(__file__).parents[2]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def address() -> Iterator[str]:
    """Where a server of its own serves a sample."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
    command = [sys.executable, "-m", "loopscope", "attach", "sample:sql-retry-storm", "--web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) in (0, 130)


def plain(address: str) -> str:
    """The address without its token."""
    return address.partition("/?")[0]


@pytest.mark.slow
async def test_the_debugger_is_in_the_browser(address: str) -> None:
    """The front door sets a cookie, which goes with a followed link too, and behind it is the very program."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        async with browser.get(address) as page:
            assert page.status == 200
            assert page.url.query_string == ""
            assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
            (cookie,) = page.history[0].cookies.values()
            assert (cookie["samesite"], cookie["httponly"]) == ("Lax", True)
        async with browser.ws_connect(f"{plain(address)}/ws?width=160&height=45") as screen, asyncio.timeout(60):
            seen = ""
            while "sql-retry-storm" not in seen or "Detect" not in seen:
                message = await screen.receive()
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                seen += ESCAPES.sub("", message.data.decode() if isinstance(message.data, bytes) else "")


@pytest.mark.slow
async def test_nobody_else_gets_anything(address: str) -> None:
    """Without the token, with a wrong or a spent one, under another host's name, from another origin."""
    wrong = f"{plain(address)}/?token=AAAA"
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as stranger:
        for path in ("/", "/ws", "/static/", "/static/js/textual.js", "/download/x"):
            async with stranger.get(f"{plain(address)}{path}") as page:
                assert page.status == 403
        for url, headers in (
            (wrong, {}),
            (address, {"Host": "evil.example"}),
            (address, {"Origin": "http://a.example"}),
        ):
            async with stranger.get(url, headers=headers) as page:
                assert page.status == 403
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as owner, owner.get(address) as page:
        assert page.status == 200
        async with owner.get(plain(address), headers={"Origin": "http://a.example"}) as other:
            assert other.status == 403
    async with aiohttp.ClientSession() as late, late.get(address) as page:
        assert page.status == 403


@pytest.mark.parametrize("words", [["-", "--web"], ["sample:sql-retry-storm", "--web", "--json"]])
def test_what_needs_a_screen(words: list[str]) -> None:
    """One line, and exit code 2."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
    command = [sys.executable, "-m", "loopscope", "attach", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs a screen" in done.stderr
