"""Tools that several samples need, working on real files in the stage's folder: paths in texts are relative to it."""

from __future__ import annotations

from pathlib import Path

from langchain_core.tools import BaseTool, tool

__all__ = ["list_files", "read_file", "search_code", "str_replace"]


def read_file(folder: Path) -> BaseTool:
    """A reader of whole files, or of some lines."""

    @tool
    def read_file(path: str, start_line: int | None = None, end_line: int | None = None) -> str:
        """Read a file, or some of its lines, counted from 1."""
        lines = (folder / path).read_text("utf-8").splitlines()
        return "\n".join(lines[(start_line or 1) - 1 : end_line])

    return read_file


def list_files(folder: Path) -> BaseTool:
    """A lister."""

    @tool
    def list_files(path: str = ".") -> str:
        """List the files below a folder."""
        found = sorted(file.relative_to(folder).as_posix() for file in (folder / path).rglob("*") if file.is_file())
        return "\n".join(found)

    return list_files


def search_code(folder: Path) -> BaseTool:
    """A plain search."""

    @tool
    def search_code(pattern: str) -> str:
        """Find the lines that contain a text."""
        hits = [
            f"{file.relative_to(folder).as_posix()}:{number}: {line.strip()}"
            for file in sorted(folder.rglob("*.py"))
            for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
            if pattern in line
        ]
        return "\n".join(hits) or "no matches"

    return search_code


def str_replace(folder: Path) -> BaseTool:
    """An editor."""

    @tool
    def str_replace(path: str, old: str, new: str) -> str:
        """Replace a text that occurs once in a file."""
        file = folder / path
        text = file.read_text("utf-8")
        if text.count(old) != 1:
            return f"no change: {old!r} occurs {text.count(old)} times"
        file.write_text(text.replace(old, new), "utf-8")
        return f"edited {path}"

    return str_replace
