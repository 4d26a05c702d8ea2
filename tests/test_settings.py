"""Policy files and flags: which limit is in force, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopscope.engine.events import Batch, Header, PolicySet
from loopscope.engine.policy import PRESETS, Limits, Policy
from loopscope.engine.sections import COUNTERS
from loopscope.errors import PolicyError
from loopscope.settings import Choice, find, load_policy, load_settings

TOML = """\
# limits of the staging agents
hard_limit = 9
"warn_threshold" = 5 # quoted on purpose
tool_freq_overrides.dotted = {warn = 1, hard_limit = 2}

[tool_freq_overrides."a.b"]
warn = 3
hard_limit = 5

[identity_fields]
web = [
  "url", # a bracket ] in a comment
  "b]\\"",
]
last = ['x']
"""
YAML = """\
models:
  - name: !Secret gpt
loop_detection:
  enabled: true
  hard_limit: 7
  tool_freq_overrides:
    on: {warn: 3, hard_limit: 4}
    bash:
      warn: 1
      hard_limit: 300
"""
JSON = """\
{
  "hard_limit":
     9, "warn_threshold": 4,
  "identity_fields": {"a\\"b": ["x", "}"]},
  "tool_freq_overrides": {"bash": [2, 3],
     "q": {
        "warn": 1, "hard_limit": 2}}
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return name


def _problems(name: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_policy(name)
    return [str(problem) for problem in caught.value.problems]


def test_toml_gives_each_limit_the_line_of_its_own_key(here: Path) -> None:
    """Dotted keys, quoted keys, inline tables, sub-tables and arrays over several lines are all located."""
    settings = load_settings(_write(here, "p.toml", TOML))
    assert settings.policy.tool_freq_overrides == {"dotted": Limits(1, 2), "a.b": Limits(3, 5)}
    assert settings.policy.identity_fields == {"web": ("url", 'b]"'), "last": ("x",)}
    assert settings.origins == {
        "hard_limit": "p.toml:2",
        "warn_threshold": "p.toml:3",
        "tool_freq_overrides.dotted.warn": "p.toml:4",
        "tool_freq_overrides.dotted.hard_limit": "p.toml:4",
        "tool_freq_overrides.a.b.warn": "p.toml:7",
        "tool_freq_overrides.a.b.hard_limit": "p.toml:8",
        "identity_fields.web": "p.toml:11",
        "identity_fields.last": "p.toml:15",
    }
    assert settings.origin("window_size") == "default"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('note = """\nhard_limit = 1\n"""\nhard_limit = 9\n', 4),
        ("note = '''\nhard_limit = 1'''\nhard_limit = 9\n", 3),
        ('note = """ends in quotes"""""\nhard_limit = 9\n', 2),
        ("[[note]]\nhard_limit = 1\n[[note]]\nhard_limit = 2\n", None),
        ("note = [1, [2, {hard_limit = 3}],\n 4]\nhard_limit = 9\n", 3),
        ("note = 2026-11-30T10:00:00Z\nhard_limit = 9", 2),
        ("\r\n# windows\r\nhard_limit = 9\r\n", 3),
        ("\ufeffhard_limit = 9\n", 1),
    ],
)
def test_toml_values_are_never_taken_for_keys(here: Path, text: str, line: int | None) -> None:
    """Text, arrays, dates and tables of another name that hold our key's name do not move its line."""
    problems = _problems(_write(here, "p.toml", text.replace("= 9", "= 0")))
    ours = [problem for problem in problems if "hard_limit: must be a whole number" in problem]
    assert ours == ([f"p.toml:{line}: hard_limit: must be a whole number from 1, is 0"] if line else [])


