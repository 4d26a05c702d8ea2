from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopscope.lint.limits import hits
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]

GRAPHS = "tests.lint.graphs"
LOGS = [
    ("langgraph.errors.GraphRecursionError: Recursion limit of 25 reached without", "LangGraph", "recursion_limit", 25),
    (
        "https://docs.langchain.com/oss/python/langgraph/errors/GRAPH_RECURSION_LIMIT",
        "LangGraph",
        "recursion_limit",
        None,
    ),
    ("agents.exceptions.MaxTurnsExceeded: Max turns (10) exceeded", "OpenAI Agents SDK", "max_turns", 10),
    ("Agent stopped due to iteration limit or time limit.", "LangChain AgentExecutor", "max_iterations", None),
    ("Agent stopped due to max iterations.", "LangChain AgentExecutor", "max_iterations", None),
    ("max_iterations=15 was reached", "LangChain AgentExecutor", "max_iterations", 15),
    ("Maximum iterations reached. Requesting final answer.", "CrewAI", "max_iter", None),
    ("the agent hit max_iter (20)", "CrewAI", "max_iter", 20),
]


@pytest.mark.parametrize(("line", "framework", "limit", "number"), LOGS)
def test_limits_are_known_by_what_frameworks_say(line: str, framework: str, limit: str, number: int | None) -> None:
    """In any line of a log, with the number where it is told."""
    (hit,) = hits(["before", line, "after"])
    assert (hit.framework, hit.limit, hit.number, hit.line) == (framework, limit, number, 2)


def test_one_limit_is_told_once_and_other_lines_are_none() -> None:
    """A traceback names it several times; the number may come later than the name."""
    (hit,) = hits(["GraphRecursionError", "Recursion limit of 9 reached", "For troubleshooting: GRAPH_RECURSION_LIMIT"])
    assert (hit.number, hit.line) == (9, 2)
    (hit,) = hits(["Agent(role='x', max_iter=25)", "Maximum iterations reached.", "max_iter: 25"])
    assert (hit.line, hit.happened) == (2, True)
    (hit,) = hits(["max_iterations=9", "max_iterations=9 was reached", "max_iterations=10 was reached"])
    assert (hit.number, hit.line) == (9, 2)
    assert hits(["all is well", "RecursionError: maximum recursion depth exceeded"]) == []


def test_a_limit_that_is_only_set_is_not_called_hit(cli: Cli, tmp_path: Path) -> None:
    """The walk is the same: whoever looks at a setting wants to know what else there should be."""
    log = tmp_path / "log"
    log.write_text("crew = Crew()\nagent = Agent(max_iter=25)\n", "utf-8")
    done = cli("lint", "--explain-recursion-error", str(log))
    assert done.out.startswith("line 2: CrewAI's max_iter of 25 is set; that it was hit is not said anywhere\n")
    log.write_text("agent = Agent(max_iter=25)\nGraphRecursionError\n", "utf-8")
    assert cli("lint", "--explain-recursion-error", str(log)).out.startswith("line 2: LangGraph's recursion_limit was")


def test_the_sample_unguarded_fails_in_ci(cli: Cli) -> None:
    """Exit code 1 for what has only the recursion limit, 0 for what is bounded, whatever else is missing."""
    done = cli("lint", f"{GRAPHS}:bare", "--fail-on", "unbounded")
    assert done.code == 1
    assert done.out.startswith(f"{GRAPHS}:bare: 1 cycle: 1 unbounded, 0 incomplete, 0 bounded\n")
    assert "1 analyst → tools → analyst   unbounded\n  only the recursion limit ends it, " in done.out
    assert "✗ a counter in the state: nothing found" in done.out
    assert "~ the model sees the last error: inferred, tools answers with the errors of its tools" in done.out
    assert cli("lint", f"{GRAPHS}:bare").code == 0
    assert cli("lint", f"{GRAPHS}:guarded", "--fail-on", "unbounded").code == 0
    assert cli("lint", f"{GRAPHS}:guarded", "--fail-on", "incomplete").code == 1
    assert cli("lint", f"{GRAPHS}:whole", "--fail-on", "incomplete").code == 0


def test_nodes_that_see_the_limit_coming_may_end_before_it(cli: Cli) -> None:
    """As a prebuilt agent does, which then says that it needs more steps."""
    assert " steps, with a stack trace\n" in cli("lint", f"{GRAPHS}:bare").out
    told = "with a stack trace, or with a node that gives up a step before"
    assert told in cli("lint", f"{GRAPHS}:told_what_is_left").out
    assert json.loads(cli("lint", f"{GRAPHS}:told_what_is_left", "--json").out)["cycles"][0]["sees_steps_left"]


def test_json_has_every_claim_with_how_it_is_known(cli: Cli) -> None:
    """One object, and nothing of what the module printed."""
    done = cli("lint", f"{GRAPHS}:counted", "--json")
    data = json.loads(done.out)
    (cycle,) = data["cycles"]
    assert (data["graph"], cycle["nodes"], cycle["verdict"], cycle["way_out"]) == (
        f"{GRAPHS}:counted",
        ["work"],
        "incomplete",
        True,
    )
    assert cycle["claims"] == [
        {"step": "counter", "certainty": "inferred", "text": "onward compares tries of the state", "node": "work"}
    ]
    assert cycle["missing"] == ["witness", "escalation", "message", "budget"]
    within = json.loads(cli("lint", f"{GRAPHS}:team", "--json").out)["cycles"][-1]
    assert {claim["node"] for claim in within["claims"]} <= set(within["nodes"]), "a sub-graph's nodes have its path"
    assert within["claims"]


