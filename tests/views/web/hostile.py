"""Text that would act on a page, in every field of a run that is text."""

from __future__ import annotations

from loopscope.engine.events import (
    Batch,
    Call,
    Event,
    Graph,
    GraphEdge,
    GraphNode,
    Header,
    Result,
    RunEnd,
    RunStart,
    Usage,
    Warned,
    Witness,
)

__all__ = ["STRINGS", "hostile_run", "strings"]

_ELSEWHERE = "https://elsewhere.invalid"


def strings(elsewhere: str) -> list[str]:
    """What a page must not do: run these, or load something from `elsewhere`."""
    ran = "document.documentElement.dataset.ran=1"
    return [
        f"<script>{ran}</script>",
        f"<script src={elsewhere}/a.js></script>",
        f"</style><script>{ran}</script><style>@import '{elsewhere}/a.css';",
        f"</title><img src={elsewhere}/a.png onerror={ran}>",
        f'"><svg onload={ran}><image href="{elsewhere}/b.png"/></svg>',
        f"'><a href='javascript:{ran}' autofocus onfocus={ran}>x</a>",
        f"</pre></code></table><iframe src={elsewhere}/c.html srcdoc='<script>parent.{ran}</script>'></iframe>",
        f"--><!-- ]]><x/> <![CDATA[ <meta http-equiv=refresh content=0;url={elsewhere}/d>",
        f"</svg><foreignObject><body onload={ran}></foreignObject><link rel=stylesheet href={elsewhere}/e.css>",
        f"x;background:url({elsewhere}/f.png);--a:</style>",
        f"&lt;script&gt;{ran}&lt;/script&gt; &#60;b&#62; &amp;",
        f"<base href={elsewhere}/><form action={elsewhere}/g><input name=a><object data={elsewhere}/h></object>",
        "\x1b]0;title\x07\x1b[2J\x9b31m\x00\x08",
        "\u202egnihtyna\u2066\u200b\ufeff\u2028\u2029\ufffe\ud800\U000e0001",
        "<\x00script>\x85`${7*7}`{{7*7}}",
    ]


STRINGS = strings(_ELSEWHERE)


def hostile_run(text: str, times: int = 6) -> list[Event]:
    """A run that is stopped, with this text in all its fields."""
    place = {"ts": 1.0, "thread_id": text, "run_id": text}
    graph = Graph(
        (GraphNode(text, text), GraphNode("tools", text)),
        (GraphEdge(text, "tools"), GraphEdge("tools", text), GraphEdge(text, text, conditional=True)),
    )
    policy = {
        "tool_freq_overrides": {text: {"warn": 2, "hard_limit": 40}},
        "stagnation": {"witness": text, "warn": 2, "hard_limit": 90},
        "error_streak": {"warn": 2, "hard_limit": 90},
    }
    child = {**place, "run_id": f"{text}/{text}"}
    events: list[Event] = [
        Header(format="loopscope/1", producer=text, created=text, policy=policy),
        RunStart(seq=1, agent=text, graph=graph, **place),  # type: ignore[arg-type]
        RunStart(seq=2, agent=text, parent_thread_id=text, parent_run_id=text, **child),  # type: ignore[arg-type]
        Batch(seq=3, calls=(Call(text, text, text, text),), text=text, **child),  # type: ignore[arg-type]
    ]
    for seq in range(10, 10 + 10 * times, 10):
        calls = (Call(text, text, {text: text, "path": text, "query": [text, {text: text}]}), Call(None, text, text))
        usage = Usage(1, 2, 0.5)
        batch = Batch(
            seq=seq, calls=calls, message_id=text, node=text, text=text, model=text, usage=usage, **place  # type: ignore[arg-type]
        )  # fmt: skip
        error = Result(
            seq=seq + 1, call_id=text, name=text, status="error", content=text * 2, error_type=text, **place  # type: ignore[arg-type]
        )  # fmt: skip
        warned = Warned(seq=seq + 2, state="queued", text=text, **place)  # type: ignore[arg-type]
        events += [batch, error, warned, Witness(seq=seq + 3, values={text: text}, **place)]  # type: ignore[arg-type]
    events.append(RunEnd(seq=10_000, status="error", reason=text, **place))  # type: ignore[arg-type]
    return events
