from __future__ import annotations

import json
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopscope.engine.events import Batch, Call, Gap, Header
from loopscope.engine.policy import Policy
from loopscope.errors import UsageError
from loopscope.recording import writer as writer_module
from loopscope.recording.reader import Reader
from loopscope.recording.writer import Recorder, recorder_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, forks and file modes are POSIX here")


def batch(seq: int, command: str = "ls") -> Batch:
    return Batch(
        seq=seq, ts=float(seq), thread_id="t", run_id="r", calls=(Call(f"c{seq}", "bash", {"command": command}),)
    )


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in path.read_bytes().splitlines()]


def seqs(path: Path) -> list[int]:
    """The numbers in a file in which every line is whole, headers left out."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line["seq"] for line in lines if line["kind"] != "header"]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    return path


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_a_recording_begins_with_its_header_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The header tells who wrote, when and under which policy; the file is 0600 even where the umask allows all."""
    path = tmp_path / "run.jsonl"
    with Recorder(path, policy=Policy(hard_limit=9), enforced=True, producer="test") as recorder:
        recorder.put(batch(1))
        assert recorder.settle(10)
        assert seqs(path) == [1]
    header, event = (line.event for line in Reader(path))
    assert isinstance(header, Header)
    assert (header.format, header.producer, header.enforced) == ("loopscope/1", "test", True)
    assert header.policy == Policy(hard_limit=9).to_dict() == recorder.policy
    assert (header.created or "").endswith("Z")
    assert event == batch(1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert recorder.lost == 0


def test_the_number_of_the_process_can_be_in_the_name(tmp_path: Path) -> None:
    """`{pid}` keeps the processes of one program apart."""
    with Recorder(tmp_path / "run-{pid}.jsonl", policy={"hard_limit": 4}) as recorder:
        assert recorder.path == str(tmp_path / f"run-{os.getpid()}.jsonl")
        assert recorder.policy == {"hard_limit": 4}
    assert kinds(Path(recorder.path)) == ["header"]


def test_an_existing_recording_gets_a_new_segment(tmp_path: Path) -> None:
    """A second header is appended; a line that a crash cut off stays alone on its line, and the file's mode stays."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\n{"kind":"header","format":"loopscope/1"}\n{"kind":"ba')
    path.chmod(0o644)
    with Recorder(path) as recorder:
        recorder.put(batch(1))
    reader = Reader(path)
    assert [type(line.event) for line in reader] == [Header, Header, Batch]
    assert [problem.number for problem in reader.problems] == [3]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with Recorder(path):
        pass
    assert path.read_bytes().count(b"\n") == 6


def test_a_file_that_can_only_be_written_is_appended_to(tmp_path: Path) -> None:
    """Where the end of a file cannot be looked at, an empty line is the safe way to begin."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"kind":"ba')
    path.chmod(0o200)
    tmp_path.chmod(0o755)
    root = os.geteuid() == 0
    modes: list[tuple[Path, int]] = []
    if root:
        os.chown(path, 65534, 65534)
        parents = [parent for parent in path.parents if parent.stat().st_uid == 0 and parent != Path("/")]
        modes = [(parent, stat.S_IMODE(parent.stat().st_mode)) for parent in parents]
        for parent, mode in modes:
            parent.chmod(mode | 0o011)
        os.seteuid(65534)
    try:
        recorder = Recorder(path)
    finally:
        if root:
            os.seteuid(0)
            for parent, mode in modes:
                parent.chmod(mode)
    recorder.close()
    path.chmod(0o600)
    assert path.read_bytes().startswith(b'{"kind":"ba\n{"kind":"header"')


def test_a_path_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    """The error names the path and what to do, and nothing that was there is touched."""
    script = tmp_path / "agent.py"
    script.write_text("print()\n")
    for path, message in {
        tmp_path / "no" / "run.jsonl": f"run.jsonl: the folder {tmp_path}/no does not exist; make it first",
        tmp_path: ": Is a directory",
        script: "agent.py: exists and is no recording; name another file",
        tmp_path / "run.jsonl.gz": f"recordings are written plain; name it {tmp_path}/run.jsonl",
        tmp_path / "nul\0": r"/nul\x00: ",
    }.items():
        with pytest.raises(UsageError) as caught:
            Recorder(path)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    assert script.read_text() == "print()\n"
    assert sorted(tmp_path.iterdir()) == [script]


def test_an_event_is_recorded_as_it_was_when_it_was_put(tmp_path: Path) -> None:
    """A tool that changes its arguments changes nothing in the recording."""
    path = tmp_path / "run.jsonl"
    args = {"command": "ls"}
    with Recorder(path) as recorder:
        recorder.put(Batch(seq=1, ts=None, thread_id="t", run_id="r", calls=(Call("c", "bash", args),)))
        args["command"] = "rm"
    assert b'"ls"' in path.read_bytes()
    assert b'"rm"' not in path.read_bytes()


def test_put_never_raises(tmp_path: Path) -> None:
    """What is no event, and what comes after the end, is counted as lost."""
    recorder = Recorder(tmp_path / "run.jsonl")
    broken: Any = object()
    recorder.put(broken)
    assert recorder.lost == 0
    recorder.close()
    recorder.put(batch(1))
    assert recorder.lost == 1
    assert not recorder.close()
    assert recorder.settle()


def test_lines_of_many_threads_are_whole(tmp_path: Path) -> None:
    """Eight threads put at the same time; every line is there, once."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:

        def work(start: int) -> None:
            for seq in range(start, start + 200):
                recorder.put(batch(seq))
                if seq % 50 == 0:
                    recorder.settle()

        threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seqs(path)) == sorted(1000 * n + m for n in range(8) for m in range(200))


def test_a_pipe_without_a_reader_is_waited_for(pipe: Path) -> None:
    """The recorder starts, keeps what is put, and writes it with its header once somebody reads."""
    recorder = Recorder(pipe)
    recorder.put(batch(1))
    assert not recorder.settle(30)
    with pipe.open("rb") as reader:
        lines = [json.loads(reader.readline()) for _ in range(2)]
        assert recorder.close()
    assert [line["kind"] for line in lines] == ["header", "batch"]


def test_a_pipe_that_nobody_ever_reads_ends_with_the_recorder(pipe: Path) -> None:
    """Closing does not wait for a reader; what was put is counted as lost."""
    recorder = Recorder(pipe)
    recorder.put(batch(1))
    recorder.put(batch(2))
    assert not recorder.close(timeout=30)
    assert recorder.lost == 2


def test_a_reader_that_went_away_and_came_back_gets_a_header_and_whole_lines(pipe: Path) -> None:
    """A broken pipe is opened anew, and its next reader can read from the start."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(pipe)
    recorder.put(batch(1))
    assert recorder.settle(10)
    os.close(descriptor)
    recorder.put(batch(2))
    assert not recorder.settle(30)
    with pipe.open("rb") as reader:
        lines = [json.loads(reader.readline()) for _ in range(2)]
        assert recorder.close()
    assert [line.get("seq") for line in lines] == [None, 2]


def test_a_disk_that_does_not_follow_costs_events_but_no_time(pipe: Path) -> None:
    """While a reader stands still nobody waits for it; later the gap is noted where events are missing, in order."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(pipe, capacity=100_000)
    for seq in range(1, 3001):
        recorder.put(batch(seq))
        recorder.settle()
    assert not recorder.settle(30)
    assert recorder.lost > 1000
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "rb") as reader:
        got = [json.loads(reader.readline()) for _ in range(2)]
        while got[-1].get("lost") is None:
            got.append(json.loads(reader.readline()))
        recorder.put(batch(3001))
        got.append(json.loads(reader.readline()))
        assert not recorder.close()
        assert reader.read() == b""
    numbers = [line["seq"] for line in got[1:]]
    assert numbers == [*range(1, len(numbers) - 1), 3000, 3001]
    assert got[-2] == {
        "kind": "gap",
        "seq": 3000,
        "ts": 3000.0,
        "thread_id": None,
        "run_id": None,
        "lost": recorder.lost,
    }
    assert len(numbers) - 2 + recorder.lost == 3000


def test_a_write_that_hangs_is_waited_for_once(pipe: Path) -> None:
    """After one time-out nobody waits until the queue was empty; closing gives up in time."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(pipe)
    recorder.put(batch(1))
    assert recorder.settle(10)
    assert recorder._file is not None
    os.set_blocking(recorder._file._fd, True)
    recorder.put(batch(2, "x" * 200_000))
    assert not recorder.settle(0.01)
    assert recorder._outbox.stalled
    assert not recorder.settle(3600)
    assert not recorder.close(timeout=0.05)
    assert recorder.lost == 1
    os.close(descriptor)


def test_a_pipe_that_stays_full_ends_with_the_time_for_closing(pipe: Path) -> None:
    """A slow reader may get the rest while the recorder closes, but not for longer than the time given."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(pipe)
    recorder.put(batch(1, "x" * 200_000))
    assert not recorder.settle(30)
    thread = recorder._thread
    assert not recorder.close(timeout=0.05)
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive()
    os.close(descriptor)


def test_an_event_that_is_larger_than_the_queue_is_a_gap(tmp_path: Path) -> None:
    """One event that can never fit is noted at once; the ones around it are written."""
    path = tmp_path / "run.jsonl"
    with Recorder(path, capacity=1000) as recorder:
        recorder.put(batch(1))
        assert recorder.settle(10)
        recorder.put(batch(2, "x" * 1000))
        assert recorder.settle(10)
        recorder.put(batch(3))
        recorder.settle(10)
        recorder.put(Header(format="loopscope/1", producer="x" * 1000))
    assert seqs(path) == [1, 2, 3, 0]
    assert kinds(path) == ["header", "batch", "gap", "batch", "gap"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full is Linux's")
def test_a_full_disk_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Putting goes on, waiting does not begin, closing tells what is missing, and the log says why, once each."""
    recorder = Recorder("/dev/full")
    for seq in range(100):
        recorder.put(batch(seq))
    assert not recorder.close(timeout=30)
    assert recorder.lost == 100
    assert [record.getMessage() for record in caplog.records] == [
        "recording /dev/full: No space left on device; trying again",
        "recording /dev/full: the last 100 events are not in it",
    ]


def test_a_file_that_was_closed_by_the_program_is_opened_again(tmp_path: Path) -> None:
    """Programs that close all descriptors lose no event; a descriptor that became another file is left alone."""
    path, other = tmp_path / "run.jsonl", tmp_path / "other.txt"
    recorder = Recorder(path)
    recorder.put(batch(1))
    assert recorder.settle(10)
    assert recorder._file is not None
    descriptor = recorder._file._fd
    os.close(descriptor)
    recorder.put(batch(2))
    assert recorder.settle(10)
    descriptor = recorder._file._fd
    os.close(descriptor)
    reused = os.open(other, os.O_CREAT | os.O_WRONLY)
    assert reused == descriptor
    recorder.put(batch(3))
    assert recorder.close()
    os.write(reused, b"mine")
    os.close(reused)
    assert kinds(path) == ["header", "batch", "batch", "batch"]
    assert seqs(path) == [1, 2, 3]
    assert other.read_bytes() == b"mine"


def test_a_file_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    """What comes after is a recording of its own, with a header; also where the folder was gone for a while."""
    path = tmp_path / "runs" / "run.jsonl"
    path.parent.mkdir()
    recorder = Recorder(path)
    recorder.put(batch(1))
    assert recorder.settle(10)
    path.unlink()
    recorder.put(batch(2))
    assert recorder.settle(10)
    assert seqs(path) == [2]
    path.unlink()
    path.parent.rmdir()
    recorder.put(batch(3))
    assert not recorder.settle(30)
    path.parent.mkdir()
    assert recorder.close(timeout=30)
    assert kinds(path) == ["header", "batch"]
    assert seqs(path) == [3]


def test_recorders_to_one_file_are_one(tmp_path: Path) -> None:
    """Who names a file that is being recorded to shares it, by whatever name; it is closed with the last one."""
    path = tmp_path / "run.jsonl"
    (tmp_path / "link").symlink_to(tmp_path)
    first = recorder_for(path)
    second = recorder_for(tmp_path / "link" / "run.jsonl", policy=Policy())
    other = recorder_for(tmp_path / "other.jsonl")
    assert first is second
    assert other is not first
    assert first.close()
    second.put(batch(1))
    assert second.close()
    other.close()
    assert kinds(path) == ["header", "batch"]
    third = recorder_for(path)
    assert third is not first
    third.close()
    assert kinds(path) == ["header", "batch", "header"]


def in_a_child(work: Any) -> int:
    """The exit code of a forked child that does the work, 1 where it fails."""
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the child, which must not come back into pytest
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_write_to_its_parents_file(tmp_path: Path) -> None:
    """What the child puts is counted as lost there; the parent writes on, and nothing is in the file twice."""
    path = tmp_path / "run.jsonl"
    recorder = Recorder(path)
    recorder.put(batch(1))

    def work() -> int:
        recorder.put(batch(2))
        return 7 if recorder.settle() and not recorder.close() and recorder.lost == 1 else 8

    assert in_a_child(work) == 7
    recorder.put(batch(3))
    assert recorder.close()
    assert seqs(path) == [1, 3]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_with_a_name_of_its_own_records_there(tmp_path: Path) -> None:
    """With `{pid}` in the name the child has a file with a header, made only when there is something to record."""
    recorder = Recorder(tmp_path / "run-{pid}.jsonl")
    recorder.put(batch(1))
    assert recorder.settle(10)
    assert in_a_child(lambda: 0) == 0
    assert len(list(tmp_path.iterdir())) == 1

    def work() -> int:
        recorder.put(batch(2))
        return 7 if recorder.settle(10) and recorder_for(tmp_path / "run-{pid}.jsonl") is recorder else 8

    assert in_a_child(work) == 7
    assert recorder.close()
    (own,) = [path for path in tmp_path.iterdir() if path != Path(recorder.path)]
    assert kinds(own) == ["header", "batch"]
    assert seqs(own) == [2]
    assert seqs(Path(recorder.path)) == [1]


def test_a_child_whose_file_cannot_be_made_stops_recording(tmp_path: Path) -> None:
    """What would happen in a child of a child: its folder is gone, so it counts what it loses and disturbs nobody."""
    folder = tmp_path / "runs"
    folder.mkdir()
    recorder = Recorder(folder / "run-{pid}.jsonl")
    recorder.close()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    recorder.forked()
    recorder.forked()
    recorder.put(batch(1))
    recorder.put(batch(2))
    assert recorder.lost == 2
    recorder.users = 1
    assert not recorder.close()


def test_after_a_fork_everything_is_as_if_nothing_was_recorded_yet(tmp_path: Path) -> None:
    """What the fork hook does, seen without a fork: a fresh queue, and a file only where the name is its own."""
    own, shared = Recorder(tmp_path / "own-{pid}.jsonl"), Recorder(tmp_path / "shared.jsonl")
    threads = [own._thread, shared._thread]
    boxes = [own._outbox, shared._outbox]
    writer_module._sharing.after_fork()
    own.put(batch(1))
    shared.put(batch(1))
    assert (own.lost, shared.lost) == (0, 1)
    assert own.close()
    assert not shared.close()
    for box in boxes:
        box.closing = True
        box.wake()
    for thread in threads:
        assert thread is not None
        thread.join(30)


def test_a_gap_event_put_by_somebody_else_is_an_event_like_others(tmp_path: Path) -> None:
    """A recording of a live link has the gaps that the link had."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        recorder.put(Gap(seq=1, ts=None, thread_id=None, run_id=None, lost=5))
    assert kinds(path) == ["header", "gap"]
