"""What every test relies on: no setting of the machine it runs on, and the same examples each time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from loopscope.link import folder

ROOT = Path(__file__).parent.parent

settings.register_profile("loopscope", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("loopscope")


@pytest.fixture(autouse=True)
def _own_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees the user's settings, colours, state folder or running programs."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("LOOPSCOPE")]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TEXTUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    # Sockets are in it, whose paths have room for a hundred bytes.
    runtime = tempfile.mkdtemp(prefix="ls-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    # Whatever else of this user's runs on the machine, in the folder of last resort, is nobody's business here.
    monkeypatch.setattr(folder, "_candidates", lambda: iter([Path(os.environ["XDG_RUNTIME_DIR"]) / "loopscope"]))
    yield
    monkeypatch.undo()
    shutil.rmtree(runtime, ignore_errors=True)
