"""A recorded loop as a pytest: the model says what it said, the tool fails as it failed, and the loop must end.

It fails on the graph that was recorded and passes once the loop is bounded, so that the bound stays.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from loopscope.engine.events import Batch, Result
from loopscope.errors import UsageError
from loopscope.session.session import Session

__all__ = ["MARK", "Wish", "exported"]

MARK = '"""Made by `loopscope export-test`'
"""How such a file begins, so that a later one may replace it."""
_MOST_TURNS = 40
_LAPS = 20
"""How often a loop of several turns is gone through: enough to reach any bound."""
_LONGEST = 500
_REFERENCE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<path>[A-Za-z_][\w.]*)(?P<call>\(\))?")
_TEMPLATE = '''\
{mark} of {source}: batch {number}, {verdict}.

{story}
"""

{imports}

TURNS = [
{turns}
]


def test_{name}({fixture}) -> None:
    """{claim}"""
{body}
'''


class Wish(NamedTuple):
    """What the test is to be like."""

    graph: str | None
    """`MODULE:GRAPH`, or with `()` behind it; None for a fixture `graph` of the user's."""
    value: str
    """The graph's input: a JSON object, or what the user says."""
    within: int | None
    asynchronous: bool


class _Stuck(NamedTuple):
    """What kept coming back."""

    tool: str
    text: str
    failed: bool


def exported(session: Session, number: int, wish: Wish) -> str:
    """The source of a test for the loop that this batch belongs to.

    Raises:
        UsageError: if nothing came back in the loop, or the graph is not named as it must be.
    """
    numbers = _loop(session, number)
    stuck = _stuck(session, numbers)
    decision = session.timeline.verdict(number)
    within = wish.within or max(1, len(numbers) - (decision.action == "hard_stop"))
    imports, graph, fixture = _graph(wish.graph)
    run = "abounded_run" if wish.asynchronous else "bounded_run"
    text = _literal(stuck.text[:_LONGEST])
    turns = _turns(session, numbers)
    body = [
        f"{run}(",
        f"    {graph},",
        f"    {_literal(_value(wish.value))},",
        f"    fail={{{_literal(stuck.tool)}: {text if stuck.failed else f'returns({text})'}}},",
        f"    model=TURNS{f' * {_LAPS}' if len(turns) > 1 else ''},",
        f"    within={within},",
        ")",
    ]
    if wish.asynchronous:
        body = ["asyncio.run(", *(f"    {line}" for line in body), ")"]
    names = run if stuck.failed else f"{run}, returns"
    lines = [*(["import asyncio", ""] if wish.asynchronous else []), *imports, f"from loopscope.testing import {names}"]
    what = "fails" if stuck.failed else "gives the same"
    return _TEMPLATE.format(
        mark=MARK,
        source=_plain(session.source),
        number=number,
        verdict=_plain(f"{decision.layer or 'passed'} {decision.count or ''}".strip()),
        story=_story(wish),
        imports="\n".join(lines),
        turns="\n".join(f"    {_literal(turn)}," for turn in turns),
        name=re.sub(r"\W+", "_", f"{stuck.tool} {what} and the loop ends", flags=re.ASCII),
        fixture=fixture,
        claim=f"However often {_plain(stuck.tool)} {what}, the run ends by itself.",
        body="\n".join(f"    {line}" for line in body),
    )


def _loop(session: Session, number: int) -> list[int]:
    """The batches of the same scope up to this one."""
    key = session.timeline.scope_of(number)
    return [each for each in range(1, number + 1) if session.timeline.scope_of(each) == key]


def _stuck(session: Session, numbers: Sequence[int]) -> _Stuck:
    """The tool and the text that came back most often, failures before all else."""
    found: Counter[_Stuck] = Counter()
    for number in numbers:
        batch = session.batch(number)
        for call, result in zip(batch.calls if batch else (), session.results(number), strict=False):
            if result is not None:
                failed = result.status == "error"
                found[_Stuck(result.name or call.name or "", _said(result) if failed else result.content, failed)] += 1
    if not found:
        raise UsageError(f"{session.source}: no call of this loop has a result, so that there is nothing to fail with")
    return max(found, key=lambda stuck: (stuck.failed, found[stuck]))


def _said(result: Result) -> str:
    """What the error itself said, without what a tool node puts around it."""
    text = result.content
    found = re.search(
        rf"{re.escape(result.error_type or '')}\((?P<quote>['\"])(?P<said>.*?)(?P=quote)\)", text, re.DOTALL
    )
    if result.error_type and found and found["said"]:
        return found["said"]
    return text.removeprefix("Error: ").partition("\n")[0].strip() or "failed"


def _turns(session: Session, numbers: Sequence[int]) -> list[Any]:
    """What the model said; of equal turns at the end one, since the last one is said for ever."""
    turns: list[Any] = []
    for number in numbers[-_MOST_TURNS:]:
        batch = session.batch(number)
        if batch is not None and batch.calls:
            turns.append(_turn(batch))
    while len(turns) > 1 and turns[-1] == turns[-2]:
        turns.pop()
    return turns


def _turn(batch: Batch) -> Any:
    calls = [(call.name or "", call.args if isinstance(call.args, dict) else {}) for call in batch.calls]
    return calls[0] if len(calls) == 1 else calls


def _graph(reference: str | None) -> tuple[list[str], str, str]:
    """What to import, the expression, and the test's parameter."""
    if reference is None:
        return [], "graph", "graph"
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise UsageError(f"--graph {reference}: name it as MODULE:GRAPH, or MODULE:make() where a function makes it")
    first, _, rest = found["path"].partition(".")
    return [f"from {found['module']} import {first}", ""], f"{first}{'.' * bool(rest)}{rest}{found['call'] or ''}", ""


def _literal(value: Any) -> str:
    """A value of JSON, with tuples, as Python writes it: in one line, of ASCII, between double quotes."""
    if isinstance(value, str):
        text = ascii(value)
        return f'"{text[1:-1]}"' if text[0] == "'" and not {"'", '"'} & set(value) else text
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return ascii(value)


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"messages": [("user", text)]}


def _story(wish: Wish) -> str:
    first = "The model says what it said in the recording, over and over; the tool does what it did there."
    where = "" if wish.graph else "\nThe fixture `graph` is yours: it gives the compiled graph."
    return first + where


def _plain(text: str) -> str:
    """A text that can stand in a docstring whatever it was."""
    return re.sub(r"[^\w :.,/#@+=()-]", "_", text, flags=re.ASCII)[:200]
