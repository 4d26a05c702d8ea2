"""What a recording keeps of a tool's result: the beginning of its text, the size and a digest of the whole.

Apart since adapters make it, the reader checks it, and the engine compares results by the digest alone.
"""

from __future__ import annotations

from typing import NamedTuple

from loopscope.engine.identity import dumps
from loopscope.recording.plain import plain

__all__ = ["PREVIEW", "Preview", "digest", "preview", "text_of", "whole"]

PREVIEW = 2_000
"""Characters of a result's text that are recorded unless the recorder is told otherwise (SPEC §5)."""


class Preview(NamedTuple):
    """The fields of a `result` event that tell what came back."""

    content: str
    """The beginning of the text."""
    size: int
    """Bytes of the whole text in UTF-8."""
    digest: str
    """16 hex digits that are the same for the same whole text."""


def preview(content: object, limit: int = PREVIEW) -> Preview:
    """The preview of a result, with nothing kept secret: see `Redactor.preview` for what recordings use.

    Args:
        content: text, a list of content blocks, or any other value.
        limit: the most characters of text to keep.
    """
    text = text_of(content)
    return Preview(text[:limit], *whole(text))


def whole(text: str) -> tuple[int, str]:
    """Size and digest of a whole text, as `Preview` has them."""
    data = _utf8(text)
    return len(data), _digest(data)


def text_of(content: object) -> str:
    """The text of a message's content: its text blocks on lines of their own, any other block or value as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, (list, tuple)):
        return "\n".join(map(_block_text, content))
    return _block_text(content)


def digest(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of the text in UTF-8 (SPEC §5)."""
    return _digest(_utf8(text))


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict) and block.get("type", "text") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    return dumps(plain(block))


def _utf8(text: str) -> bytes:
    """The text in UTF-8, a lone surrogate as the three bytes that it would be."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 - loading OpenSSL takes time, and who only looks digests little

    return sha256(data).hexdigest()[:16]
