"""Cuts bytes as they come into whole lines, of a length that memory can hold."""

from __future__ import annotations

__all__ = ["LONGEST", "Lines"]

LONGEST = 256 << 20
"""Bytes of a line that a viewer takes; an agent sends far shorter ones."""


class Lines:
    """Remembers the beginning of a line until its end has come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def cut(self, data: bytes) -> list[bytes]:
        """The lines that end in this piece, without their newlines.

        Raises:
            ValueError: where a line is longer than any that an agent sends.
        """
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._parts, whole[0]))
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > LONGEST:
            raise ValueError(f"a line is longer than {LONGEST:,} bytes")
        return whole
