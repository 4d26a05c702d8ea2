"""Many recordings at once: what files, folders and globs name, and the labels that a person gave them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loopscope.errors import UnreadableInputError, UsageError
from loopscope.recording.inert import inert
from loopscope.samples import samples

if TYPE_CHECKING:
    from loopscope.session.summary import Label

__all__ = ["Found", "Labels", "find", "read_labels", "short_names"]

_SAMPLE = "sample:"
_RECORDINGS = (".jsonl", ".jsonl.gz")
_DATABASES = (".db", ".sqlite", ".sqlite3")
_MAGIC = frozenset("*?[")


class Found(NamedTuple):
    """One recording."""

    target: str
    named: bool
    """The user named it; else it was found in a folder, where other files may be that are no recordings of runs."""


def find(targets: Sequence[str]) -> list[Found]:
    """The recordings that the targets name, each once, those of a folder or pattern in the order of their names.

    Raises:
        UsageError: if a folder or a pattern has none.
        CannotAttachError: if a target can only be a live process that is not there.
    """
    found: dict[str, Found] = {}
    for target in targets:
        for each in _expand(target):
            found.setdefault(each.target, each)
    return list(found.values())


def _expand(target: str) -> Iterator[Found]:
    if target.startswith(_SAMPLE) and _MAGIC & set(target):
        pattern = target.removeprefix(_SAMPLE)
        names = [sample.name for sample in samples() if fnmatchcase(sample.name, pattern)]
        yield from (Found(f"{_SAMPLE}{name}", named=True) for name in _some(names, target))
    elif os.path.isdir(target):  # noqa: PTH112 - a name of any kind
        yield from (Found(name, named=False) for name in _some(_inside(target), target))
    elif _MAGIC & set(target) and not os.path.exists(target):  # noqa: PTH110 - as above
        for name in _some(sorted(glob.glob(target, recursive=True)), target):  # noqa: PTH207 - a pattern from outside
            yield from _expand(name) if os.path.isdir(name) else [Found(name, named=True)]  # noqa: PTH112 - as above
    else:
        yield Found(target, named=True)


def _inside(folder: str) -> list[str]:
    """Every file below a folder that may be a recording or a checkpoint file."""
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            file = os.path.join(place, name)  # noqa: PTH118 - as the user began the name
            if name.endswith(_RECORDINGS) or (name.endswith(_DATABASES) and _is_foreign(file)):
                found.append(file)
    return found


def _is_foreign(file: str) -> bool:
    from loopscope.sources import detect

    return detect(file) is not None


def _some(names: Iterable[str], target: str) -> list[str]:
    found = list(names)
    if not found:
        raise UsageError(f"{inert(target)}: no recording there; recordings end in {' or '.join(_RECORDINGS)}")
    return found


def short_names(targets: Sequence[str]) -> list[str]:
    """What to call recordings among each other: their files' names without endings, where no two have the same."""
    short = [Labels.names(target)[-1] for target in targets]
    return short if len(set(short)) == len(short) else list(targets)


class Labels(NamedTuple):
    """What a person says of recordings, by their names as they are in the file of labels."""

    by_name: Mapping[str, Label]

    def of(self, target: str) -> Label | None:
        """The label of a recording: by its whole name, its file's, or that without its ending; a sample has its own."""
        found: Label | None = None
        for name in self.names(target):
            found = found or self.by_name.get(name)
        return found or _own(target)

    @staticmethod
    def names(target: str) -> list[str]:
        """What a recording may be called."""
        name = Path(target).name.removeprefix(_SAMPLE)
        ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "")
        return [target, os.path.normpath(target), name, name.removesuffix(ending)]


def _own(target: str) -> Label | None:
    """What a sample is."""
    if not target.startswith(_SAMPLE):
        return None
    known = {sample.name: sample for sample in samples()}.get(target.removeprefix(_SAMPLE))
    return None if known is None else "loop" if known.looping else "ok"


_ENDINGS = (*reversed(_RECORDINGS), *_DATABASES)


def read_labels(file: str) -> Labels:
    """The labels of a file: a recording, a tab, `loop` or `ok`; further columns, blank lines and `#` are passed over.

    Raises:
        UnreadableInputError: if it cannot be read.
        UsageError: with the line that is none.
    """
    try:
        lines = Path(file).read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise UnreadableInputError(f"{inert(file)}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UnreadableInputError(f"{inert(file)}: is not UTF-8") from None
    known: dict[str, Label] = {}
    for number, line in enumerate(lines, 1):
        name, _, rest = line.partition("\t")
        label = rest.partition("\t")[0].strip()
        if not line.strip() or line.startswith("#") or (number == 1 and label and label not in _LABELS):
            continue
        where = f"{inert(file)}:{number}"
        if label not in _LABELS:
            raise UsageError(f"{where}: must be a recording, a tab, and loop or ok, is {inert(line, 80)!r}")
        if known.setdefault(name.strip(), _LABELS[label]) != _LABELS[label]:
            raise UsageError(f"{where}: {inert(name.strip(), 80)} is labelled loop and ok")
    return Labels(known)


_LABELS: dict[str, Label] = {"loop": "loop", "ok": "ok"}