def test_sarif_places_findings_in_the_users_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error where a cycle is unbounded, with file and line of what decides over it, relative to the folder."""
    monkeypatch.chdir(Path(__file__).parents[2])
    done = cli("lint", f"{GRAPHS}:unlooked", "--sarif")
    log = json.loads(done.out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= known
    first = run["results"][0]
    assert (first["ruleId"], first["level"]) == ("unbounded-cycle", "error")
    assert [result["ruleId"] for result in run["results"][1:]] == [
        "no-counter", "no-witness", "no-escalation", "no-message", "no-budget",
    ]  # fmt: skip
    logical = first["locations"][0]["logicalLocations"]
    assert logical == [{"fullyQualifiedName": "work", "kind": "function"}]


def test_places_are_those_of_files_in_the_folder(tmp_path: Path, cli: Cli) -> None:
    """A file can be named in place of a module; what is outside of the folder is not told."""
    (tmp_path / "app.py").write_text(
        "from langgraph.graph import END, START, MessagesState, StateGraph\n\n"
        "def router(state):\n    return END\n\n"
        "graph = StateGraph(MessagesState)\ngraph.add_node('work', lambda _: None)\ngraph.add_edge(START, 'work')\n"
        "graph.add_conditional_edges('work', router, ['work', END])\n"
    )
    done = cli("lint", "app.py:graph", "--sarif")
    physical = json.loads(done.out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "app.py"}, "region": {"startLine": 3}}
    assert "  see app.py:3 router\n" in cli("lint", "app.py:graph").out


@pytest.mark.parametrize("name", ["make", "amake", "Holder.inner", "counted"])
def test_functions_attributes_and_builders_are_taken(name: str, cli: Cli) -> None:
    """A function is called, and awaited where it has to be; a builder is compiled."""
    assert cli("lint", f"{GRAPHS}:{name}").code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "nothing: name it as MODULE:GRAPH"),
        ([f"{GRAPHS}:baer"], "there is no baer; did you mean bare?"),
        ([f"{GRAPHS}:number"], "is a int, no LangGraph graph"),
        ([f"{GRAPHS}:fails"], "fails() failed: RuntimeError: no key"),
        (["no_such_module_here:graph"], "there is no module no_such_module_here"),
        (["no_such_file.py:graph"], "there is no module no_such_file.py"),
        (["broken.py:graph"], "importing broken.py failed: ZeroDivisionError: division by zero"),
        (["needs.py:graph"], "importing needs.py failed: ModuleNotFoundError: No module named 'not_installed_here'"),
        ([], "name a graph as MODULE:GRAPH, or a log"),
        ([f"{GRAPHS}:bare", "--json", "--sarif"], "stdout takes one of them"),
        (["--explain-recursion-error", "x.log", "--json"], "told as text"),
        (["--explain-recursion-error", "x.log", "--fail-on", "unbounded"], "needs a graph"),
    ],
)
def test_what_cannot_be_examined_is_told_in_one_line(arguments: list[str], told: str, cli: Cli) -> None:
    """With what to do; exit code 2."""
    Path("broken.py").write_text("1 / 0\n")
    Path("needs.py").write_text("import not_installed_here\n")
    done = cli("lint", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err.splitlines()[-1]


def test_a_recursion_error_is_explained_step_by_step(cli: Cli) -> None:
    """What was hit, and every step with a question and a fix; never a higher number."""
    Path("run.log").write_text("\n".join(["Traceback (most recent call last):", LOGS[0][0]]))
    done = cli("lint", "--explain-recursion-error", "run.log")
    assert done.code == 0
    assert done.out.startswith("line 2: LangGraph's recursion_limit of 25 was hit\n")
    assert [line for line in done.out.splitlines() if line[:1].isdigit()] == [
        "1 a counter in the state",
        "2 a witness of progress",
        "3 an escalation",
        "4 the model sees the last error",
        "5 an outer budget of tokens, money or time",
    ]
    assert done.out.count("  fix: ") == 5
    assert all(len(line) <= 120 for line in done.out.splitlines())


def test_with_the_graph_it_tells_what_that_graph_misses(cli: Cli) -> None:
    """Steps that are there are not asked for again."""
    Path("run.log").write_text(LOGS[0][0])
    done = cli("lint", f"{GRAPHS}:guarded", "--explain-recursion-error", "run.log")
    assert "1 a counter in the state: your graph has it" in done.out
    assert "nothing found in analyst → tools → analyst" in done.out
    assert done.out.count("  fix: ") == 1
    unbounded = cli("lint", f"{GRAPHS}:bare", "--explain-recursion-error", "run.log", "--fail-on", "unbounded")
    assert unbounded.code == 1


def test_a_log_without_a_limit_is_an_error(cli: Cli) -> None:
    """Exit code 3, with what is known; a file that is not there likewise. Its text is made safe."""
    Path("calm.log").write_text("all is well\n")
    calm = cli("lint", "--explain-recursion-error", "calm.log")
    assert calm.code == 3
    assert "tells of no limit that was hit; known are GRAPH_RECURSION_LIMIT" in calm.err
    assert cli("lint", "--explain-recursion-error", "none.log").code == 3
    Path("odd.log").write_bytes(b"\x1b]0;x\x07 GraphRecursionError \xff\n")
    assert "\x1b" not in cli("lint", "--explain-recursion-error", "odd.log").out
