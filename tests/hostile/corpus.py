"""Five hundred texts that would act on a terminal, a page or a parser if anybody let them, and recordings full of them.

Everything comes from one seed, so a failure names a text that is there again the next time. In a recording each text
stands in every place that a recording has: tools, arguments, results, ids, nodes, agents, models, errors, warnings,
policies and names of files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

__all__ = ["COUNT", "EACH", "foreign", "marker", "nested", "recording", "strings"]

COUNT = 500
EACH = 20
"""Texts of one recording."""
SEED = 20261130
_ST = ("\x07", "\x1b\\", "\x9c", "")
_WORDS = ("search", "open_page", "query", "notes.md", "the answer", "v2", "tool result", "日本語", "naïve", "Привет")


def marker(number: int) -> str:
    """The plain word in a text, by which one finds it again."""
    return f"evil{number:03}"


@cache
def strings() -> tuple[str, ...]:
    """The texts: each of one or two kinds of harm, around and between plain words."""
    rng = random.Random(SEED)  # noqa: S311 - the same texts each time
    kinds = list(_KINDS)
    found: list[str] = []
    for number in range(COUNT):
        kind = kinds[number % len(kinds)]
        parts = [kind(rng), rng.choice(_WORDS), marker(number)]
        if rng.random() < 0.3:
            parts.append(rng.choice(kinds)(rng))
        rng.shuffle(parts)
        found.append(rng.choice(("", " ", "\n")).join(parts))
    return tuple(found)


def _csi(rng: random.Random) -> str:
    start = rng.choice(("\x1b[", "\x9b", "\x1b[?", "\x1b[>", "\x1b[="))
    numbers = ";".join(str(rng.randrange(3000)) for _ in range(rng.randrange(4)))
    return f"{start}{numbers}{rng.choice('@ABCDHJKLMPSTXZchlmnpqrstux')}"


def _osc(rng: random.Random) -> str:
    what = rng.choice((
        "0;taken over", "2;taken over", "1;icon", "52;c;cm0gLXJmIC8=", "8;;https://example.org/", "4;1;rgb:00/00/00",
        "7;file:///etc/", "10;?", "11;?", "133;A", "777;notify;a;b", "1337;File=inline=1:AAAA", "9;4;1;50", "104",
    ))  # fmt: skip
    return rng.choice(("\x1b]", "\x9d")) + what + rng.choice(_ST)


def _dcs(rng: random.Random) -> str:
    start = rng.choice(("\x1bP", "\x90", "\x1b_", "\x9f", "\x1b^", "\x1bX", "\x1bk"))
    what = rng.choice(("+q544e", "$qm", "q#0;2;0;0;0~", "Gf=100,a=T;AAAA", "tmux;\x1b\x1b]0;taken over\x07", "taken"))
    return f"{start}{what}{rng.choice(_ST)}"


def _escape(rng: random.Random) -> str:
    return "\x1b" + rng.choice(("c", "7", "8", "D", "E", "H", "M", "Z", "=", ">", "#8", "(0", ")B", "%G", "N", "O", ""))


def _control(rng: random.Random) -> str:
    return "".join(chr(rng.choice((*range(32), *range(0x7F, 0xA0)))) for _ in range(rng.randint(1, 8)))


def _bidi(rng: random.Random) -> str:
    marks = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
    return f"{rng.choice(marks)}{rng.choice(_WORDS)}{rng.choice(marks)}gnp.exe"


def _invisible(rng: random.Random) -> str:
    marks = (
        "\u200b\u200c\u200d\u2060\u2061\u2064\ufeff\u00ad\u180e\u034f\u3164\u115f\u1160\uffa0\ufe0f\U000e0041\U000e0101"
    )
    return "".join(rng.choice(marks) + rng.choice("abc ") for _ in range(rng.randint(1, 12)))


def _surrogate(rng: random.Random) -> str:
    return "".join(chr(rng.choice((0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xDC1B))) for _ in range(rng.randint(1, 4)))


def _odd(rng: random.Random) -> str:
    marks = (
        "\u2028\u2029\x85\ue000\uf8ff\ufdd0\uffff\U0010ffff\U000f0000\u0378\ufff9\ufffb\ufffc\ufffd\u3000\u00a0\u2003"
    )
    return "".join(rng.choice(marks) for _ in range(rng.randint(1, 6)))


def _markup(rng: random.Random) -> str:
    return rng.choice((
        "[bold red]x[/]", "[/]", "[/bold]", "[@click=app.quit]quit[/]", "[@click=app.bell()]x[/@click]", "[[", "]]",
        "[link=file:///etc/passwd]x[/link]", "[on red]", "\\[b]", "[red", "$primary", "[$error]x[/]", ":smile:",
        "[@click=screen.leave]n[/]", "[reverse][blink]x", "[#fff on #000]x[/]", "[bold", "[=]", "[@click='app.exit'",
    ))  # fmt: skip


def _page(rng: random.Random) -> str:
    return rng.choice((
        "</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", "]]>", "-->",
        "<svg/onload=alert(1)>", "&#27;[2J", "&lt;b&gt;", "javascript:alert(1)", "</style><style>*{a:b}</style>",
        "<!--", "<?php", "url(https://example.org/x)", "{{7*7}}", "${7*7}", "&amp;&quot;", "</svg>", "<![CDATA[",
    ))  # fmt: skip


def _path(rng: random.Random) -> str:
    return rng.choice((
        "../../../etc/passwd", "-rf", "--help", "$(touch taken)", "`touch taken`", "; touch taken", "%s%n%x", "{0}",
        "{0.__class__}", "CON", "a\\b", "~root", "*", "?", "#1", "#99999", "!1", "'", '"', "\\", "\\x1b[2J", "NaN",
    ))  # fmt: skip


def _marks(rng: random.Random) -> str:
    marks = "".join(chr(rng.randrange(0x300, 0x370)) for _ in range(rng.choice((5, 60, 2000))))
    return rng.choice(("e", "漢", " ", "", "👩")) + marks


def _long(rng: random.Random) -> str:
    return rng.choice(("x", "漢", "a b", "👩\u200d💻", "🅰", "—", "ﷺ", "\t")) * rng.choice((300, 3_000, 20_000))


def _deep(rng: random.Random) -> str:
    depth = rng.choice((50, 1000, 3000))
    return rng.choice(('{"a":' * depth + "1" + "}" * depth, "[" * depth, "[" * depth + "]" * depth))


def _jamo(rng: random.Random) -> str:
    return "".join(chr(rng.randrange(0x1100, 0x1200)) for _ in range(rng.randint(2, 40)))


_KINDS: tuple[Callable[[random.Random], str], ...] = (
    _csi, _osc, _dcs, _escape, _control, _bidi, _invisible, _surrogate, _odd, _markup, _page, _path, _marks, _long,
    _deep, _jamo,
)  # fmt: skip


def foreign(text: str) -> str:
    """What of a text may act on a terminal, or hide something on it; nothing where it is safe.

    Written down here once more, by ranges and not by the tables that the code under test asks.
    """
    return "".join(character for character in text if _acts(ord(character)))


_HARM = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xD800, 0xF8FF),
    (0xFDD0, 0xFDEF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0xFFFE, 0xFFFF),
    (0xE0000, 0x10FFFF),
)  # fmt: skip


def _acts(code: int) -> bool:
    return any(first <= code <= last for first, last in _HARM)


def nested(depth: int) -> str:
    """JSON of an object within an object, so many levels deep."""
    return '{"query":' * depth + '"bottom"' + "}" * depth


def recording(index: int) -> bytes:
    """One of the twenty-five recordings that hold all texts between them."""
    start = index * EACH
    rng = random.Random(SEED + start)  # noqa: S311 - the same recordings each time
    return _recording(strings()[start : start + EACH], rng)


def _recording(texts: Sequence[str], rng: random.Random) -> bytes:
    lines = list(_Teller(texts).lines())
    told = [json.dumps(line, ensure_ascii=_must_escape(line) or rng.random() < 0.5).encode() for line in lines]
    told[2:2] = [text.encode("utf-8", "surrogatepass") for text in texts if "\n" not in text and len(text) < 200]
    place = (
        '{"kind":"batch","seq":0,"ts":null,"thread_id":"deep","run_id":"deep","calls":[{"id":"d","name":"deep","args":'
    )
    told += [f"{place}{nested(depth)}}}]}}".encode() for depth in (60, 600, 1000, 5000)]
    return b"\n".join(told) + b"\n"


def _must_escape(line: object) -> bool:
    try:
        json.dumps(line, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


class _Teller:
    """Tells runs in which each text stands once in each place; every batch comes three times, so that it is stopped."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.seq = 0
        self.at = 0

    def text(self, ahead: int) -> str:
        return self.texts[(self.at + ahead) % len(self.texts)]

    def event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.seq += 1
        place = {"kind": kind, "seq": self.seq, "ts": 1000.0 + self.seq}
        return {**place, "thread_id": self.text(1), "run_id": self.text(2), **fields}

    def policy(self) -> dict[str, Any]:
        tool = self.text(0)
        return {
            "warn_threshold": 2,
            "hard_limit": 3,
            "tool_freq_overrides": {tool: {"warn": 2, "hard_limit": 4}},
            "identity_fields": {tool: [self.text(5), "query"]},
            "stagnation": {"warn": 1, "hard_limit": 3, "witness": self.text(6)},
        }

    def lines(self) -> Iterator[dict[str, Any]]:
        yield {
            "kind": "header", "format": "loopscope/1", "producer": self.text(0), "created": self.text(1),
            "policy": self.policy(), "enforced": True, self.text(2): self.text(3),
        }  # fmt: skip
        for self.at, _ in enumerate(self.texts):  # noqa: B020 - every place is told from there
            yield from self.run()
            yield {"kind": self.text(0), self.text(1): self.text(2)}

    def run(self) -> Iterator[dict[str, Any]]:
        parent = {"parent_thread_id": self.text(2), "parent_run_id": self.text(3)} if self.at % 2 else {}
        nodes = [self.text(4), self.text(5), self.text(6)]
        graph = {
            "nodes": [{"id": node, "name": self.text(7)} for node in nodes],
            "edges": [{"source": a, "target": b} for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True)],
        }
        yield self.event("run_start", agent=self.text(0), resume_of=self.text(8), graph=graph, **parent)
        yield self.event("policy", policy=self.policy())
        for turn in range(3):
            yield from self.turn(turn)
        yield self.event("control", action="pause", by=self.text(9))
        yield self.event("run_end", status="error", reason=self.text(10))

    def turn(self, turn: int) -> Iterator[dict[str, Any]]:
        args = {self.text(3): self.text(4), "query": {self.text(5): [self.text(6)]}, self.text(5): self.text(7)}
        calls: list[dict[str, Any]] = [
            {"id": self.text(8), "name": self.text(0), "args": args},
            {"id": self.text(9), "name": self.text(1), "args": self.text(2)},
        ]
        yield self.event(
            "batch", calls=calls, message_id=self.text(10), node=self.text(4), model=self.text(11), text=self.text(12),
            usage={"input_tokens": 10, "output_tokens": 1, "cost_usd": 0.5},
        )  # fmt: skip
        yield self.event(
            "decision", batch_seq=self.seq, hash=self.text(13), hash_count=turn + 1, action="warn", layer=self.text(14),
            tool=self.text(15), count=2, threshold=2,
        )  # fmt: skip
        yield self.event("warning", state="queued", text=self.text(16))
        yield self.event("warning", state="delivered", text=self.text(16))
        yield self.event("witness", values={self.text(6): self.text(17)})
        for call, status in zip(calls, ("ok", "error"), strict=True):
            yield self.event(
                "result", call_id=call["id"], name=self.text(3), status=status, content=self.text(18),
                error_type=self.text(19) if status == "error" else None, digest=self.text(19) if turn else None,
            )  # fmt: skip