def test_yaml_of_deerflow_is_read_from_its_section(here: Path) -> None:
    """Other sections, their private tags too, are passed over; a tool that YAML takes for a boolean keeps its name."""
    settings = load_settings(_write(here, "config.yaml", YAML))
    assert settings.policy == Policy(hard_limit=7, tool_freq_overrides={"on": Limits(3, 4), "bash": Limits(1, 300)})
    assert settings.origins == {
        "hard_limit": "config.yaml:5",
        "tool_freq_overrides.on.warn": "config.yaml:7",
        "tool_freq_overrides.on.hard_limit": "config.yaml:7",
        "tool_freq_overrides.bash.warn": "config.yaml:9",
        "tool_freq_overrides.bash.hard_limit": "config.yaml:10",
    }


def test_yaml_merge_keys_are_followed_to_their_line(here: Path) -> None:
    """A limit that comes from an anchor has the anchor's line; one beside the merge wins."""
    text = "tool_freq_overrides:\n  a: &a\n    warn: 2\n    hard_limit: 4\n  b:\n    <<: *a\n    hard_limit: 6\n"
    settings = load_settings(_write(here, "p.yml", text))
    assert settings.policy.tool_freq_overrides["b"] == Limits(2, 6)
    assert settings.origin("tool_freq_overrides.b.warn") == "p.yml:3"
    assert settings.origin("tool_freq_overrides.b.hard_limit") == "p.yml:7"


def test_json_gives_each_limit_the_line_of_its_own_key(here: Path) -> None:
    """A value on another line, pairs, nested objects and strings with brackets do not disturb the count."""
    settings = load_settings(_write(here, "p.json", JSON))
    assert settings.policy.tool_freq_overrides == {"bash": Limits(2, 3), "q": Limits(1, 2)}
    assert settings.origins == {
        "hard_limit": "p.json:2",
        "warn_threshold": "p.json:3",
        'identity_fields.a"b': "p.json:4",
        "tool_freq_overrides.bash.warn": "p.json:5",
        "tool_freq_overrides.bash.hard_limit": "p.json:5",
        "tool_freq_overrides.q.warn": "p.json:7",
        "tool_freq_overrides.q.hard_limit": "p.json:7",
    }


@pytest.mark.parametrize("name", ["p.toml", "p.yaml", "p.json"])
def test_an_empty_file_is_the_default_policy(here: Path, name: str) -> None:
    """A file that sets nothing changes nothing."""
    assert load_policy(_write(here, name, "\n")) == Policy()


def test_every_problem_is_told_at_once_with_its_line(here: Path) -> None:
    """Unknown names come with the nearest valid one, and a hard limit below its warning names the line of either."""
    name = _write(here, "p.toml", 'warn_treshold = 4\nwindow_size = "x"\ntool_freq_warn = 90\n')
    assert _problems(name) == [
        "p.toml:1: warn_treshold: unknown setting, did you mean warn_threshold?",
        "p.toml:2: window_size: must be a whole number, is 'x'",
        "p.toml:3: tool_freq_hard_limit: must be at least tool_freq_warn (90), is 50",
    ]


def test_problems_come_in_the_order_of_the_lines(here: Path) -> None:
    """Whatever kind they are of."""
    text = "window_size = 0\nwarn_treshold = 4\n\n[budget]\ntool_calls = { limit = -1, warn = 2 }\n"
    places = [problem.split(": ")[0] for problem in _problems(_write(here, "p.toml", text))]
    assert places == ["p.toml:1", "p.toml:2", "p.toml:5", "p.toml:5"]


