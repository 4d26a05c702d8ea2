"""A healthy run: an agent edits a module and runs its checks again, one failure fewer each time.

The checks are really run, with the same command each time; the default hard limit of five would stop the very run in
which all of them pass. The agent is only watched.
"""

from __future__ import annotations

import subprocess
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool

from sample_runs.stage.files import read_file, str_replace
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]

TASK = "The checks of pricing.py fail. Fix the module, not the checks."
MODULE = '''"""Prices of an order, in cents."""


def net(quantity, price):
    return quantity + price


def discount(amount):
    return amount // 20 if amount > 10_000 else 0


def vat(amount):
    return amount * 19 / 100


def shipping(amount):
    return 490
'''
CHECKS = '''"""Checks of pricing.py: one line a failure."""

import sys

sys.path.insert(0, ".")
import pricing

CASES = [
    ("net(3, 250)", pricing.net(3, 250), 750),
    ("discount(10_000)", pricing.discount(10_000), 500),
    ("vat(105)", pricing.vat(105), 20),
    ("shipping(5_000)", pricing.shipping(5_000), 0),
]
failures = [f"FAILED {name}: expected {want}, got {got}" for name, got, want in CASES if got != want]
print("\\n".join([*failures, f"{len(CASES) - len(failures)} passed, {len(failures)} failed"]))
sys.exit(bool(failures))
'''
COMMAND = "python checks.py"
FIXES = (
    ("net has to multiply.", "quantity + price", "quantity * price"),
    ("The discount begins at 100.00, inclusive.", "amount > 10_000", "amount >= 10_000"),
    ("VAT is rounded to whole cents.", "amount * 19 / 100", "round(amount * 19 / 100)"),
    ("Large orders ship for free.", "return 490", "return 0 if amount >= 5_000 else 490"),
)


def script() -> Script:
    """Look at the failures, fix one, and again."""
    test = call("bash", command=COMMAND)
    yield say("Let me see the module.", call("read_file", path="pricing.py"))
    messages = yield say("I'll run the checks.", test)
    for why, old, new in FIXES:
        yield say(why, call("str_replace", path="pricing.py", old=old, new=new))
        messages = yield say("Running the checks again.", test)
    assert "0 failed" in messages[-1].text, messages[-1].text  # noqa: S101 - the fixes are right
    yield say("All four checks pass now: net, discount, VAT and shipping each had one mistake.")


def run(stage: Stage) -> None:
    """Ask once."""
    (stage.folder / "pricing.py").write_text(MODULE, "utf-8")
    (stage.folder / "checks.py").write_text(CHECKS, "utf-8")

    @tool
    def bash(command: str) -> str:
        """Run a command."""
        if command != COMMAND:
            return f"not allowed: {command}"
        told = subprocess.run(
            [sys.executable, "-IB", "checks.py"], cwd=stage.folder, capture_output=True, text=True, check=False
        )
        return f"{told.stdout}exit code {told.returncode}"

    tools = [bash, read_file(stage.folder), str_replace(stage.folder)]
    agent = create_agent(ScriptedModel(script=script()), tools, name="coder")
    stage.watch(agent, TASK, "coder", ("pricing", "run-1"))


# Batch 1 reads; the checks run in batches 2, 4, 6, 8 and 10, with an edit in between.
SAMPLE = Sample(
    name="healthy-edit-and-test",
    summary="Healthy: edit, run the checks, four failures down to none. The defaults would stop the run that passes.",
    looping=False,
    first_warning=Found(6, "identical_call_set"),
    first_stop=Found(10, "identical_call_set"),
    run=run,
    seconds={"bash": 3.2, "str_replace": 0.05},
)
