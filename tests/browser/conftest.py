"""A real JupyterLab and a real browser, which `make test-browser` needs; nothing of the user's is read or written."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 120
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip


class Lab(NamedTuple):
    """A running server."""

    folder: Path
    port: int
    token: str

    def url(self, notebook: str) -> str:
        """Where a notebook of its folder is opened, with nothing else in the window."""
        return f"http://127.0.0.1:{self.port}/doc/tree/{notebook}?token={self.token}&reset"

    def write(self, name: str, *cells: str) -> str:
        """A notebook of these cells."""
        empty: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        written = [empty | {"id": f"cell-{place}", "source": cell} for place, cell in enumerate(cells)]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        made = {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        (self.folder / name).write_text(json.dumps(made))
        return name

    def end_kernels(self) -> None:
        """Nothing of a test runs beside the next one."""
        for kernel in json.loads(self._ask("GET", "kernels")):
            self._ask("DELETE", f"kernels/{kernel['id']}")

    def _ask(self, method: str, what: str) -> bytes:
        headers = {"Authorization": f"token {self.token}"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/{what}", headers=headers, method=method)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:  # noqa: S310 - the server that was started here
            found: bytes = answer.read()
        return found


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One server for all tests."""
    folder = tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = Lab(folder, port, secrets.token_hex(16))
    home = tmp_path_factory.mktemp("jupyter")
    settings = {name: str(home / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    # Else it asks whether it may bring news, in front of whatever is to be clicked.
    quiet = home / "JUPYTER_CONFIG_DIR" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    paths = os.pathsep.join([str(ROOT), str(ROOT / "widgets")])
    options = {
        "IdentityProvider.token": found.token, "ServerApp.root_dir": str(folder),
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate", "LabApp.expose_app_in_browser": "True",
    }  # fmt: skip
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip", "127.0.0.1"]
    command += ["--port", str(port), *(f"--{name}={value}" for name, value in options.items())]
    log = (home / "log").open("w+")
    with subprocess.Popen(command, env=os.environ | settings | {"PYTHONPATH": paths}, stdout=log, stderr=log) as server:
        try:
            _answers(f"http://127.0.0.1:{port}/api?token={found.token}", server, home / "log")
            yield found
        finally:
            server.terminate()
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()


def _answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - the server that was started here
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    # Only `make test-browser` installs it.
    sync_playwright: Any = import_module("playwright.sync_api").sync_playwright
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail("needs Chromium: apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, lab: Lab) -> Iterator[Any]:
    """A window; what runs in it ends with it."""
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    window = context.new_page()
    window.set_default_timeout(PATIENCE * 1000)
    yield window
    context.close()
    lab.end_kernels()
