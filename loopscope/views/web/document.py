"""Documents of one file, an HTML page or an SVG picture: with their own style, and nothing that runs or is loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from loopscope import __version__
from loopscope.views.web.markup import Markup, tag

__all__ = ["document", "drawing"]


def document(title: str, style: str, body: Markup, theme: str | None) -> str:
    """The whole document, which ends in a newline.

    Args:
        title: of the window.
        style: the style sheet.
        body: its element.
        theme: `dark` or `light`; None follows the reader.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content=theme or "light dark"),
        tag("meta", name="generator", content=f"loopscope {__version__}"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def drawing(  # noqa: PLR0913, PLR0917 - what a picture is
    title: str, description: str, style: str, width: float, height: float, parts: Iterable[Markup]
) -> str:
    """The whole picture, which ends in a newline.

    Args:
        title: of the picture.
        description: what it shows, for who cannot see it.
        style: the style sheet.
        width: in pixels.
        height: in pixels.
        parts: what is drawn, from the back to the front.
    """
    whole = tag(
        "svg",
        tag("title", title, id="title"),
        tag("desc", description, id="desc"),
        tag("style", Markup(style)),
        tag("rect", class_="sheet", width=width, height=height),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_="loopscope",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_labelledby="title desc",
    )
    return f"{whole}\n"


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
