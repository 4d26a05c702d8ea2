"""The widget where people meet it: in JupyterLab, in a browser, with a mouse and a keyboard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import loopscope
from loopscope.recording.codec import encode
from loopscope.views import text
from loopscope.views.frame import TABS
from loopscope.views.web.cell import cell
from tests.browser.conftest import Lab
from tests.views.web.hostile import hostile_run, strings

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("LOOPSCOPE_PICTURES")
"""Where to put a picture of each window, for a person to look at."""
HELD_AGENT = """
from pathlib import Path
from tests.adapters.scripted import DONE, Shell, agent, ask, bash, turn
shell = Shell(lambda command: Path("go").read_text() if command == "c3" else "nothing")
script = [turn(bash(f"c{n}"), text=str(n)) for n in range(1, 13)] + [DONE]
final = agent(script, tools=[shell.tool]).invoke(ask())
print("over", len(final["messages"]))
"""
"""Its third tool waits for somebody to write into the pipe `go`."""


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
    page.keyboard.press("ArrowRight")
    reads(page, ".position", "4/20")
    page.keyboard.press("]")
    reads(page, ".position", "5/20")
    page.click(".loopscope .panel .link >> text=#2")
    reads(page, ".position", "2/20")
    page.keyboard.press("ArrowRight")
    reads(page, ".position", "3/20")
    page.focus(".loopscope .slider")
    page.keyboard.press("End")
    reads(page, ".position", "20/20")
    page.keyboard.press("g")
    reads(page, ".position", "1/20")
    page.fill(".loopscope label:has-text('hard_limit') input >> nth=0", "8")
    reads(page, ".difference", "3 decisions differ, first at #5")
    page.click(".loopscope [data-tab=whatif]")
    reads(page, ".panel", "differs")
    picture(page, f"whatif-{look}")
    page.fill(".loopscope label:has-text('hard_limit') input >> nth=0", "5")
    page.wait_for_function("() => document.querySelector('.loopscope .difference').textContent === ''")


def test_limits_are_tried_and_taken_along(page: Any, lab: Lab) -> None:
    """A wrong number says why, a field left empty shows what holds, names are chosen, and both texts are copied."""
    name = lab.write("limits.ipynb", 'import loopscope\nloopscope.open("sample:sql-retry-storm")')
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, lab, name)
    limit = ".loopscope label:has-text('hard_limit') input >> nth=0"
    page.fill(limit, "2")
    reads(page, ".difference.problem", "hard_limit: must be at least warn_threshold (3), is 2")
    page.fill(limit, "8")
    reads(page, ".difference:not(.problem)", "3 decisions differ")
    page.fill(limit, "")
    page.press(limit, "Tab")
    assert page.input_value(limit) == "8"
    page.click(".loopscope summary")
    page.select_option(".loopscope label:has-text('result_aware') select", "true")
    reads(page, "label.changed:has(select)", "was false")
    for button, said, wanted in (
        ("Copy TOML", "copied as TOML", "hard_limit = 8\n"),
        ("Copy Python", "copied as Python", "'hard_limit': 8,"),
    ):
        page.click(f".loopscope >> text={button}")
        reads(page, ".said", said)
        copied = page.evaluate("() => navigator.clipboard.readText()")
        assert wanted in copied
        assert "result_aware" in copied
    page.context.clear_permissions()
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.click(".loopscope >> text=Copy TOML")
    page.wait_for_selector(".loopscope textarea:visible")
    assert "hard_limit = 8\n" in page.input_value(".loopscope textarea")
    page.click(".loopscope >> text=Reset")
    page.wait_for_function("() => !document.querySelector('.loopscope label.changed')")


def test_every_number_is_the_terminal_s(page: Any, lab: Lab) -> None:
    """What stands in the browser is what the text of the same batch says."""
    name = lab.write("numbers.ipynb", 'import loopscope\nloopscope.open("sample:enforced-stop")')
    opened(page, lab, name)
    session = loopscope.open("sample:enforced-stop")
    drawn = text.render(session, width=160)
    for row in page.query_selector_all(".loopscope .row"):
        assert row.query_selector(".note").inner_text().strip() in drawn
    counts = [count.inner_text() for count in page.query_selector_all(".loopscope .cell .count")]
    assert counts == [str(session.row(n).decision.hash_count) for n in range(1, len(session) + 1)]
    reads(page, ".verdict", session.explain().headline)


def test_a_running_cell_is_paused_stepped_and_let_go(page: Any, lab: Lab) -> None:
    """From the buttons, while the kernel is busy with the cell; who looks back is not taken along unasked."""
    os.mkfifo(lab.folder / "go")
    name = lab.write("live.ipynb", "%load_ext loopscope", f"%%loopscope\n{HELD_AGENT}")
    opened(page, lab, name)
    reads(page, ".mode", "LIVE")
    reads(page, ".position", "3/3")
    page.click(".loopscope .controls >> text=Pause")
    reads(page, ".mode", "PAUSED")
    (lab.folder / "go").write_text("nothing")
    reads(page, ".held:not([hidden])", 'bash("c4")')
    picture(page, "paused")
    page.click(".loopscope .controls >> text=Step")
    reads(page, ".held:not([hidden])", 'bash("c5")')
    reads(page, ".position", "4/4")
    page.click(".loopscope .cell >> nth=2")
    reads(page, ".position", "3/4")
    page.click(".loopscope .controls >> text=Continue")
    page.wait_for_selector(".jp-OutputArea-output pre:has-text('over')")
    reads(page, ".position", "3/12")
    page.click(".loopscope .controls >> text=Follow")
    reads(page, ".position", "12/12")


def test_hostile_text_runs_nothing(page: Any, lab: Lab, tmp_path: Path) -> None:
    """Names, arguments and results that are scripts, markup, links and addresses are read, and load nothing.

    In the widget, in what stands for it without a kernel, and in the exported page.
    """
    texts = [evil for evil in strings("http://127.0.0.1:9") if evil.isascii()]
    for number, evil in enumerate(texts):
        events = b"".join(encode(event) + b"\n" for event in hostile_run(evil))
        (lab.folder / f"hostile-{number:02}.jsonl").write_bytes(events)
    asked: list[str] = []
    told: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: told.append(dialog.message))
    cells = "import glob, loopscope", "for file in sorted(glob.glob('hostile-*')): display(loopscope.open(file))"
    opened(page, lab, lab.write("hostile.ipynb", *cells))
    count = f"=> document.querySelectorAll('.loopscope %s').length === {len(texts)}"
    page.wait_for_function(f"() {count % '.bar'}")
    for tab in TABS:
        page.evaluate("tab => document.querySelectorAll(`.loopscope [data-tab=${tab}]`).forEach((e) => e.click())", tab)
        page.wait_for_function(f"() {count % f'[data-tab={tab}][aria-selected=true]'}")
    assert page.query_selector(".loopscope :is(img, script, iframe, svg, a, link, object, form, base, meta)") is None
    assert "<script>" in page.inner_text(".loopscope >> nth=0")
    for file in sorted(lab.folder.glob("hostile-*")):
        session = loopscope.open(file)
        for document in (cell(session), session.to_html(tmp_path / "page.html").read_text()):
            assert page.evaluate("() => document.documentElement.dataset.ran") is None
            page.set_content(document)
    assert page.evaluate("() => document.documentElement.dataset.ran") is None
    own = f"http://127.0.0.1:{lab.port}/"
    assert [url for url in asked if not url.startswith((own, "data:", f"blob:{own}"))] == []
    assert told == []


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
    page.keyboard.press("End")
    page.wait_for_selector(".loopscope [data-tab=graph][aria-selected=true]")
    page.focus(".loopscope")
    page.keyboard.press("g")
    reads(page, ".position", "1/20")
    page.keyboard.press("w")
    page.wait_for_selector(".loopscope [data-tab=why][aria-selected=true]")
