"""The tutorial, read and done: its files are written, its commands run in order, and they print what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?:^`(?P<file>[\w.]+)`\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"\s+# exits with (?P<code>\d+)$")


class Block(NamedTuple):
    """A block of the page."""

    kind: str
    text: str
    file: str | None


def blocks() -> list[Block]:
    """In order."""
    found = BLOCK.finditer(PAGE.read_text("utf-8"))
    return [Block(match["kind"], match["text"], match["file"]) for match in found]


def commands() -> Iterator[tuple[str, int]]:
    """Every command with its exit code, but for what installs."""
    for block in blocks():
        if block.kind == "sh":
            for line in block.text.splitlines():
                code = CODE.search(line)
                if not line.startswith("pip "):
                    yield CODE.sub("", line), int(code["code"]) if code else 0


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has installed loopscope."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in {"loopscope": "-m loopscope", "pytest": "-m pytest -p no:cacheprovider", "python": ""}.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    path = os.pathsep.join([str(ROOT), str(ROOT / "widgets")])
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "COLUMNS": "200"}


@pytest.mark.slow
def test_the_page_does_what_it_says(tmp_path: Path, shell: dict[str, str]) -> None:
    """Every file, every command with its exit code, every line of output."""
    folder = tmp_path / "shop"
    folder.mkdir()
    printed = ""
    for block in blocks():
        if block.kind == "python":
            assert block.file is not None
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.kind == "sh":
            printed = ""
            for line in block.text.splitlines():
                if line.startswith("pip "):
                    continue
                code = CODE.search(line)
                done = subprocess.run(
                    ["sh", "-c", CODE.sub("", line)], cwd=folder, env=shell, capture_output=True, text=True, check=False
                )
                assert done.returncode == (int(code["code"]) if code else 0), f"{line}\n{done.stdout}\n{done.stderr}"
                printed += done.stdout + done.stderr
        else:
            for line in block.text.splitlines():
                assert line.strip() in printed, f"{line!r} is not in:\n{printed}"


def test_the_page_has_all_its_parts() -> None:
    """Two files, the commands of five chapters, and output behind each of them."""
    kinds = [block.kind for block in blocks()]
    assert [block.file for block in blocks() if block.kind == "python"] == ["shop.py", "bounded.py"]
    assert kinds.count("sh") >= 8
    assert {"run", "replay", "explain", "lint", "whatif", "export-test"} <= {
        words[1] for line, _ in commands() if (words := line.split())[0] == "loopscope"
    }


@pytest.mark.parametrize("page", ["bounded-loops.md", "lint.md", "testing.md", "middleware.md"])
def test_the_code_of_the_pages_beside_it_is_python(page: str) -> None:
    """Every block of it."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    code = [match["text"] for match in BLOCK.finditer(text) if match["kind"] == "python"]
    assert code or page == "lint.md"
    for each in code:
        compile(each.replace("{...}", "{}"), page, "exec")


@pytest.mark.parametrize(("page", "verb"), [("lint.md", "lint"), ("testing.md", "export_test")])
def test_pages_name_the_options_that_there_are(page: str, verb: str) -> None:
    """All of them but those that every verb has, and no others."""
    from importlib import import_module

    command = import_module(f"loopscope.cli.{verb}").command
    known = {name for each in command.params for name in each.opts if name.startswith("--")}
    named = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "docs" / page).read_text("utf-8")))
    shared = {"--policy", "--set", "--channel", "--output"}
    assert named - shared <= known
    assert known - shared <= named
