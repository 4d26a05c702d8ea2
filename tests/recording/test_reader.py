from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.events import Batch, Call, Event, Gap, Header, Result
from loopscope.errors import UnreadableInputError
from loopscope.recording import reader as reader_module
from loopscope.recording.codec import encode
from loopscope.recording.reader import PROBLEMS, Line, LineProblem, Reader, read

HEADER = b'{"kind":"header","format":"loopscope/1"}'
SHARED = Path(__file__).parent.parent / "conformance"


def gap(seq: int) -> bytes:
    return encode(Gap(seq=seq, ts=None, thread_id="t", run_id=None, lost=seq))


def all_of(data: bytes, **options: Any) -> tuple[list[Line], Reader]:
    reader = Reader(io.BytesIO(data), **options)
    return list(reader), reader


def seqs(lines: list[Line]) -> list[int]:
    return [line.event.seq for line in lines if line.event is not None and not isinstance(line.event, Header)]


@pytest.mark.parametrize("path", sorted(SHARED.glob("0??.jsonl")), ids=lambda path: path.name)
def test_every_line_of_a_good_recording_is_an_event(path: Path) -> None:
    """The shared recordings are read whole, without a problem, and each line can be read again where it stands."""
    with Reader(path) as reader:
        lines = list(reader)
        assert reader.problems == []
        assert reader.skipped == 0
        raw = path.read_bytes().splitlines()
        assert [line.number for line in lines] == list(range(1, len(raw) + 1))
        for line in lines:
            assert reader.raw_at(line.offset, line.length) == raw[line.number - 1]
            assert reader.read_at(line.offset, line.length) == line.event
    assert [line.event for line in read(str(path))] == [line.event for line in lines]


FORMS = {
    "plain": HEADER + b"\n" + gap(1) + b"\n" + gap(2) + b"\n",
    "no newline at the end": HEADER + b"\n" + gap(1) + b"\n" + gap(2),
    "CRLF": HEADER + b"\r\n" + gap(1) + b"\r\n" + gap(2) + b"\r\n",
    "blank lines": b"\n \n" + HEADER + b"\n\n" + gap(1) + b"\n\t\r\n" + gap(2) + b"\n\n",
    "a byte order mark": b"\xef\xbb\xbf" + HEADER + b"\n" + gap(1) + b"\n" + gap(2) + b"\n",
    "several objects on a line": HEADER + gap(1) + b" \t" + gap(2) + b"\n",
    "a byte order mark, and several objects on a line": b"\xef\xbb\xbf" + HEADER + gap(1) + b"\r\n" + gap(2),
    "spaces around": b"  " + HEADER + b"  \n\t" + gap(1) + b"\n" + gap(2),
    "a truncated last line": HEADER + b"\n" + gap(1) + b"\n" + gap(2) + b"\n" + gap(3)[:-5],
    "a last line cut inside a character": HEADER + gap(1) + gap(2) + b'\n{"kind":"control","by":"caf\xc3',
    "a truncated object behind another one": HEADER + b"\n" + gap(1) + gap(2) + gap(3)[:-5],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_what_a_crash_or_another_producer_does_to_lines_is_no_problem(form: str, packed: bool) -> None:
    """Each tolerated form gives the same events without a complaint, plain and packed, each with its own place."""
    data = FORMS[form]
    lines, reader = all_of(gzip.compress(data) if packed else data, keep=True)
    assert seqs(lines) == [1, 2]
    assert reader.problems == []
    assert reader.skipped == 0
    assert reader.truncated == ("truncated" in form or "cut" in form)
    for line in lines:
        assert json.loads(data[line.offset : line.offset + line.length])["kind"] in {"header", "gap"}
        assert reader.read_at(line.offset, line.length) == line.event


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"hello", "is not JSON: Expecting value (character 1)"),
        (gap(9)[:-4], "is not JSON: Unterminated string starting at (character 63)"),
        (b'{"kind":"gap"}', "gap: Object missing required field `seq`"),
        (b"[1, 2]", "must be a JSON object, is '[1, 2]'"),
        (b'{"seq": 1}', "has no `kind`"),
        (b'{"kind": "gap", "by": "\xff"}', "is not UTF-8 at byte 24"),
        (b"\x00\x00\x00", "is not JSON: Expecting value (character 1)"),
        (b'{"kind": "witness", "values": ' + b"[" * 100_000, "is nested too deeply"),
        (b'{"kind": "\x1b]0;x\x07"', r"is not JSON: Invalid control character at (character 11)"),
        (b'{"kind":"batch","seq":1,"calls":"\\u001b"}', "batch: Expected `array`, got `str` - at `$.calls`"),
    ],
)
def test_any_other_bad_line_is_skipped_counted_and_reported(bad: bytes, reason: str) -> None:
    """The events around it are kept; the report has the line and the reason, in text that is safe to draw."""
    lines, reader = all_of(b"\n".join([HEADER, gap(1), bad, gap(2), b""]))
    assert seqs(lines) == [1, 2]
    assert reader.problems == [LineProblem(3, reason)]
    assert reader.skipped == 1
    assert not reader.truncated