def test_a_missing_limit_is_told_at_its_table(here: Path) -> None:
    """What is not there has no line; the table around it has."""
    name = _write(here, "p.toml", "\n[tool_freq_overrides.bash]\nwarn = 1\n")
    assert _problems(name) == ["p.toml:2: tool_freq_overrides.bash.hard_limit: is missing"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.toml", "a = 1\nb = = 2\n", "p.toml:2: is not TOML: Invalid value"),
        ("p.toml", "a = 1\na = [", "p.toml:2: is not TOML: "),
        ("p.json", '{"a": 1,\n}', "p.json:"),
        ("p.json", '{"a": 1,\n "a": 2}', "p.json:2: a: is set more than once"),
        ("p.json", "[1]", "p.json: must be a table of settings, is [1]"),
        ("p.json", "[" * 100_000, "p.json: is nested too deeply"),
        ("p.yaml", "a: 1\n b: [\n", "p.yaml:2: is not YAML: mapping values are not allowed here"),
        ("p.yaml", "a: 1\nb: !python 3\n", "p.yaml:2: is not YAML: could not determine a constructor"),
        ("p.yaml", "a: 1\na: 2\n", "p.yaml:2: a: is set more than once"),
        ("p.yaml", "a: \x07\n", "p.yaml:1: is not YAML: "),
        ("p.yaml", "a: 2026-13-45\n", "p.yaml:1: is not YAML: month must be in 1..12"),
        ("p.yaml", "loop_detection: 3\n", "p.yaml: must be a table of settings, is 3"),
        ("p.conf", "a: 1", "p.conf: a policy file ends in .toml, .yaml, .yml, .json"),
        ("pyproject.toml", "[project]\nname = 'x'\n", "pyproject.toml: has no [tool.loopscope]"),
    ],
)
def test_a_malformed_file_names_file_line_and_reason(here: Path, name: str, text: str, message: str) -> None:
    """Whatever is wrong with the file, the message begins with where."""
    [problem] = _problems(_write(here, name, text))
    assert problem.startswith(message)


def test_a_file_that_is_not_utf8_names_the_line(here: Path) -> None:
    """Bytes that are no text are a problem of the file, not a traceback."""
    (here / "p.toml").write_bytes(b"# ok\nhard_limit = 9 # \xff\n")
    assert _problems("p.toml") == ["p.toml:2: is not UTF-8"]


def test_a_missing_file_or_preset_names_the_nearest(here: Path) -> None:
    """A misspelt preset and a misspelt file name each get their own hint."""
    _write(here, "strict.toml", "")
    assert _problems("deerflo") == ["deerflo: no such policy file or preset; did you mean deerflow?"]
    assert _problems("zzz") == [f"zzz: no such policy file or preset; presets are {', '.join(PRESETS)}"]
    assert _problems("strct.toml") == [
        "strct.toml: cannot be read: No such file or directory; did you mean strict.toml?"
    ]
    assert _problems("no/such/p.toml") == ["no/such/p.toml: cannot be read: No such file or directory"]


def test_the_policy_page_names_every_setting_and_preset() -> None:
    """Nothing can be set that a user cannot look up."""
    page = (Path(__file__).parents[1] / "docs" / "policy.md").read_text("utf-8")
    assert [name for name in Policy.__struct_fields__ if f"`{name}" not in page] == []
    assert [name for name in PRESETS if f"- `{name}`:" not in page] == []
    assert [name for name in COUNTERS if f"`{name}`" not in page] == []


def test_policy_load_reads_files_and_presets(here: Path) -> None:
    """The public way in is the same as the command line's."""
    assert Policy.load("deerflow") == Policy()
    assert Policy.load(_write(here, "p.toml", "hard_limit = 6\n")).hard_limit == 6


