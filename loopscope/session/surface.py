"""What a session offers to programs and notebooks beyond moving about: records, plots, pages, and how it shows itself.

Apart from the session's own business, which needs none of it. Whatever draws is above this layer and announces itself
in `Surface.drawn_by`; without it a session is text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, SupportsIndex, TypeAlias, cast, overload

import msgspec

from loopscope.errors import UsageError
from loopscope.export import to_json, to_python, to_toml, to_yaml

if TYPE_CHECKING:
    from loopscope.session.session import Session
    from loopscope.session.timeline import Timeline
    from loopscope.session.tune import Tuning

__all__ = ["Drawing", "Records", "Surface", "Svg"]


Tried: TypeAlias = "str | float | Iterable[int | float]"
"""Values of one setting, as a text of `loopscope tune --grid` or as they are."""


class Drawing(Protocol):
    """Draws sessions."""

    def bundle(self, session: Session) -> tuple[dict[str, Any], dict[str, Any]]:
        """The session by MIME type, and the metadata of that."""
        ...

    def page(self, session: Session, theme: Literal["dark", "light"] | None) -> str:
        """The one self-contained page."""
        ...

    def timeline(self, session: Session, theme: Literal["dark", "light"] | None) -> str:
        """The picture of the timeline, as SVG."""
        ...

    def heat(self, tuning: Tuning, theme: Literal["dark", "light"] | None) -> str:
        """The heat map of a tuning, as SVG."""
        ...


_WRITERS = {"toml": to_toml, "yaml": to_yaml, "json": to_json, "python": to_python}


class Svg(str):
    """A picture that notebooks show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<a picture, as SVG>"

    def _repr_svg_(self) -> str:
        return str(self)


class Records(list[dict[str, Any]]):
    """Rows that `pandas.DataFrame` takes as they are; a notebook shows them as a table of text."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Records: ...
    def __getitem__(self, index: SupportsIndex | slice) -> dict[str, Any] | Records:
        """One row, or some of them."""
        return Records(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)

    def __repr__(self) -> str:
        if not self:
            return "no rows"
        names = list(self[0])
        rows = [names, *([_cell(row.get(name)) for name in names] for row in self[:_MOST])]
        widths = [max(len(row[place]) for row in rows) for place in range(len(names))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        more = len(self) - _MOST
        return "\n".join([*lines, f"… {more:,} more"] if more > 0 else lines)


_MOST = 60
_WIDE = 40


def _cell(value: object) -> str:
    text = "" if value is None else ascii(value).strip("'")
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"


class Surface:
    """The part of a session that programs and notebooks use."""

    drawn_by: ClassVar[Drawing | None] = None
    """What draws sessions, once `loopscope.api` is loaded."""
    source: str
    timeline: Timeline
    cursor: int

    @property
    def _session(self) -> Session:
        return cast("Session", self)

    def __repr__(self) -> str:
        actions = [self.timeline.verdict(number).action for number in self.timeline.notable]
        verdicts = f"{actions.count('warn')} warned, {actions.count('hard_stop')} stopped"
        return f"<Session {self.source!a}: {len(self.timeline)} batches, cursor on {self.cursor}, {verdicts}>"

    @property
    def decisions(self) -> Records:
        """Every warning and stop of the run, a record each: batch, seq, scope, hash, action, layer, count, limit."""
        timeline = self.timeline
        return Records(msgspec.to_builtins(timeline.verdict(number)) for number in timeline.notable)

    def tune(self, *grid: str, **values: Tried) -> Records:
        """Every combination of some limits on this run: a record each, with what it would have warned, stopped, saved.

        Args:
            grid: texts as `loopscope tune --grid` takes them, `"hard_limit=3..12"`.
            values: the same by name: `hard_limit=range(3, 13)`, `window_size=[10, 20]`.

        Raises:
            UsageError: if a setting is not known, or takes none of its values.
        """
        tuned = self.tuning(*grid, **values)
        return Records(
            dict(zip(tuned.grid.settings, cell.values, strict=True))
            | {"warned": bool(cell.warned), "stopped": bool(cell.stopped), "first_stop": cell.median_first_stop}
            | {"saved_batches": cell.saved_batches, "saved_tokens": cell.saved_tokens}
            for cell in tuned.cells
        )

    def tuning(self, *grid: str, **values: Tried) -> Tuning:
        """As `tune`, with all that was found out about it.

        Raises:
            UsageError: as `tune`.
        """
        from loopscope.session.grid import parse_grid  # noqa: PLC0415 - a session that is looked at needs none of it
        from loopscope.session.summary import Run  # noqa: PLC0415 - as above
        from loopscope.session.tune import outcomes, tune  # noqa: PLC0415 - as above

        texts = [*grid, *(f"{name}={_values(value)}" for name, value in values.items())]
        if not texts:
            raise UsageError('tune: name what is to be tried, such as session.tune("hard_limit=3..12")')
        base = self.timeline.detector.policy
        parsed = parse_grid(texts, base)
        found = outcomes(self.timeline, [cell.policy for cell in parsed.cells(base)], self._session)
        return tune(parsed, base, [Run(self.source, len(self.timeline), found)])

    def plot(self, *grid: str, theme: Literal["dark", "light"] | None = None, **values: Tried) -> Svg:
        """The timeline with its counts as a picture; with a grid, as `tune` takes it, the heat map of that.

        Raises:
            UsageError: as `tune`.
        """
        if grid or values:
            return Svg(_drawing().heat(self.tuning(*grid, **values), theme))
        return Svg(_drawing().timeline(self._session, theme))

    def export(self, kind: str = "toml") -> str:
        """The policy at the cursor, or the run as it stands there, as a file's text.

        Args:
            kind: `toml` for loopscope, `yaml` for DeerFlow's section, `json`, or `python` for a snippet; `html` for the
                page and `svg` for the picture of `loopscope export`.

        Raises:
            UsageError: if there is no such kind.
        """
        if kind == "html":
            return _drawing().page(self._session, None)
        if kind == "svg":
            return _drawing().timeline(self._session, None)
        if kind not in _WRITERS:
            raise UsageError(f"export: there is no kind {kind!r}; there are {', '.join([*_WRITERS, 'html', 'svg'])}")
        return _WRITERS[kind](self._session.policy)

    def to_html(self, path: str | os.PathLike[str], *, theme: Literal["dark", "light"] | None = None) -> Path:
        """Write the one self-contained page of `loopscope export --html`; where it was written.

        Raises:
            UsageError: if the file cannot be written.
        """
        file = Path(path)
        text = _drawing().page(self._session, theme)
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror or error}; name a file that can be written") from None
        return file

    def _repr_mimebundle_(
        self,
        include: object = None,  # noqa: ARG002 - IPython's
        exclude: object = None,  # noqa: ARG002 - IPython's
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if Surface.drawn_by is None:
            return {"text/plain": repr(self)}, {}
        return Surface.drawn_by.bundle(self._session)


def _drawing() -> Drawing:
    if Surface.drawn_by is None:
        from importlib import import_module  # noqa: PLC0415 - only for a session made without `loopscope.open`

        import_module("loopscope.api")
    assert Surface.drawn_by is not None  # noqa: S101 - importing it sets it
    return Surface.drawn_by


def _values(value: Tried) -> str:
    return ",".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else str(value)
