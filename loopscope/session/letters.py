"""Names for hashes: letters in the order of first use in a scope, so that A B A B is seen as a word."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase

__all__ = ["letter_name", "letter_order"]

_ALPHABET = ascii_uppercase + ascii_lowercase
_SIZE = len(_ALPHABET)


def letter_name(order: int) -> str:
    """The name of a scope's hash by its order from 0: A to Z, a to z, then two letters, three, and so on."""
    name = ""
    order += 1
    while order:
        order, last = divmod(order - 1, _SIZE)
        name = _ALPHABET[last] + name
    return name


def letter_order(name: str) -> int | None:
    """The order that has this name; None for what is no name."""
    order = 0
    for letter in name:
        if letter not in _ALPHABET:
            return None
        order = order * _SIZE + _ALPHABET.index(letter) + 1
    return order - 1 if name else None
