"""`attach --web`: the terminal debugger in a browser on this machine, for this user alone.

textual-serve runs the debugger and carries its screen; here is only who may see it. Whoever has the address has the
debugger, so it is bound to the loopback, its token works once and then lives in a cookie, and a page of another origin
gets nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from textual_serve.server import Server

__all__ = ["serve"]

_HOST = "127.0.0.1"
_NOT_YOURS = "This address is for one browser: use the one that loopscope printed, or start it again.\n"


def serve(arguments: list[str], title: str) -> None:
    """Serve the debugger until ctrl+c, and print where.

    Args:
        arguments: of `loopscope attach`.
        title: of the page.
    """
    listening = socket.create_server((_HOST, 0))
    own = _Own(shlex.join([sys.executable, "-m", "loopscope", "attach", *arguments]), listening, title)
    sys.stdout.write(f"{own.public_url}/?token={own.token}\n")
    sys.stdout.flush()
    sys.stderr.write("loopscope: open this address in a browser on this machine; ctrl+c ends it\n")
    own.serve()


class _Own(Server):
    """A server for the one who has the token."""

    def __init__(self, command: str, listening: socket.socket, title: str) -> None:
        self._listening = listening
        port = listening.getsockname()[1]
        super().__init__(command, host=_HOST, port=port, title=title, public_url=f"http://{_HOST}:{port}")
        self.token = secrets.token_urlsafe(32)
        self._spent = False
        self._secret = secrets.token_urlsafe(32)
        self._cookie = f"loopscope-{port}"

    def initialize_logging(self) -> None:
        """Nothing is logged: addresses and what is on the screen are the user's."""

    async def on_startup(self, app: web.Application) -> None:
        """The address is printed already."""

    async def _make_app(self) -> web.Application:
        made = await super()._make_app()
        made.middlewares.append(self._let_in)
        made.on_response_prepare.append(self._alone)
        return made

    @web.middleware
    async def _let_in(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """The token once, at the front door; from then on the cookie, from this very origin."""
        if request.host != f"{_HOST}:{self.port}" or request.headers.get("Origin", self.public_url) != self.public_url:
            return web.Response(status=403, text=_NOT_YOURS)
        given = request.query.get("token", "")
        if (
            request.path == "/"
            and given
            and not self._spent
            and hmac.compare_digest(given.encode(), self.token.encode())
        ):
            self._spent = True
            found = web.Response(status=302, headers={"Location": "/"})
            # A link in another page, as a terminal in a browser is one, sends no strict cookie after the redirect; a
            # lax one goes with nothing but such a visit, and who sends a socket's origin is asked above.
            found.set_cookie(self._cookie, self._secret, httponly=True, samesite="Lax")
            return found
        known = request.cookies.get(self._cookie, "")
        if not hmac.compare_digest(known.encode(), self._secret.encode()):
            return web.Response(status=403, text=_NOT_YOURS)
        return await handler(request)

    async def _alone(self, _request: web.Request, response: web.StreamResponse) -> None:
        """The page loads nothing from elsewhere, is in no frame, and tells nobody where it came from."""
        inline, data = "'self' 'unsafe-inline'", "'self' data:"
        response.headers["Content-Security-Policy"] = (
            f"default-src 'self'; connect-src ws://{_HOST}:{self.port}; script-src {inline}; style-src {inline}; "
            f"img-src {data}; font-src {data}; frame-ancestors 'none'; form-action 'none'"
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"

    def serve(self, debug: bool = False) -> None:  # noqa: FBT002 - textual-serve's signature
        """Until ctrl+c."""
        self.debug = debug
        loop: Any = asyncio.new_event_loop()
        web.run_app(self._make_app(), sock=self._listening, loop=loop, print=None)
