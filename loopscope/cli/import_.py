"""`loopscope import`: a checkpoint file or a recording as a recording, with what this version does not know."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, cast

import click

from loopscope.cli.options import channel_option, target_argument

if TYPE_CHECKING:
    from loopscope.engine.events import Event
    from loopscope.recording.reader import Line, Reader

__all__ = ["command"]


@click.command("import")
@target_argument()
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="The recording to write, packed if named .gz; - is stdout."
)
@channel_option
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def command(target: str, output: str, channel: str | None, *, force: bool) -> None:
    """Write TARGET as a recording: a checkpoint file, a recording (packed or not), sample:NAME, or - for stdin.

    Secrets in a checkpoint file are masked. Of a recording, what this version does not know is kept as it is; lines
    that cannot be read are left out and named. FILE is readable for you alone, and appears when all of it is written.
    """
    from loopscope.cli.outfile import STDOUT, written
    from loopscope.cli.output import report, tell
    from loopscope.cli.progress import Progress
    from loopscope.sources.lines import ForeignReader
    from loopscope.targets import open_target
    from loopscope.views.words import plural

    name, reader = open_target(target, keep=True, channel=channel)
    text_of = _masking() if isinstance(reader, ForeignReader) else partial(_raw, reader)
    count = 0
    with ExitStack() as stack:
        stack.enter_context(reader)
        file = stack.enter_context(
            written(output, may_replace=lambda _: force, otherwise="exists already; --force replaces it")
        )
        put = file.write
        if output.endswith(".gz"):
            put = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)).write
        progress = stack.enter_context(Progress("events"))
        for line in reader:
            put(text_of(line) + b"\n")
            count += 1
            progress.at(count)
    report(name, reader.problems, reader.skipped)
    tell(f"{'stdout' if output == STDOUT else output}: {plural(count, 'event')} from {name}")


def _masking() -> Callable[[Line], bytes]:
    """The events of a foreign file are made here, and so their secrets are masked here; a recording's were before."""
    from loopscope.recording.codec import encode
    from loopscope.recording.redaction import Redactor

    redactor = Redactor()
    return lambda line: encode(redactor.event(cast("Event", line.event)))


def _raw(reader: Reader, line: Line) -> bytes:
    """The line as it is, but for white space around it."""
    raw = line.raw if line.raw is not None else reader.raw_at(line.offset, line.length)
    return raw.strip(b" \t\r")
