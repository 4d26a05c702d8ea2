from __future__ import annotations

from loopscope.adapters.context import ABSENT, run_id_in, stamp, thread_id_in
from loopscope.adapters.stop_reasons import StopReason, StopReasons


def test_unread_stop_reasons_are_bounded_and_read_once() -> None:
    """The oldest of too many is forgotten; a run that is stopped again counts as new."""
    reasons = StopReasons(2)
    for run_id in ("a", "b", "a", "c"):
        reasons.put(run_id, "loop_capped", "t")
    assert [reasons.take(run_id) for run_id in ("a", "b", "c", "c")] == ["loop_capped", None, "loop_capped", None]


def test_stop_reasons_are_forgotten_by_thread() -> None:
    """Those of other threads stay."""
    reasons = StopReasons(9)
    reasons.put(None, "loop_capped", "t")
    reasons.put("b", "loop_capped", "u")
    reasons.forget("t")
    assert (reasons.take(None), reasons.take("b")) == (None, "loop_capped")
    reasons.put("b", "loop_capped", "u")
    reasons.forget()
    assert reasons.take("b") is None


def test_a_stop_reason_is_a_text_that_knows_its_run() -> None:
    """So a context that holds it compares and prints as usual."""
    reason = StopReason("loop_capped", "r")
    assert (reason, reason.run_id, f"{reason}") == ("loop_capped", "r", "loop_capped")


class Attributes:
    """A context with attributes."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


class Hostile:
    """A context that raises whatever is done to it."""

    @property
    def run_id(self) -> str:
        """No id."""
        raise RuntimeError("no")

    thread_id = run_id

    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError(name)


def test_ids_in_a_context() -> None:
    """In mappings and attributes; a thread id if it is truthy; a run id of None only where a mapping says so."""
    assert thread_id_in({"thread_id": 7}) == thread_id_in(Attributes(thread_id=7)) == "7"
    assert thread_id_in({"thread_id": ""}) is thread_id_in(Attributes()) is thread_id_in(None) is None
    assert run_id_in({"run_id": "r"}) == run_id_in(Attributes(run_id="r")) == "r"
    assert run_id_in({"run_id": None}) is None
    assert run_id_in({"run_id": 3}) == "3"
    assert run_id_in({}) is run_id_in(Attributes(run_id=None)) is run_id_in(None) is run_id_in(Hostile()) is ABSENT
    assert thread_id_in(Hostile()) is None


def test_a_note_in_a_context() -> None:
    """Where it takes one."""
    mapping: dict[str, str] = {}
    stamp(mapping, "stop_reason", "x")
    holder = Attributes()
    stamp(holder, "stop_reason", "x")
    stamp(Hostile(), "stop_reason", "x")
    stamp(None, "stop_reason", "x")
    assert mapping == vars(holder) == {"stop_reason": "x"}