def test_the_nearest_file_above_is_found(here: Path) -> None:
    """`loopscope.toml` or a pyproject.toml with our table; one without it, or a broken one, is passed over."""
    inner = here / "a" / "b"
    inner.mkdir(parents=True)
    (here / "pyproject.toml").write_text("[tool.loopscope]\nhard_limit = 8\n")
    (here / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert find(inner) == here / "pyproject.toml"
    (inner / "pyproject.toml").write_text("[tool.loop")
    assert find(inner) == here / "pyproject.toml"
    (here / "a" / "loopscope.toml").write_text("hard_limit = 7\n")
    assert find(inner) == here / "a" / "loopscope.toml"


def test_the_project_file_is_read_with_its_true_lines(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of a pyproject.toml count from its top; the name is the way from the working directory."""
    (here / "pyproject.toml").write_text("[project]\nname = 'x'\n\n[tool.loopscope]\nhard_limit = 8\n")
    inner = here / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    settings = Choice.of(project=inner).settings
    assert settings.policy.hard_limit == 8
    assert settings.origins == {"hard_limit": str(Path("..") / "pyproject.toml") + ":5"}


def test_flags_beat_the_recording_which_beats_the_project(here: Path) -> None:
    """A project's file does not touch a recording that has a policy; `--set` changes one limit of it."""
    (here / "loopscope.toml").write_text("hard_limit = 8\n")
    recorded = {"hard_limit": 12, "warn_threshold": 4, "of_a_later_version": True}
    plain = Choice.of(project=here)
    assert plain.over(None).policy == Policy(hard_limit=8)
    assert plain.over(recorded).policy == Policy(hard_limit=12, warn_threshold=4)
    assert plain.over(recorded).origins == {"hard_limit": "recording", "warn_threshold": "recording"}
    flags = Choice.of(sets=["hard_limit=9"], project=here)
    assert flags.over(recorded).policy == Policy(hard_limit=9, warn_threshold=4)
    assert flags.over(recorded).origins == {"hard_limit": "--set hard_limit=9", "warn_threshold": "recording"}


def test_a_policy_flag_is_a_whole_policy(here: Path) -> None:
    """What the file does not name has its default, not the recording's value."""
    name = _write(here, "p.toml", "warn_threshold = 2\n")
    settings = Choice.of(policy=name, sets=["window_size=7"], project=here).over({"hard_limit": 12})
    assert settings.policy == Policy(warn_threshold=2, window_size=7)
    assert settings.origins == {"warn_threshold": "p.toml:1", "window_size": "--set window_size=7"}


def test_a_preset_is_named_as_the_origin() -> None:
    """Limits of `--policy deerflow` say so."""
    assert Choice.of(policy="deerflow").settings.origin("hard_limit") == "preset deerflow"


@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("hard_limit=9", "hard_limit", 9),
        (" hard_limit = 9 ", "hard_limit", 9),
        ("hard_limit=1_0", "hard_limit", 10),
        ("identity=full_args", "identity", "full_args"),
        ('identity="full_args"', "identity", "full_args"),
        ('identity_fields.web=["url", "q"]', "identity_fields", {"web": ("url", "q")}),
        ("identity_fields.my.web=['url']", "identity_fields", {"my.web": ("url",)}),
        ("tool_freq_overrides.bash={warn = 2, hard_limit = 4}", "tool_freq_overrides", {"bash": Limits(2, 4)}),
        ("tool_freq_overrides.bash=[2, 4]", "tool_freq_overrides", {"bash": Limits(2, 4)}),
        ("tool_freq_overrides.bash.hard_limit=300", "tool_freq_overrides", {"bash": Limits(30, 300)}),
        ("tool_freq_overrides.my.bash.warn=3", "tool_freq_overrides", {"my.bash": Limits(3, 50)}),
        ('tool_freq_overrides."a=b.c".warn=3', "tool_freq_overrides", {"a=b.c": Limits(3, 50)}),
    ],
)
def test_set_reads_json_toml_and_text(flag: str, field: str, value: object) -> None:
    """Dotted keys, quoted or plain tool names with dots, and values of each notation."""
    assert getattr(Choice.of(sets=[flag]).settings.policy, field) == value


def test_half_a_tool_limit_takes_the_general_one_and_its_origin(here: Path) -> None:
    """`--set tool_freq_overrides.bash.hard_limit=300` alone is enough."""
    (here / "loopscope.toml").write_text("tool_freq_warn = 40\n[tool_freq_overrides]\nweb = [1, 2]\n")
    settings = Choice.of(
        sets=["tool_freq_overrides.bash.hard_limit=300", "tool_freq_overrides.web.hard_limit=5"], project=here
    ).settings
    assert settings.policy.tool_freq_overrides == {"bash": Limits(40, 300), "web": Limits(1, 5)}
    assert settings.origins == {
        "tool_freq_warn": "loopscope.toml:1",
        "tool_freq_overrides.web.warn": "loopscope.toml:3",
        "tool_freq_overrides.web.hard_limit": "--set tool_freq_overrides.web.hard_limit=5",
        "tool_freq_overrides.bash.warn": "loopscope.toml:1",
        "tool_freq_overrides.bash.hard_limit": "--set tool_freq_overrides.bash.hard_limit=300",
    }