def test_a_line_with_good_and_bad_objects_keeps_the_good_ones() -> None:
    """One report a line, and everything on it that can be read."""
    lines, reader = all_of(HEADER + b"\n" + gap(1) + b' {"kind":3} 7 ' + gap(2) + b", x\n" + gap(3))
    assert seqs(lines) == [1, 2, 3]
    assert reader.problems == [LineProblem(2, "has no `kind`")]
    assert reader.skipped == 1


def test_a_bad_last_line_that_is_no_cut_off_object_is_reported() -> None:
    """Only an object that is cut off is what a crash leaves."""
    lines, reader = all_of(gap(1) + b"\nhello")
    assert seqs(lines) == [1]
    assert reader.skipped == 1


def test_unknown_kinds_are_kept_raw() -> None:
    """An event of a later version has no meaning here, but its bytes are not lost."""
    new = b'{"kind":"telemetry","seq":2,"x":[1]}'
    lines, reader = all_of(b"\n".join([HEADER, gap(1), new, gap(3) + new]))
    assert [(line.event is None, line.raw) for line in lines] == [
        (False, None),
        (False, None),
        (True, new),
        (False, None),
        (True, new),
    ]
    assert reader.problems == []


def test_numbers_that_do_not_increase_are_reported_and_kept() -> None:
    """Order is a promise of the recorder; the events count nevertheless, and a new segment counts anew."""
    lines, reader = all_of(b"\n".join([HEADER, gap(5), gap(5), gap(3), gap(4), HEADER, gap(1), gap(0) + gap(7)]))
    assert seqs(lines) == [5, 5, 3, 4, 1, 0, 7]
    assert reader.problems == [
        LineProblem(3, "seq 5 comes after 5"),
        LineProblem(4, "seq 3 comes after 5"),
        LineProblem(8, "seq 0 comes after 1"),
    ]
    assert reader.skipped == 0


def test_reports_are_bounded() -> None:
    """A file of a million bad lines keeps a thousand reasons and the true count."""
    _, reader = all_of(HEADER + b"\n" + b"x\n" * (PROBLEMS + 500))
    assert len(reader.problems) == PROBLEMS
    assert reader.skipped == PROBLEMS + 500


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n", "has no event"),
        (b" \r\n\r\n", "has no event"),
        (b"hello\nworld\n", "has no readable event; line 1 is not JSON: Expecting value (character 1)"),
        (b'{"kind":"telemetry","seq":1}\n', "has no event"),
        (b'{"kind":"ba', "has no readable event: its only line is cut off"),
        (b"\x7fELF\x02\x01\x01\x00\x00\n\x00\n", "is no recording: its content is binary"),
        (b"\xff\xfe" + "{}\n".encode("utf-16-le"), "is UTF-16; save it as UTF-8"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(HEADER, mtime=0)[:12], "has no readable event; line 1 compressed data ends early"),
        (b"\x1f\x8bnot really", "has no readable event; line 1 compressed data is damaged"),
    ],
)
def test_a_file_without_an_event_is_an_error_of_one_line(data: bytes, message: str) -> None:
    """The error names the input and says what it is instead."""
    with pytest.raises(UnreadableInputError) as caught:
        all_of(data)
    assert str(caught.value).startswith(f"the input: {message}")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "newer", [b'{"kind":"header","format":"loopscope/2"}', b'{"kind":"header","format":"loopscope/10.1","policy":3}']
)
@pytest.mark.parametrize("before", [b"", HEADER + b"\n" + gap(1) + b"\n", gap(1)])
def test_a_newer_major_format_is_an_error_wherever_its_header_stands(before: bytes, newer: bytes) -> None:
    """A recording that this version would misread is refused, with the line and what to do."""
    with pytest.raises(
        UnreadableInputError, match=r"the input:[123]: is loopscope/\d.*, this version reads loopscope/1; update"
    ):
        all_of(before + newer + b"\n")


def test_a_newer_minor_format_is_read() -> None:
    """Minor versions only add kinds and fields."""
    lines, _ = all_of(b'{"kind":"header","format":"loopscope/1.7","more":1}\n' + gap(1))
    assert seqs(lines) == [1]


