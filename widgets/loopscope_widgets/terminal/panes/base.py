"""The widgets that draw lines: one that scrolls and takes the focus, and one that does neither.

Both use Textual's line API: a widget asks its presenter for the lines that are visible and for no others, so that a
history of a hundred thousand rows costs what one of ten does. Text becomes segments with explicit styles and never
passes through markup.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from loopscope.recording.inert import inert
from loopscope.views.glyphs import in_ascii, line_in_ascii
from loopscope.views.model import Line, link_at
from loopscope_widgets.terminal.keymap import LIST, bindings
from loopscope_widgets.terminal.theme import styles_for

__all__ = ["ASCII", "Follow", "LinePane", "LineView", "draw", "safe_title", "tell"]

LinesFor: TypeAlias = Callable[[int, int], list[Line]]
"""Gives the lines for a width and a height in cells."""

ASCII = "-ascii"
"""Class of the app under which everything is drawn in ASCII."""


class Follow(Message):
    """Go to a batch: a reference to it was clicked or chosen."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Link(NamedTuple):
    """A span that leads to a batch."""

    line: int
    span: int
    number: int


def tell(widget: Widget, text: str, *, problem: bool = False) -> None:
    """A short message in the corner; text from outside is shown as it is."""
    text = inert(text)
    widget.app.notify(
        in_ascii(text) if widget.app.has_class(ASCII) else text,
        severity="warning" if problem else "information",
        timeout=4,
        markup=False,
    )


def draw(widget: Widget, line: Line, back: Style) -> Strip:
    """A line on this background, in the colours of the theme, in ASCII where that is asked for."""
    app = widget.app
    if app.has_class(ASCII):
        line = line_in_ascii(line)
    styles = styles_for(dark=app.current_theme.dark, no_color=app.no_color)
    strip = Strip([Segment(span.text, back + styles[span.style, span.mark]) for span in line])
    return strip.extend_cell_length(widget.size.width, back)


def safe_title(widget: Widget, *parts: str) -> str:
    """A title for a border: text from outside, shown as it is and never read as markup; all but the first part dim."""
    first, *others = (in_ascii(inert(part)) if widget.app.has_class(ASCII) else inert(part) for part in parts)
    # Textual takes Content as well; its annotation says str.
    return cast("str", Content.assemble(first, *((part, "not bold dim") for part in others)))


