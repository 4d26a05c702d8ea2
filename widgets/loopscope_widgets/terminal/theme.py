"""Two themes of our own in the colours of `views.palette`, and how a view's styles look in them.

The glyph says it first, colour repeats it. Under NO_COLOR everything is grey, so that warnings are underlined and stops
reversed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast, get_args

from rich.style import Style as RichStyle
from textual.theme import Theme

from loopscope.views import palette as colours
from loopscope.views.heat import SHADES, shade
from loopscope.views.model import Mark, Style

__all__ = ["DARK", "LIGHT", "THEMES", "styles_for"]


def _theme(name: str, palette: colours.Palette, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        dark=dark,
        primary=palette.repeat,
        secondary=palette.dim,
        accent=palette.repeat,
        warning=palette.warn,
        error=palette.stop,
        success=palette.dim,
        foreground=palette.text,
        background=palette.background,
        surface=palette.background,
        panel=palette.panel,
        variables={
            "pane-line": palette.line,
            "pane-dim": palette.dim,
            "pane-cursor": palette.cursor,
            "input-cursor-background": palette.text,
            "input-cursor-foreground": palette.background,
            "input-selection-background": palette.cursor,
            "scrollbar": palette.line,
            "scrollbar-hover": palette.dim,
            "scrollbar-active": palette.dim,
            "scrollbar-background": palette.background,
            "scrollbar-background-hover": palette.background,
            "scrollbar-background-active": palette.background,
            "scrollbar-corner-color": palette.background,
        },
    )


DARK = _theme("loopscope-dark", colours.DARK, dark=True)
LIGHT = _theme("loopscope-light", colours.LIGHT, dark=False)
THEMES = (DARK, LIGHT)


@lru_cache(maxsize=4)
def styles_for(*, dark: bool, no_color: bool) -> dict[tuple[Style, Mark], RichStyle]:
    """How each style under each mark is drawn on a dark or a light background.

    Args:
        dark: which of the two palettes; a theme that is not ours gets the one that fits its background.
        no_color: say warn by an underline and stop by reversing, since all colours will be grey.
    """
    palette = colours.DARK if dark else colours.LIGHT
    base: dict[Style, RichStyle] = {
        "text": RichStyle(color=palette.text),
        "dim": RichStyle(color=palette.dim),
        "title": RichStyle(color=palette.text, bold=True),
        "key": RichStyle(color=palette.repeat, bold=True),
        "ok": RichStyle(color=palette.ok),
        "repeat": RichStyle(color=palette.repeat),
        "warn": RichStyle(color=palette.warn, bold=True, underline=no_color or None),
        "stop": RichStyle(color=palette.stop, bold=True, reverse=True),
        "ahead": RichStyle(color=palette.ahead),
        "bar_ok": RichStyle(color=palette.ok),
        "bar_repeat": RichStyle(color=palette.repeat),
        "bar_warn": RichStyle(color=palette.warn),
        "bar_stop": RichStyle(color=palette.stop),
        "tick_warn": RichStyle(color=palette.background, bgcolor=palette.warn),
        "tick_stop": RichStyle(color=palette.background, bgcolor=palette.stop),
    }
    for level in range(1, len(SHADES) + 1):
        for name, harm in (("cool", False), ("warm", True)):
            found = shade(palette, level, harm=harm)
            base[cast("Style", f"{name}_{level}")] = RichStyle(color=found.text, bgcolor=found.back)
    over: dict[Mark, RichStyle] = {
        "": RichStyle.null(),
        "strong": RichStyle(bold=True),
        "cursor": RichStyle(bgcolor=palette.cursor, bold=True),
    }
    styles = {(style, mark): base[style] + over[mark] for style in get_args(Style) for mark in get_args(Mark)}
    styles["stop", "cursor"] = base["stop"]  # it stands out already, and reversed the cursor's grey would be its text
    return styles
