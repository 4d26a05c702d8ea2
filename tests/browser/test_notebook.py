"""The widget where people meet it: in JupyterLab, in a browser, with a mouse and a keyboard."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import loopscope
from loopscope.recording.codec import encode
from loopscope.views import text
from tests.browser.conftest import Lab
from tests.views.support import Story

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("LOOPSCOPE_PICTURES")
"""Where to put a picture of each window, for a person to look at."""
SLOW_AGENT = """
import time
from tests.adapters.scripted import DONE, Shell, agent, ask, bash, turn
slow = Shell(lambda _: time.sleep(0.3) or "nothing")
script = [turn(bash(f"c{n % 3}"), text=str(n)) for n in range(60)] + [DONE]
final = agent(script, tools=[slow.tool]).invoke(ask())
print("over", len(final["messages"]))
"""


def opened(page: Any, lab: Lab, notebook: str) -> None:
    """The notebook in the window, its cells asked to run once the kernel is there."""
    page.goto(lab.url(notebook), wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.info.then(() => null)")
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    page.wait_for_selector(".loopscope .bar")


def picture(page: Any, name: str) -> None:
    """A picture for a person, where one is asked for."""
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"))


def reads(page: Any, selector: str, wanted: str) -> None:
    """Wait until this part of the widget says so."""
    page.wait_for_function(
        "([selector, wanted]) => (document.querySelector(selector)?.textContent ?? '').includes(wanted)",
        arg=[f".loopscope {selector}", wanted],
    )


@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_session_is_the_last_line_of_a_cell(page: Any, lab: Lab, look: str) -> None:
    """It shows the run, goes where one clicks and what keys say, and a changed limit shows its difference at once."""
    name = lab.write(f"{look}.ipynb", 'import loopscope\nloopscope.open("sample:sql-retry-storm")')
    opened(page, lab, name)
    reads(page, ".verdict", "■ STOP identical_call_set A 5/5")
    theme = f"JupyterLab {look.title()}"
    page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_selector(".loopscope.dark" if look == "dark" else ".loopscope:not(.dark)")
    picture(page, f"opened-{look}")
    page.click(".loopscope .cell >> nth=2")
    reads(page, ".verdict", "▲ WARN identical_call_set A 3/3")
    page.focus(".loopscope")
    page.keyboard.press("ArrowRight")
    reads(page, ".position", "4/20")
    page.keyboard.press("]")
    reads(page, ".position", "5/20")
    page.fill(".loopscope label:has-text('hard_limit') input >> nth=0", "8")
    reads(page, ".difference", "3 decisions differ, first at #5")
    page.click(".loopscope [data-tab=whatif]")
    reads(page, ".panel", "differs")
    picture(page, f"whatif-{look}")
    page.fill(".loopscope label:has-text('hard_limit') input >> nth=0", "5")
    page.wait_for_function("() => document.querySelector('.loopscope .difference').textContent === ''")


def test_every_number_is_the_terminal_s(page: Any, lab: Lab) -> None:
    """What stands in the browser is what the text of the same batch says."""
    name = lab.write("numbers.ipynb", 'import loopscope\nloopscope.open("sample:enforced-stop")')
    opened(page, lab, name)
    session = loopscope.open("sample:enforced-stop")
    drawn = text.render(session, width=160)
    for cell in page.query_selector_all(".loopscope .row"):
        assert cell.query_selector(".note").inner_text().strip() in drawn
    counts = [cell.inner_text() for cell in page.query_selector_all(".loopscope .cell .count")]
    assert counts == [str(session.row(n).decision.hash_count) for n in range(1, len(session) + 1)]
    reads(page, ".verdict", session.explain().headline)


def test_a_running_cell_is_paused_stepped_and_let_go(page: Any, lab: Lab) -> None:
    """From the buttons, while the kernel is busy with the cell."""
    name = lab.write("live.ipynb", "%load_ext loopscope", f"%%loopscope\n{SLOW_AGENT}")
    opened(page, lab, name)
    reads(page, ".mode", "LIVE")
    page.wait_for_selector(".loopscope .cell")
    page.click(".loopscope .controls >> text=Pause")
    reads(page, ".mode", "PAUSED")
    page.wait_for_selector(".loopscope .held:not([hidden])")
    reads(page, ".held", "bash")
    at = int(page.inner_text(".loopscope .position").split("/")[1])
    picture(page, "paused")
    page.click(".loopscope .controls >> text=Step")
    reads(page, ".position", f"{at + 1}/{at + 1}")
    page.wait_for_selector(".loopscope .held:not([hidden])")
    page.click(".loopscope .controls >> text=Continue")
    page.wait_for_function("() => !document.querySelector('.loopscope .mode').className.includes('paused')")
    reads(page, ".position", "60/60")
    page.wait_for_selector(".jp-OutputArea-output pre:has-text('over')")


def test_hostile_text_runs_nothing(page: Any, lab: Lab, tmp_path: Path) -> None:
    """Names, arguments and results that are scripts, markup and addresses are read, and load nothing."""
    evil = "<img src=http://127.0.0.1:9/x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    story = Story().in_scope(evil, evil)
    for _ in range(6):
        story.call(evil, {evil: evil, "query": evil}, evil)
    file = tmp_path / "hostile.jsonl"
    file.write_bytes(b"".join(encode(event) + b"\n" for event in story.events if event is not None))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    name = lab.write("hostile.ipynb", f"import loopscope\nloopscope.open({json.dumps(str(file))})")
    opened(page, lab, name)
    for tab in ("batch", "decisions", "scopes", "graph", "whatif", "why"):
        page.click(f".loopscope [data-tab={tab}]")
        page.wait_for_selector(f".loopscope [data-tab={tab}][aria-selected=true]")
    assert page.title() != "taken"
    assert not [url for url in asked if ":9/" in url]
    assert page.query_selector(".loopscope img, .loopscope script") is None
    assert "<script>" in page.inner_text(".loopscope")


@pytest.mark.parametrize("width", [400, 800, 1600])
def test_widths(page: Any, lab: Lab, width: int) -> None:
    """Nothing is wider than its cell."""
    name = lab.write(f"width{width}.ipynb", 'import loopscope\nloopscope.open("sample:handoff-ping-pong")')
    page.set_viewport_size({"width": width, "height": 1000})
    opened(page, lab, name)
    wide = "((e) => e.scrollWidth <= e.clientWidth)(document.querySelector('.loopscope'))"
    page.wait_for_function(f"() => {wide}")
    picture(page, f"width-{width}")


def test_a_reader_without_a_mouse(page: Any, lab: Lab) -> None:
    """Every control has a name, the tabs are tabs, and focus can be seen and moved."""
    name = lab.write("keys.ipynb", 'import loopscope\nloopscope.open("sample:sql-retry-storm")')
    opened(page, lab, name)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('.loopscope button, .loopscope input, .loopscope select')]
        .filter((e) => !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())).length"""
    )
    assert unnamed == 0
    page.focus(".loopscope [role=tab][aria-selected=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".loopscope [data-tab=batch][aria-selected=true]")
    assert page.evaluate("() => document.activeElement.dataset.tab") == "batch"
    page.focus(".loopscope")
    page.keyboard.press("g")
    reads(page, ".position", "1/20")
    page.keyboard.press("w")
    page.wait_for_selector(".loopscope [data-tab=why][aria-selected=true]")
