"""The private folder: made closed, and never trusted where anybody else could have a hand in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopscope.errors import CannotAttachError
from loopscope.link.folder import _candidates, flaw, folders, open_folder

CANDIDATES = _candidates
"""The real places: other tests look into one alone."""
NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's runtime folder, and no other place to fall back to but the one beside it."""
    short = tmp_path_factory.mktemp("f")
    place = short / "run"
    place.mkdir(mode=0o700)
    fallback = short / "tmp"
    fallback.mkdir()
    fallback.chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setattr("loopscope.link.folder._candidates", CANDIDATES)
    monkeypatch.setattr("loopscope.link.folder.tempfile.gettempdir", lambda: str(fallback))
    return place


def test_it_is_made_private(runtime: Path) -> None:
    """Whatever the umask is."""
    before = os.umask(0)
    try:
        folder = open_folder()
    finally:
        os.umask(before)
    assert folder == runtime / "loopscope"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder in folders()


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_one_that_is_open_to_others_is_not_used(runtime: Path, mode: int) -> None:
    """Somebody may have put something there; the next place is taken."""
    folder = runtime / "loopscope"
    folder.mkdir()
    folder.chmod(mode)
    assert open_folder() != folder
    assert folder not in folders()
    assert "chmod 700" in (flaw(folder) or "")


def test_a_link_is_not_followed(runtime: Path, tmp_path: Path) -> None:
    """Not even to a folder that is private."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (runtime / "loopscope").symlink_to(elsewhere)
    assert open_folder() != runtime / "loopscope"
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_its_place_is_not_used(runtime: Path) -> None:
    """It is left as it is."""
    (runtime / "loopscope").write_text("mine")
    assert open_folder() != runtime / "loopscope"
    assert (runtime / "loopscope").read_text() == "mine"


@needs_root
def test_one_of_another_user_is_not_used(runtime: Path) -> None:
    """Though its name is right and its mode is closed."""
    folder = runtime / "loopscope"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    assert open_folder() != folder
    assert "belongs to user 65534" in (flaw(folder) or "")


@needs_root
def test_a_runtime_folder_of_another_user_is_passed_over(runtime: Path) -> None:
    """As after `sudo` with the environment kept: nothing is put into the other one's folder."""
    os.chown(runtime, NOBODY, NOBODY)
    assert runtime not in open_folder().parents
    assert list(runtime.iterdir()) == []


def test_a_folder_that_others_can_replace_is_not_used(runtime: Path) -> None:
    """Whoever may write to the folder around it could put another one in its place."""
    runtime.chmod(0o777)
    assert open_folder() != runtime / "loopscope"
    runtime.chmod(0o1777)
    assert open_folder() == runtime / "loopscope"


def test_a_path_that_is_too_long_for_a_socket_is_passed_over(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sockets take about a hundred bytes."""
    deep = tmp_path / ("d" * 90)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    assert deep not in open_folder().parents
    assert runtime.exists()


@pytest.mark.usefixtures("runtime")
def test_where_there_is_no_safe_place_each_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with what is wrong and what to do."""
    monkeypatch.setattr("loopscope.link.folder.flaw", lambda folder: f"is wrong ({folder.name})")
    with pytest.raises(CannotAttachError) as caught:
        open_folder()
    assert str(caught.value).count("is wrong") >= 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["", "relative/path", "/does/not/exist"])
def test_a_useless_setting_is_ignored(runtime: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder for temporary files is there for that."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    folder = open_folder()
    assert folder.name.startswith("loopscope")
    assert runtime not in folder.parents
