# noqa: INP001 - a script, run by path
"""Makes the tutorial notebook: `python docs/make_notebook.py` writes docs/tutorial.ipynb, run from top to bottom.

Its agent is that of docs/tutorial.md, read from there, so that the two pages cannot differ. What a kernel alone could
show (the widgets' state) is left out of what is kept; the static output of each session stands for it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NOTEBOOK = HERE / "tutorial.ipynb"
_FENCE = "```"
_CODE: dict[str, Any] = {"cell_type": "code", "execution_count": None, "outputs": []}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_STEPS = r"""
---- text
# A stuck agent, in a notebook

One agent: seen, explained, tuned, bounded, tested. Everything runs offline; `pip install 'loopscope[notebook]' pytest`
is all it needs. [The same in a terminal](tutorial.md).

The agent turns questions into SQL. Its query has a typing error, the database says so, and the model, which a script
plays here, sends the same query again.
---- code
%%writefile shop.py
{shop.py}
---- text
## Seen

`%%loopscope` runs a cell and watches the graphs in it. The widget below it follows while the cell runs: *Pause* holds
the next batch before its tools run, *Step* lets one go. The run ends as such runs do, in LangGraph's recursion limit.
---- code
%load_ext loopscope
---- code
%%loopscope --record run.jsonl
from langgraph.errors import GraphRecursionError
from shop import graph

try:
    graph.invoke({"messages": [("user", "Revenue by customer?")]}, {"recursion_limit": 25})
except GraphRecursionError as error:
    print(str(error).splitlines()[0])
---- text
The recording is a session. As the last line of a cell it is the debugger: click a batch, or use the arrow keys, `[` and
`]`. Without a kernel you see a picture, the reasons and a table instead.
---- code
import loopscope

session = loopscope.open("run.jsonl")
session
---- text
Its parts are values: records that `pandas.DataFrame` takes as they are.
---- code
session.decisions[:3]
---- text
## Explained

The rule, what it counted, where the limit came from, and the nearest settings that would have changed the verdict.
---- code
%loopscope why 5
---- text
## Tuned

Change a limit in the widget, or set it from a cell: `overrides` goes both ways. The same engine decides the run again.
---- code
from loopscope import LoopWidget

widget = LoopWidget(session, tab="whatif")
widget.overrides = {"hard_limit": 4}
widget.frame["difference"]
---- text
Every combination of some limits:
---- code
%loopscope tune hard_limit=3..6 window_size=3,20
---- text
A count of calls cannot know that the error was the same the second time already. A loop needs a *witness*, something
that must change from one round to the next.

## Bounded

A [bounded loop](bounded-loops.md) has a counter, a witness and an exit; the agent stays what it was.
---- code
%%writefile bounded.py
{bounded.py}
---- text
The error repeats, so the second round is the last one, and a person is asked.
---- code
%run bounded.py
---- text
## Tested

The recording becomes a test: the model says what it said, the tool fails as it failed, for ever. On the agent as it was
the test fails, and names the steps that are missing.
---- code
import sys

!{sys.executable} -m loopscope export-test run.jsonl --graph shop:graph --within 3 -o test_loop.py
!{sys.executable} -m pytest -q --color=no test_loop.py | grep "^E .*step . of 7"
---- text
On the bounded one it passes, and stays in your suite.
---- code
!{sys.executable} -m loopscope export-test run.jsonl --graph bounded:graph --within 3 -o test_loop.py
!{sys.executable} -m pytest -q --color=no test_loop.py | grep -o "1 passed"
"""


def cells() -> list[dict[str, Any]]:
    """The cells, not run yet."""
    page = (HERE / "tutorial.md").read_text(encoding="utf-8")
    files = dict(re.findall(rf"`(\w+\.py)`\n\n{_FENCE}python\n(.*?)\n{_FENCE}", page, re.DOTALL))
    made: list[dict[str, Any]] = []
    for step in _STEPS.strip().split("---- ")[1:]:
        kind, _, source = step.strip().partition("\n")
        for name, content in files.items():
            source = source.replace(f"{{{name}}}", content)
        own = {"cell_type": "markdown"} if kind == "text" else _CODE
        made.append({**own, "metadata": {}, "source": source})
    return [{"id": f"step-{place}", **cell} for place, cell in enumerate(made)]


def notebook() -> dict[str, Any]:
    """The notebook, not run yet."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells(), "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def run(folder: Path) -> dict[str, Any]:
    """The notebook with the outputs that it has in this folder, without what changes from one run to the next."""
    import nbclient  # noqa: PLC0415 - reading the cells needs no kernel
    import nbformat  # noqa: PLC0415 - as above

    made: Any = nbformat.from_dict(notebook())  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute()
    plain: dict[str, Any] = json.loads(nbformat.writes(made))  # type: ignore[no-untyped-call]
    plain["metadata"].pop("widgets", None)
    for cell in plain["cells"]:
        cell["metadata"] = {}
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(_WIDGET, None)
            output.pop("transient", None)
    return plain


def main() -> None:
    """Run it in a new folder, and write it."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - a test has a folder of its own

    with TemporaryDirectory() as folder:
        made = run(Path(folder))
    NOTEBOOK.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{NOTEBOOK}\n")


if __name__ == "__main__":
    main()