def test_a_later_flag_wins_and_replaces_a_table() -> None:
    """Flags apply in their order; a table set whole forgets what single flags said of it."""
    settings = Choice.of(
        sets=["hard_limit=9", "hard_limit=8", "tool_freq_overrides.a.warn=2", "tool_freq_overrides={b = [3, 4]}"]
    ).settings
    assert settings.policy == Policy(hard_limit=8, tool_freq_overrides={"b": Limits(3, 4)})
    assert settings.origin("hard_limit") == "--set hard_limit=8"
    assert settings.origin("tool_freq_overrides.b.warn") == "--set tool_freq_overrides={b = [3, 4]}"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["hard_limit"], "--set hard_limit: write KEY=VALUE, for example hard_limit=9"),
        (["=3"], "--set =3: write KEY=VALUE, for example hard_limit=9"),
        (["a..b=3"], "--set a..b=3: write KEY=VALUE, for example hard_limit=9"),
        (["hard_limt=9"], "--set hard_limt=9: hard_limt: unknown setting, did you mean hard_limit?"),
        (["budget.call.limit=9"], "--set budget.call.limit=9: budget.call: unknown setting, did you mean budget.tool_"),
        (["hard_limit=2"], "--set hard_limit=2: hard_limit: must be at least warn_threshold (3), is 2"),
        (["warn_threshold=9"], "--set warn_threshold=9: hard_limit: must be at least warn_threshold (9), is 5"),
        (
            ["error_streak.warn=4", "error_streak.hard_limit=2"],
            "--set error_streak.hard_limit=2: error_streak.hard_limit: must be at least",
        ),
        (["hard_limit.x=2"], "--set hard_limit.x=2: hard_limit.x: hard_limit has no settings of its own"),
        (["hard_limit=many"], "--set hard_limit=many: hard_limit: must be a whole number, is 'many'"),
        (["hard_limit", "x"], "--set hard_limit: write KEY=VALUE, for example hard_limit=9; --set x: write KEY"),
    ],
)
def test_a_wrong_flag_is_named_as_it_was_typed(flags: list[str], message: str) -> None:
    """The message begins with the flag and says what to write."""
    with pytest.raises(PolicyError) as caught:
        _ = Choice.of(sets=flags).settings
    assert str(caught.value).startswith(message)


def test_overrides_are_laid_over_the_policies_inside_a_recording() -> None:
    """Header and `policy` events keep their other limits; where a flag gives a whole policy they do not count."""
    header = Header(format="loopscope/1", policy={"hard_limit": 10})
    event = PolicySet(seq=2, ts=None, thread_id=None, run_id=None, policy={"hard_limit": 12, "warn_threshold": 6})
    batch = Batch(seq=3, ts=None, thread_id=None, run_id=None, calls=())
    choice = Choice.of(sets=["window_size=7"])
    rewritten = choice.rewrite(header)
    assert isinstance(rewritten, Header)
    assert rewritten.policy == {"hard_limit": 10, "window_size": 7}
    again = choice.rewrite(event)
    assert isinstance(again, PolicySet)
    assert again.policy == {"hard_limit": 12, "warn_threshold": 6, "window_size": 7}
    assert choice.rewrite(batch) is batch
    assert choice.rewrite(Header(format="loopscope/1")) == Header(format="loopscope/1")
    assert Choice.of().rewrite(header) is header
    assert Choice.of(policy="deerflow", sets=["window_size=7"]).rewrite(event) is event


def test_a_recorded_policy_that_breaks_a_rule_says_where_it_came_from() -> None:
    """The recording is named, not a file of the user."""
    with pytest.raises(PolicyError, match="recording: hard_limit: must be a whole number from 1, is 0"):
        Choice.of().over(json.loads('{"hard_limit": 0}'))
