"""A page and a picture of a hostile run: its text is shown, and nothing of it runs, loads or breaks out."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views.web.page import page
from loopscope.views.web.picture import picture
from tests.session.support import session_of
from tests.views.web.hostile import STRINGS, hostile_run, strings
from tests.views.web.reading import Elements

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
OURS = {
    "a", "b", "body", "caption", "code", "dd", "desc", "div", "dl", "dt", "footer", "g", "h1", "h2", "h3", "head",
    "header", "html", "li", "main", "meta", "ol", "p", "path", "pre", "rect", "section", "span", "style", "svg",
    "table", "tbody", "td", "text", "th", "thead", "title", "tr",
}  # fmt: skip
ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "colspan", "content", "d", "fill-opacity",
    "height", "href", "http-equiv", "id", "lang", "lengthadjust", "name", "preserveaspectratio", "role", "rx", "scope",
    "text-anchor", "textlength", "viewbox", "width", "x", "xmlns", "y",
}  # fmt: skip


def hostile_session(text: str) -> Session:
    session = session_of(hostile_run(text))
    session.source = f"runs/{text}"
    session.problems.append((1, text))
    session.open_at_first_stop()
    return session


@pytest.mark.parametrize("text", STRINGS, ids=range(len(STRINGS)))
@pytest.mark.parametrize("draw", [page, picture])
def test_only_our_own_elements_and_attributes_are_there(draw: object, text: str) -> None:
    """Links lead inside the page, there is one style sheet, and no attribute that could run or load."""
    markup = draw(hostile_session(text))  # type: ignore[operator]
    read = Elements(markup)
    assert {tag for tag, _ in read.found} <= OURS
    assert [tag for tag, _ in read.found].count("style") == 1
    for tag, attributes in read.found:
        assert {name for name, _ in attributes} <= ATTRIBUTES
        for name, value in attributes:
            if name == "href":
                assert re.fullmatch(r"#b\d+", value or "")
            if tag == "meta" and name == "content":
                assert "elsewhere" not in (value or "")
    assert len(read.text) > 500
    assert set(markup) - {"\n"} == {char for char in markup if char.isprintable()}
    ET.fromstring(markup.partition("\n")[2] if draw is page else markup)  # noqa: S314 - made here
    markup.encode("utf-8")


@pytest.mark.parametrize("text", STRINGS, ids=range(len(STRINGS)))
def test_the_text_is_shown_as_it_is(text: str) -> None:
    """Legible, as on every other screen."""
    read = Elements(page(hostile_session(text)))
    assert inert(text)[:60] in read.text


def test_a_page_has_a_policy_that_forbids_everything_but_its_own_style() -> None:
    """The hash is that of the style sheet which is there: the browser would not apply another one."""
    import base64
    import hashlib

    text = page(hostile_session(STRINGS[2]))
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policies = [
        dict(attributes)["content"]
        for tag, attributes in Elements(text).found
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attributes
    ]
    assert policies == [f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"]
    # Only what comes before an element is held to the policy by every browser.
    assert text.index("Content-Security-Policy") < text.index("<title>") < text.index("<style>")


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """An address on this machine, and what was asked for there."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        """Notes every request."""

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def _browse(folder: Path, address: Path) -> str:
    """What a real browser has made of a file."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--dump-dom", address.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium; the tests above hold the same without it")
def test_in_a_real_browser_nothing_runs_and_nothing_is_loaded(tmp_path: Path, elsewhere: tuple[str, list[str]]) -> None:
    """Every hostile string at once; and the browser would have run and loaded them, had they been left as they are."""
    address, asked = elsewhere
    texts = strings(address)
    for draw, name in ((page, "page.html"), (picture, "picture.svg")):
        for number, text in enumerate(texts):
            (tmp_path / f"{number}-{name}").write_text(draw(hostile_session(text)), "utf-8")
    frames = "".join(f'<iframe src="{path.name}"></iframe>' for path in sorted(tmp_path.iterdir()))
    (tmp_path / "all.html").write_text(f"<!doctype html>{frames}", "utf-8")
    whole = _browse(tmp_path, tmp_path / "all.html")
    assert whole.count("<iframe") == 2 * len(texts)
    together = hostile_session(" ".join(texts))
    for draw, name in ((page, "together.html"), (picture, "together.svg")):
        (tmp_path / name).write_text(draw(together), "utf-8")
        shown = _browse(tmp_path, tmp_path / name)
        assert "data-ran" not in shown
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
    assert asked == []
    raw = "".join(text.encode("utf-8", "replace").decode() for text in texts)
    (tmp_path / "raw.html").write_text(f"<!doctype html><p>{raw}</p>", "utf-8")
    assert "data-ran" in _browse(tmp_path, tmp_path / "raw.html")
    assert asked


def test_a_deep_and_long_value_stays_small() -> None:
    """A page is bounded, whatever a call weighs."""
    deep: object = "x" * 100_000
    for _ in range(500):
        deep = {"k": deep, "list": [1] * 1000}
    events = hostile_run(json.dumps("x" * 50_000))
    assert len(page(session_of(events))) < 2_000_000
    from tests.views.support import Story

    story = Story()
    for _ in range(3):
        story.call("t" * 10_000, {"a": deep, "query": "q" * 100_000}, "r" * 100_000)
    assert len(page(story.session())) < 200_000
