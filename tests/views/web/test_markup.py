from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from loopscope.recording.inert import inert
from loopscope.views.web.markup import Markup, joined, safe, tag
from tests.views.web.reading import Elements


@given(st.text(st.characters(), max_size=60))
def test_any_text_is_text_and_nothing_else(text: str) -> None:
    """As content and as an attribute: one element, and in it the text as every other screen shows it."""
    markup = tag("p", text, title=text)
    read = Elements(markup)
    assert read.found == [("p", [("title", inert(text))])]
    assert read.text == inert(text)
    assert ET.fromstring(markup).text in (inert(text), None if not text else inert(text))  # noqa: S314 - made here
    assert markup.isprintable()
    markup.encode()


def test_markup_is_not_escaped_again() -> None:
    """What is markup already goes in as it is; what is text does not."""
    assert tag("p", tag("b", "<"), "<") == "<p><b>&lt;</b>&lt;</p>"
    assert joined([Markup("<br/>"), "<br/>"]) == "<br/>&lt;br/&gt;"
    assert tag("p", "a" + tag("b")) == "<p>a&lt;b&gt;&lt;/b&gt;</p>"


def test_names_and_values_of_attributes() -> None:
    """Python's names become those of HTML, numbers are short, None is left out."""
    written = tag("rect", class_="a", stroke_width=1.5, x=3, y=0.10001, viewBox="0 0 1 1", id=None, aria_hidden="true")
    assert written == '<rect class="a" stroke-width="1.5" x="3" y="0.1" viewBox="0 0 1 1" aria-hidden="true"/>'
    assert tag("td") == "<td></td>"
    assert tag("a", width=100, height=-0.5) == '<a width="100" height="-0.5"></a>'


def test_long_text_is_cut() -> None:
    """Where that is asked for, with a sign that there is more."""
    assert safe("<" * 9, 3) == "&lt;&lt;…"
