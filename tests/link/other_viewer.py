"""Another viewer, written from docs/link.md with the standard library alone: what the page leaves out, fails here."""

from __future__ import annotations

import glob
import json
import os
import socket
import sys
import tempfile
from typing import Any


def endpoints() -> list[dict[str, Any]]:
    """The processes that listen, newest first."""
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.getuid()}"]
    folders = [f"{place}/loopscope" for place in places if place]
    folders += [f"{place}/loopscope-{os.getuid()}" for place in (tempfile.gettempdir(), "/tmp")]  # noqa: S108 - as the page has it
    files = [file for folder in folders for file in glob.glob(f"{folder}/*.json")]  # noqa: PTH207
    return [json.load(open(file)) for file in sorted(files, key=os.path.getmtime, reverse=True)]  # noqa: PTH123


class Viewer:
    """One connection."""

    def __init__(self, entry: dict[str, str]) -> None:
        if entry["transport"] == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(entry["address"])
        else:
            host, _, port = entry["address"].rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.ids = 0
        self.seen: list[dict[str, Any]] = []
        self.unread: list[dict[str, Any]] = []
        self.send(kind="hello", version=1, oldest=1, token=entry["token"], client="other", control=True)
        self.welcome = json.loads(self.lines.readline())
        assert self.welcome["kind"] == "welcome", self.welcome
        assert self.welcome["session"] == entry["session"]

    def send(self, **message: Any) -> None:
        """One line."""
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self, kind: str) -> dict[str, Any]:
        """The next message of this kind; others are kept: what an act brings about may come before its answer."""
        while (found := next((each for each in self.unread if each["kind"] == kind), None)) is None:
            self.seen.append(json.loads(self.lines.readline()))
            self.unread.append(self.seen[-1])
        self.unread.remove(found)
        return found

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """A request, and its answer."""
        self.ids += 1
        self.send(kind="request", id=self.ids, verb=verb, arguments=arguments)
        answer = self.read("answer")
        assert answer["id"] == self.ids
        return answer


def main() -> None:
    """Pause, see a verdict, change the limit, step, leave, and come back for what is new."""
    entry = next(each for each in endpoints() if each["pid"] == int(sys.argv[1]))
    viewer = Viewer(entry)
    told = {"policy": viewer.welcome["engines"][0]["policy"]["hard_limit"], "verbs": viewer.welcome["capabilities"]}
    assert viewer.ask("attach")["ok"]
    first = viewer.read("snapshot")
    assert viewer.ask("pause")["ok"]
    held = viewer.read("held")
    told["held"] = held["decision"]["action"]
    scope = {"thread_id": held["thread_id"], "run_id": held["run_id"]}
    told["wrong"] = viewer.ask("pause", scop=scope)["error"]["code"]
    changes = {"warn_threshold": 1, "hard_limit": 1, "tool_freq_warn": 9, "tool_freq_hard_limit": 9}
    told["engines"] = [
        each["policy"]["hard_limit"] for each in viewer.ask("setPolicy", changes=changes)["result"]["engines"]
    ]
    told["again"] = viewer.read("held")["decision"]["action"]
    points = [{"kind": "tool", "subject": "bash", "at_least": 0, "enabled": False, "one_shot": False}]
    assert viewer.ask("setBreakpoints", breakpoints=points)["ok"]
    while not (status := viewer.read("status"))["breakpoints"]:
        pass
    told["breakpoints"] = [each["point"]["kind"] for each in status["breakpoints"]]
    told["passed"] = viewer.ask("passOnce", scope=scope)["result"]["batches"]
    released = viewer.read("released")
    told["released"] = [released["verdict"], released["by"]]
    batch = viewer.read("batch")
    assert viewer.ask("continue")["ok"]
    events = [each["seq"] for each in viewer.seen if "seq" in each and each["kind"] != "snapshot"]
    assert events == sorted(set(events))
    assert min(events) > first["seq"]
    assert viewer.ask("disconnect", resume=True)["ok"]
    told["bye"] = viewer.read("bye")["code"]
    again = Viewer(entry)
    assert again.ask("attach", since=batch["seq"], session=entry["session"])["ok"]
    told["next"] = again.read("batch")["seq"] > batch["seq"]
    told["snapshots"] = sum(each["kind"] in ("snapshot", "gap") for each in again.seen)
    print(json.dumps(told))  # noqa: T201 - this is how it talks to its test


if __name__ == "__main__":
    main()
