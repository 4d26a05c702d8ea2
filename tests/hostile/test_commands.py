from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from loopscope.recording.inert import inert
from tests.cli.conftest import Cli, Outcome
from tests.hostile.corpus import COUNT, EACH, foreign, recording, strings
from tests.views.web.reading import Elements

FEW = 5
WHICH = [pytest.param(index, marks=[pytest.mark.slow] if index % FEW else []) for index in range(COUNT // EACH)]
PRINTING = (
    ("replay",),
    ("replay", "--json"),
    ("replay", "--verify"),
    ("explain",),
    ("explain", "--json"),
    ("whatif", "--set", "hard_limit=9"),
    ("whatif", "--set", "hard_limit=9", "--json"),
    ("tune",),
    ("tune", "--presets"),
    ("attach",),
    ("attach", "--ascii"),
    ("config", "show"),
    ("config", "show", "--json"),
    ("config", "export", "--format", "toml"),
    ("config", "export", "--format", "yaml"),
    ("config", "export", "--format", "json"),
    ("config", "export", "--format", "python"),
)


def safe(outcome: Outcome) -> None:
    """Nothing in what a command says acts on a terminal, and it says what is wrong instead of falling over."""
    for written in (outcome.out, outcome.err):
        assert foreign(written.replace("\n", "")) == "", ascii(foreign(written.replace("\n", "")))
    assert "Traceback" not in outcome.err
    assert outcome.code in (0, 2, 3, 4, 5)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[int], str]:
    """One of the recordings, in the folder where commands are called."""

    def write(index: int) -> str:
        (tmp_path / "run.jsonl").write_bytes(recording(index))
        return "run.jsonl"

    return write


@pytest.mark.parametrize("index", WHICH)
def test_what_commands_print_is_inert(cli: Cli, file: Callable[[int], str], index: int) -> None:
    """Tables, explanations, comparisons, the view as text, policies in four languages, and complaints about lines."""
    name = file(index)
    for command in PRINTING:
        outcome = cli(*command, name)
        safe(outcome)
        assert outcome.out or outcome.code


@pytest.mark.parametrize("index", WHICH)
def test_an_import_is_the_recording_and_prints_nothing_of_it(cli: Cli, file: Callable[[int], str], index: int) -> None:
    """The decisions on the copy are those on the original."""
    name = file(index)
    outcome = cli("import", name, "-o", "copy.jsonl")
    safe(outcome)
    assert cli("replay", "--json", "copy.jsonl").out == cli("replay", "--json", name).out


@pytest.mark.parametrize("index", WHICH)
def test_pages_and_pictures_hold_nothing_but_text(cli: Cli, file: Callable[[int], str], index: int) -> None:
    """No foreign element, attribute or address, and no character that a browser would obey; well-formed as XML."""
    name = file(index)
    for kind in ("--html", "--svg"):
        outcome = cli("export", name, kind, "-")
        safe(outcome)
        usual = {tag for tag, _ in Elements(cli("export", "sample:parallel-subagents", kind, "-").out).found}
        for tag, attributes in Elements(outcome.out).found:
            assert tag in usual | {"ul", "li", "ol"}
            for attribute, value in attributes:
                assert not attribute.startswith("on")
                assert attribute not in ("href", "src") or re.fullmatch(r"#[\w-]+", value or ""), (
                    tag,
                    attribute,
                    value,
                )
        ET.fromstring(outcome.out.removeprefix("<!doctype html>\n"))  # noqa: S314 - our own page


NAMES = [text for text in strings() if "/" not in text and "\0" not in text and len(os.fsencode(inert(text))) < 200][
    :60
]


@pytest.mark.parametrize("command", ["replay", "explain", "attach", "whatif", "export", "import", "config show"])
def test_names_of_files_are_inert(cli: Cli, tmp_path: Path, command: str) -> None:
    """A file may be called anything: where it is, where it is not, and where it is no recording."""
    for number, text in enumerate(NAMES[::3]):
        try:
            name = os.fsencode(text)[:200]
        except UnicodeEncodeError:
            name = text.encode("utf-8", "surrogatepass")[:200]
        path = Path(os.fsdecode(name))
        words = (*command.split(), *(("-o", "copy.jsonl", "--force") if command == "import" else ()), "--", path)
        safe(cli(*words))
        (tmp_path / path).write_bytes(b"no recording" if number % 2 else recording(0)[:20_000])
        safe(cli(*words))


def test_policies_are_inert(cli: Cli, tmp_path: Path) -> None:
    """Fields, values and comments of a policy file, and what is set by hand, in what is said of them."""
    for number, text in enumerate(strings()[::7]):
        quoted = "".join(f"\\u{ord(c):04x}" if ord(c) < 0xD800 else "" for c in text[:50])
        (tmp_path / "bad.toml").write_text(
            f'warn_threshold = "{quoted}"\n"{quoted}" = 1\nidentity = "{quoted}"\n'
            f'[tool_freq_overrides."{quoted}"]\nwarn = 1\nhard_limit = "{quoted}"\n'
        )
        outcome = cli("config", "check", "bad.toml")
        safe(outcome)
        assert outcome.code == 2
        safe(cli("replay", "sample:sql-retry-storm", "--policy", "bad.toml"))
        safe(cli("replay", "sample:sql-retry-storm", "--set", f"{text.replace(chr(0), '')[:100]}={number}"))
        safe(cli("config", "show", "--policy", text.replace("\0", "")[:100] or "x"))
