"""`loopscope doctor`: the report, and the cleaning of the one state folder."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from loopscope.targets import state_folder
from tests.cli.conftest import Cli


def test_the_report_names_versions_terminal_and_folders(cli: Cli, tmp_path: Path) -> None:
    """What a bug report needs, for people and as JSON."""
    (tmp_path / "loopscope.toml").write_text("hard_limit = 9\n")
    report = json.loads(cli("doctor", "--json").out)
    assert report["versions"]["textual"] == version("textual")
    assert report["terminal"]["stdout"] == "no terminal"
    assert report["terminal"]["debugger"].startswith("plain text, since ")
    assert report["paths"]["policy file"] == str(tmp_path / "loopscope.toml")
    assert report["paths"]["state"] == f"{state_folder()} (0 files, 0 B)"
    assert not {"dev", "browser"} & set(report["extras"])
    shown = cli("doctor").out
    assert all(section in shown.splitlines() for section in report)


def test_clean_lists_and_removes_only_what_is_in_the_state_folder(cli: Cli, tmp_path: Path) -> None:
    """A link in it goes, what it leads to stays."""
    state = state_folder()
    (state / "inner").mkdir(parents=True)
    (state / "inner" / "a").write_text("x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (state / "link").symlink_to(outside)
    removed = cli("doctor", "--clean").out.splitlines()
    assert removed == [str(state / "inner" / "a"), str(state / "inner"), str(state / "link")]
    assert list(state.iterdir()) == []
    assert (outside / "kept").exists()
    assert cli("doctor", "--clean").out == "nothing to remove\n"
    assert json.loads(cli("doctor", "--clean", "--json").out) == {"removed": []}
