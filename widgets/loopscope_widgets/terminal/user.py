"""What a user keeps between runs: the settings, which are only read here, and what was opened lately."""

from __future__ import annotations

import json
import os
from pathlib import Path

from loopscope.errors import UsageError
from loopscope.targets import STDIN, state_folder
from loopscope_widgets.terminal.keymap import Keymap, keymap

__all__ = ["RECENT", "load_keymap", "recent", "remember", "settings_file"]

RECENT = 20
"""Recordings that are remembered."""


def settings_file() -> Path:
    """The user's own settings; the file need not exist."""
    from platformdirs import user_config_path  # noqa: PLC0415 - once a start

    return user_config_path("loopscope", appauthor=False) / "config.toml"


def load_keymap() -> Keymap:
    """The keys as the user has them.

    Raises:
        UsageError: if the settings cannot be read, or ask for keys that do not exist or mean two things.
    """
    file = settings_file()
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return Keymap()
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from None
    import tomllib  # noqa: PLC0415 - few have such a file

    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    return keymap(settings["keymap"], str(file)) if "keymap" in settings else Keymap()


def _list() -> Path:
    return state_folder() / "recent.json"


def recent() -> list[str]:
    """Files that were opened, the newest first; those that are gone are left out."""
    try:
        found = json.loads(_list().read_text("utf-8"))
    except (OSError, ValueError):
        return []
    names = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    return [name for name in names if _is_file(name)][:RECENT]


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def remember(target: str) -> None:
    """A recording was opened: it is remembered if it is a file, and if that can be written."""
    if target == STDIN or not _is_file(target):
        return
    name = str(Path(target).absolute())
    _write([name, *(other for other in recent() if other != name)][:RECENT])


def _write(names: list[str]) -> None:
    file = _list()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        own = file.with_suffix(f".{os.getpid()}")
        own.write_text(json.dumps(names), "utf-8")
        own.replace(file)
    except (OSError, ValueError):
        return
