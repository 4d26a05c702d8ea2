"""An HTML document of one file: its own style sheet, known by its hash, and nothing that runs or is loaded."""

from __future__ import annotations

import base64
import hashlib

from loopscope import __version__
from loopscope.views.web.markup import Markup, tag

__all__ = ["document"]


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


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
