"""A graph by its name, `MODULE:GRAPH`: the module is imported, as a web server imports its application.

The user names it himself, so its code is his; nothing else is imported. What it prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from loopscope.errors import UsageError
from loopscope.recording.inert import inert

__all__ = ["load"]

_FORM = "name it as MODULE:GRAPH, for example my_app.agents:graph, or FILE.py:graph"


def load(reference: str) -> Any:
    """The compiled graph of this name; a builder is compiled, a function without parameters is called (and awaited).

    Args:
        reference: `package.module:name`, `folder/file.py:name`; the name may be dotted.

    Raises:
        UsageError: if there is no such module or name, importing it fails, or what is there is no graph.
    """
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{inert(reference, 200)}: {_FORM}")
    with contextlib.redirect_stdout(sys.stderr):
        module = _module(place)
        found = _member(module, name, reference)
        return _compiled(found, reference)


def _module(place: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {inert(place, 200)} in this folder or installed; {_FORM}") from None
        raise _failed(place, error) from error
    except Exception as error:
        raise _failed(place, error) from error


def _from_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise ModuleNotFoundError(name=str(file))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:  # pragma: no cover - the name ends in .py
        raise ModuleNotFoundError(name=str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec.loader.exec_module(module)
    return module


def _failed(place: str, error: Exception) -> UsageError:
    said = inert(f"{type(error).__name__}: {error}", 300)
    return UsageError(f"importing {inert(place, 200)} failed: {said}; run it with Python to see where")


def _member(module: ModuleType, name: str, reference: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"did you mean {near[0]}?" if near else _FORM
            raise UsageError(f"{inert(reference, 200)}: there is no {inert(part, 100)}; {hint}")
        found = getattr(found, part)
    return found


def _compiled(given: Any, reference: str) -> Any:
    found: Any = given
    if callable(given) and not hasattr(given, "get_graph") and not hasattr(given, "compile"):
        try:
            found = given()
            if inspect.iscoroutine(found):
                found = asyncio.run(found)
        except Exception as error:
            said = inert(f"{type(error).__name__}: {error}", 300)
            raise UsageError(f"calling {inert(reference, 200)}() failed: {said}; lint takes a graph") from error
    if not hasattr(found, "get_graph") and hasattr(found, "compile"):
        found = found.compile()
    if not hasattr(found, "get_graph") or not hasattr(found, "nodes") or not hasattr(found, "channels"):
        raise UsageError(f"{inert(reference, 200)} is a {type(found).__name__}, no LangGraph graph; {_FORM}")
    return found