def test_a_header_of_another_tool_is_an_error() -> None:
    """A format that is not ours is named."""
    with pytest.raises(UnreadableInputError, match=r"the input:1: format must be loopscope/1, is 'trace/3'"):
        all_of(b'{"kind":"header","format":"trace/3"}')


@contextmanager
def as_a_user_without_rights(path: Path) -> Iterator[None]:
    """Root reads everything, so be somebody else for a moment."""
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_files_that_cannot_be_opened_are_told_in_one_line(tmp_path: Path) -> None:
    """Missing (with the nearest name), a directory, no permission, no file name at all."""
    (tmp_path / "stuck.jsonl").write_bytes(gap(1))
    cases = {
        tmp_path / "stuk.jsonl": f"stuk.jsonl: no such file, did you mean {tmp_path}/stuck.jsonl?",
        tmp_path / "other.txt": "other.txt: no such file",
        tmp_path / "no" / "folder.jsonl": "folder.jsonl: no such file",
        tmp_path: ": is a directory; name a recording in it",
        Path("nul\0byte"): r"nul\x00byte: embedded null byte",
        tmp_path / ("x" * 300): ": File name too long",
    }
    for path, message in cases.items():
        with pytest.raises(UnreadableInputError) as caught:
            Reader(path)
        assert str(caught.value).endswith(message)
    closed = tmp_path / "closed.jsonl"
    closed.write_bytes(gap(1))
    with (
        as_a_user_without_rights(closed),
        pytest.raises(UnreadableInputError, match=r"closed\.jsonl: Permission denied"),
    ):
        Reader(closed)


@pytest.mark.skipif(sys.platform != "linux", reason="a file that opens and cannot be read is Linux's /proc")
def test_a_disk_that_fails_while_reading_is_told_in_one_line() -> None:
    """An input/output error is an unreadable input, not a traceback."""
    with pytest.raises(UnreadableInputError, match=r"/proc/self/mem: Input/output error"):
        list(Reader("/proc/self/mem"))


def test_packed_data_that_ends_early_gives_what_is_there(tmp_path: Path) -> None:
    """A half-written archive is read up to the cut, with a report; the name need not end in .gz."""
    text = HEADER + b"\n" + b"\n".join(map(gap, range(1, 20_000)))
    path = tmp_path / "cut.jsonl"
    path.write_bytes(gzip.compress(text)[:-20_000])
    with Reader(path) as reader:
        lines = list(reader)
    assert 100 < len(lines) < 20_000
    assert [problem.reason for problem in reader.problems] == ["compressed data ends early"]
    assert reader.truncated


def test_packed_members_one_after_the_other_are_one_recording() -> None:
    """Files of gzip can be joined with cat, and tapes pad them with zeros."""
    packed = gzip.compress(HEADER + b"\n" + gap(1) + b"\n") + gzip.compress(gap(2) + b"\n")
    lines, reader = all_of(packed + b"\0" * 512)
    assert seqs(lines) == [1, 2]
    assert reader.problems == []
    lines, reader = all_of(packed + b"junk")
    assert seqs(lines) == [1, 2]
    assert reader.problems[0].reason.startswith("compressed data is damaged")


