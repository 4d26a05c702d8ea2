"""`loopscope doctor`: what a bug report needs, and the one folder of state that loopscope keeps for a user."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import click

from loopscope.cli.options import json_option

__all__ = ["command"]

_OURS = ("dev", "browser")
"""The extras that are of use to those alone who work on loopscope."""
_PACKAGES = [
    "click",
    "langchain",
    "langchain-core",
    "langgraph",
    "msgspec",
    "networkx",
    "platformdirs",
    "PyYAML",
    "rich",
    "textual",
]


@click.command()
@click.option("--clean", is_flag=True, help="List and delete what is in the state folder.")
@json_option("Print one JSON object.")
def command(*, clean: bool, as_json: bool) -> None:
    """Show versions, terminal and folders; with --clean, empty the state folder."""
    from loopscope.recording.inert import inert
    from loopscope.targets import state_folder

    if clean:
        removed = _empty(state_folder())
        click.echo(
            json.dumps({"removed": removed}) if as_json else "\n".join(map(inert, removed)) or "nothing to remove"
        )
        return
    report = {"versions": _versions(), "extras": _extras(), "terminal": _terminal(), "paths": _paths()}
    if as_json:
        click.echo(json.dumps(report))
        return
    for section, entries in report.items():
        click.echo(section)
        for name, value in entries.items():
            click.echo(f"  {name:<16} {inert(value)}")


def _versions() -> dict[str, str]:
    from loopscope import __version__

    versions = {"loopscope": __version__, "python": f"{platform.python_version()} on {platform.platform(terse=True)}"}
    return versions | {name: _version(name) or "not installed" for name in _PACKAGES}


def _extras() -> dict[str, str]:
    """What each optional part of loopscope lacks, as far as its installation tells."""
    try:
        requirements = metadata.requires("loopscope") or []
    except metadata.PackageNotFoundError:
        return {}
    missing: dict[str, list[str]] = {}
    for requirement in requirements:
        name, _, extra = requirement.partition("extra == ")
        if (extra := extra.strip("\"') ")) not in ("", *_OURS):
            package = re.split(r"[^\w.-]", name, maxsplit=1)[0]
            missing.setdefault(extra, []).extend([] if _version(package) else [package])
    return {extra: f"lacks {', '.join(names)}" if names else "installed" for extra, names in missing.items()}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _terminal() -> dict[str, str]:
    columns, rows = shutil.get_terminal_size()
    ways = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    return {
        **{name: "terminal" if stream.isatty() else "no terminal" for name, stream in ways.items()},
        "TERM": os.environ.get("TERM", "not set"),
        "COLORTERM": os.environ.get("COLORTERM", "not set"),
        "NO_COLOR": os.environ.get("NO_COLOR", "not set"),
        "size": f"{columns} x {rows}",
        "encoding": sys.stdout.encoding,
        "debugger": _debugger(),
    }


def _debugger() -> str:
    from loopscope.cli.terminal import why_no_screen

    reason = why_no_screen()
    return f"plain text, since {reason}" if reason else "draws on this terminal"


def _paths() -> dict[str, str]:
    from loopscope.samples import samples_folder
    from loopscope.settings import find
    from loopscope.targets import state_folder
    from loopscope.views.words import plural, size

    state = state_folder()
    files = [file for file in state.rglob("*") if file.is_file()]
    project = find(Path.cwd())
    return {
        "loopscope": str(Path(__file__).parent.parent),
        "samples": str(samples_folder()),
        "policy file": str(project) if project else "none here or above",
        "state": f"{state} ({plural(len(files), 'file')}, {size(sum(file.stat().st_size for file in files))})",
    }


def _empty(folder: Path) -> list[str]:
    """Deletes what is in the folder, links as links, and names every file and folder that went."""
    removed = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            removed += _empty(path)
            path.rmdir()
        else:
            path.unlink()
        removed.append(str(path))
    return removed