class LineView(Widget):
    """Lines that neither scroll nor take the focus.

    Args:
        content: gives the lines for a width and a height.
        id: of the widget.
    """

    def __init__(self, content: LinesFor, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.content = content
        self._lines: list[Line] | None = None

    def show(self) -> None:
        """Draw anew: what is shown has changed."""
        self._lines = None
        self.refresh()

    def on_resize(self, _: Resize) -> None:
        """Another size has other lines."""
        self.show()

    def render_line(self, y: int) -> Strip:
        """One line, as Textual asks for it."""
        if self._lines is None:
            self._lines = self.content(self.size.width, self.size.height)
        return draw(self, self._lines[y] if y < len(self._lines) else (), self.rich_style)

    def link(self, event: Click) -> int:
        """What the span under a click leads to; 0 for nothing."""
        offset = event.get_content_offset(self)
        lines = self._lines or []
        return link_at(lines[offset.y], offset.x) if offset is not None and offset.y < len(lines) else 0


class _WholeCells(ScrollBarRender):
    """A scroll bar without characters that stand for parts of a cell."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]


class LinePane(ScrollView, can_focus=True, inherit_bindings=False):
    """A pane of lines that scrolls, takes the focus, and leads to the batches that its lines refer to.

    The lines, which are few whatever the recording is, are computed once after each change.

    Args:
        content: gives all lines for a width; the height is what is visible of them.
        number: the key that focuses it.
        name: what the border calls it.
    """

    BINDINGS = bindings(LIST)

    def __init__(self, content: LinesFor, *, number: int, name: str) -> None:
        super().__init__(id=name.lower(), name=name)
        self.content = content
        self.number = number
        self.short = name
        """What the tabs call it."""
        self.heading = f"{number} {name}"
        """What the border says; may hold text from outside."""
        self.beside: tuple[str, ...] = ()
        """What else the border says: panes that stand in the same place."""
        self._named: tuple[str, ...] = ()
        self.chosen: int | None = None
        """Which of the references the keys have chosen; None before any was."""
        self._lines: list[Line] = []
        self._links: list[_Link] = []
        self._made_for: Size | None = None
        self._scrolls = False
        """There were more lines than are visible, so that the scroll bar has a column."""
        self._back: Style | None = None

    def on_mount(self) -> None:
        """In ASCII the scroll bar is too. The title is in the first picture: later it would call for another one."""
        self._entitle(*self._heading())
        if self.app.has_class(ASCII):
            self.vertical_scrollbar.renderer = _WholeCells  # type: ignore[misc]

    def show(self) -> None:
        """Draw anew: what is shown, or the size, has changed. Nothing is chosen then."""
        before = None if self._made_for is None or self.chosen is not None else (self._made_for, self._lines)
        self._made_for = None
        if not self.display or self.size.width <= 0:
            return
        self._entitle(*self._heading())
        self._make()
        self._reach(self.content_region.width, len(self._lines))
        if before is None or before[0] != self.content_region.size:
            self.refresh()
        else:
            self._refresh_changed(before[1])

    def _heading(self) -> tuple[str, ...]:
        """What the border is to say, in parts; may hold text from outside."""
        return (self.heading, *self.beside)

    def _entitle(self, *title: str) -> None:
        """What the border says; the same again is not drawn again."""
        if title != self._named:
            self._named = title
            self.border_title = safe_title(self, *title)

    def _reach(self, width: int, lines: int) -> None:
        """How far it scrolls. While the scroll bar stays, or stays away, that is no matter for a new layout."""
        room = self.content_region.height
        # A pane that need not scroll is as high as it is: its lines come and go without a new layout.
        wanted = Size(width, max(lines, room))
        if not (self.show_vertical_scrollbar and lines > room and width == self.virtual_size.width):
            self.virtual_size = wanted
        elif wanted != self.virtual_size:
            size: Any = LinePane.virtual_size
            self.set_reactive(size, wanted)
            self.vertical_scrollbar.window_virtual_size = lines
            self.scroll_y = self.validate_scroll_y(self.scroll_y)

    def _refresh_changed(self, before: list[Line]) -> None:
        """Draw the lines that are visible and not what they were: most keys change few."""
        top, room = self.scroll_offset.y, self.size.height
        old, new = before[top : top + room], self._lines[top : top + room]
        for y, (was, line) in enumerate(zip_longest(old, new)):
            if was != line:
                self.refresh(Region(0, y, self.size.width, 1))

    def _make(self) -> None:
        """Have the lines ready for this size. Whether the scroll bar takes a column shows when they are there."""
        size = self._made_for = self.content_region.size
        self.chosen = None
        for _ in range(2):
            self._lines = self.content(size.width - self._scrolls, size.height)
            scrolls = 0 < size.height < len(self._lines)
            if scrolls == self._scrolls:
                break
            self._scrolls = scrolls
        self._links = [
            _Link(y, index, span.link)
            for y, line in enumerate(self._lines)
            for index, span in enumerate(line)
            if span.link
        ]

    def on_resize(self, _: Resize) -> None:
        """Another size has other lines."""
        self.show()

    def notify_style_update(self) -> None:
        """The theme may have changed."""
        self._back = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One line, as Textual asks for it; the first picture is asked for before the first size is told."""
        if self._made_for is None:
            self._make()
        if self._back is None:
            self._back = self.rich_style
        y += self.scroll_offset.y
        line = self._lines[y] if y < len(self._lines) else ()
        if self.chosen is not None and (link := self._links[self.chosen]).line == y:
            line = (*line[: link.span], line[link.span]._replace(mark="cursor"), *line[link.span + 1 :])
        return draw(self, line, self._back)

    def action_move(self, by: int) -> None:
        """Choose the next reference that can be seen, or scroll a line where there is none."""
        first, last = self.scroll_offset.y, self.scroll_offset.y + self.size.height - 1
        if self.chosen is None or not first <= self._links[self.chosen].line <= last:
            seen = [index for index, link in enumerate(self._links) if first <= link.line <= last]
            wanted = (seen[0] if by > 0 else seen[-1]) if seen else None
        else:
            wanted = self.chosen + by
        if wanted is not None and 0 <= wanted < len(self._links) and first - 1 <= self._links[wanted].line <= last + 1:
            self.chosen = wanted
            self.scroll_to_line(self._links[wanted].line)
        else:
            self.scroll_relative(y=by, animate=False)
        self.refresh()

    def scroll_to_line(self, y: int) -> None:
        """Make this line visible, with as little movement as that takes."""
        top, height = self.scroll_offset.y, self.size.height
        if not top <= y < top + height:
            self.scroll_to(y=y if y < top else y - height + 1, animate=False)

    def action_choose(self) -> None:
        """Follow the reference that is chosen."""
        if self.chosen is None:
            tell(self, "nothing is chosen: j and k choose a reference #n, enter follows it")
        else:
            self.post_message(Follow(self._links[self.chosen].number))

    def action_page(self, by: int) -> None:
        """A page down or up."""
        self.scroll_relative(y=by * max(1, self.size.height - 1), animate=False)

    def action_edge(self, end: int) -> None:
        """To the top (-1) or the bottom (1)."""
        self.scroll_to(y=0 if end < 0 else self.virtual_size.height, animate=False)

    def line_of(self, event: Click) -> tuple[int, int] | None:
        """Line and cell under a click; None beside the lines."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        y = offset.y + self.scroll_offset.y
        return (y, offset.x) if y < len(self._lines) else None

    def on_click(self, event: Click) -> None:
        """A reference to a batch is followed."""
        place = self.line_of(event)
        if place is not None and (number := link_at(self._lines[place[0]], place[1])) > 0:
            self.post_message(Follow(number))
