"""The tutorial notebook runs from top to bottom, offline, and says what the kept one says."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "make_notebook.py"))


def kept() -> dict[str, Any]:
    """The notebook that readers get."""
    found: dict[str, Any] = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))
    return found


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def said(notebook: dict[str, Any]) -> list[str]:
    """What its cells print and show as text, without what is new each time."""
    texts: list[str] = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            text = "".join(output.get("text") or output.get("data", {}).get("text/plain") or "")
            texts.append(re.sub(r"\b[0-9a-f]{32}\b|\d+\.\d+s", "…", text))
    return ["".join(texts)]


def test_it_is_the_one_that_its_script_makes() -> None:
    """Cell by cell, with the agent of the page for the terminal."""
    made = [(cell["cell_type"], source(cell)) for cell in SCRIPT["cells"]()]
    assert [(cell["cell_type"], source(cell)) for cell in kept()["cells"]] == made
    assert len(made) > 20


def test_its_static_outputs_stand_without_a_kernel() -> None:
    """A picture and a table for each session, and no script, style sheet or address that is loaded."""
    fragments = [
        "".join(output["data"]["text/html"])
        for cell in kept()["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert len(fragments) == 2
    for fragment in fragments:
        assert 'src="data:image/svg+xml;base64,' in fragment
        assert "<table>" in fragment
        assert not re.search(r"<script|<style|<link|(src|href)=\"http", fragment)
    assert "widgets" not in kept()["metadata"]


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel without a browser; its cells say what the kept ones say."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'widgets'}")
    assert said(SCRIPT["run"](tmp_path)) == said(kept())