class Trickle(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__()
        self.inner, self.step = io.BytesIO(data), step

    def read(self, size: int = -1) -> bytes:
        """At most a few bytes, however many were asked for."""
        return self.inner.read(min(self.step, size))


@given(st.sampled_from(sorted(FORMS)), st.integers(1, 200), st.booleans())
def test_where_the_chunks_end_makes_no_difference(form: str, step: int, packed: bool) -> None:
    """Lines cut anywhere by a pipe are put together again, and can be read again from the copy."""
    data = FORMS[form]
    pipe = cast("Any", Trickle(gzip.compress(data) if packed else data, step))
    reader = Reader(pipe, keep=True)
    lines = list(reader)
    assert seqs(lines) == [1, 2]
    assert [reader.read_at(line.offset, line.length) for line in lines] == [line.event for line in lines]
    reader.close()


@given(
    st.lists(
        st.sampled_from(
            [
                HEADER,
                gap(1),
                gap(2)[:-9],
                b"\n",
                b"\r\n",
                b" ",
                b"{",
                b"\xff",
                b"\x00",
                b"\xef\xbb\xbf",
                b'{"kind":"x"}',
            ]
        )
        | st.binary(max_size=8),
        max_size=12,
    ).map(b"".join),
    st.booleans(),
)
def test_any_bytes_give_events_or_one_clear_error(data: bytes, packed: bool) -> None:
    """Nothing else is raised, whatever the file holds, and every event can be read again where it stands."""
    reader = Reader(io.BytesIO(gzip.compress(data) if packed else data), keep=True)
    lines: list[Line] = []
    message = ""
    try:
        lines += reader
    except UnreadableInputError as error:
        message = str(error)
    assert message.isprintable()
    assert message or lines
    for line in lines:
        assert reader.read_at(line.offset, line.length) == line.event
    assert all(problem.reason.isprintable() for problem in reader.problems)
    reader.close()


def test_what_was_not_kept_cannot_be_read_again() -> None:
    """A pipe that was not to be kept says so."""
    lines, reader = all_of(gap(1))
    with pytest.raises(UnreadableInputError, match="the input: cannot be read twice"):
        reader.read_at(lines[0].offset, lines[0].length)


def test_a_file_that_changed_underneath_is_noticed(tmp_path: Path) -> None:
    """A recording that was cut or overwritten since it was opened gives an error instead of another event."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(gap(1) + b"\n" + gap(2) + b"\n")
    with Reader(path) as reader:
        last = list(reader)[-1]
        path.write_bytes(b"x" * 500)
        with pytest.raises(UnreadableInputError, match=r"run\.jsonl: was changed since it was opened"):
            reader.read_at(last.offset, last.length)
        path.write_bytes(b"")
        with pytest.raises(UnreadableInputError, match=r"run\.jsonl: is shorter than it was"):
            reader.read_at(last.offset, last.length)


def test_single_lines_can_be_read_again_from_several_threads(tmp_path: Path) -> None:
    """Workers of a screen read different lines at the same time."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\n".join(map(gap, range(1, 500))))
    with Reader(path) as reader:
        lines = list(reader)
        wrong: list[Event | None] = []

        def work(part: list[Line]) -> None:
            for line in part:
                again = reader.read_at(line.offset, line.length)
                if again != line.event:
                    wrong.append(again)

        threads = [threading.Thread(target=work, args=(lines[start::4],)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_pipe_by_name_is_read(tmp_path: Path) -> None:
    """A FIFO (or `<(zcat run.gz)`) is as good as a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(HEADER + b"\n" + gap(1),))
    writer.start()
    with Reader(path, keep=True) as reader:
        lines = list(reader)
        assert seqs(lines) == [1]
        assert reader.read_at(lines[1].offset, lines[1].length) == lines[1].event
    writer.join()


def test_how_far_reading_is_can_be_asked(tmp_path: Path) -> None:
    """From nothing to all of a file; nobody knows how long a pipe is, or an empty file, or one that was closed."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(gap(n) + b"\n" for n in range(1, 20_000)))
    with Reader(path) as reader:
        shares = [reader.share] + [reader.share for _ in reader]
        assert shares[0] == 0.0
        assert 0.0 < (shares[1] or 0) < 1.0
        assert shares[-1] == 1.0
        assert shares == sorted(shares, key=lambda share: share or 0.0)
    assert reader.share is None
    assert Reader(io.BytesIO(gap(1))).share is None
    path.write_bytes(b"")
    with Reader(path) as empty:
        assert empty.share is None


def test_a_line_that_is_too_long_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line beyond all measure is not gathered in memory; what follows is read."""
    monkeypatch.setattr(reader_module, "LONGEST", 1000)
    data = gap(1) + b"\n" + b" " * 1001 + b"\n" + gap(2) + b"\n" + b" " * 1001
    reader = Reader(cast("Any", Trickle(data, 100)))
    lines = list(reader)
    assert seqs(lines) == [1, 2]
    assert reader.problems == [
        LineProblem(2, "is longer than 1,000 bytes"),
        LineProblem(4, "is longer than 1,000 bytes"),
    ]
    assert reader.skipped == 2


def test_memory_follows_the_longest_line_not_the_file(tmp_path: Path) -> None:
    """Twenty megabytes of normal lines cost a few chunks; one line of twenty megabytes costs a few times its length."""
    batch = Batch(seq=1, ts=1.0, thread_id="t", run_id="r", calls=(Call("c", "bash", {"command": "x" * 2000}),))
    many, one = tmp_path / "many.jsonl", tmp_path / "one.jsonl"
    with many.open("wb") as file:
        for _ in range(10_000):
            file.write(encode(batch) + b"\n")
    result = Result(seq=1, ts=1.0, thread_id="t", run_id="r", call_id="c", status="ok", content="x" * 20_000_000)
    one.write_bytes(encode(result) + b"\n")
    for path, most in ((many, 4_000_000), (one, 80_000_000)):
        tracemalloc.start()
        for line in read(path):
            assert line.event is not None
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most
