"""An agent searches with other words, opens the next hit, finds nothing, and searches again.

Forty batches, none of them equal, and twenty calls of each tool: both layers miss it, as each of them looks for
something else. What shows it is the cost.
"""

from __future__ import annotations

import re

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

QUESTION = "In which release did the tile cache become safe to use from several threads?"
ROUNDS = 20
SITE = "https://docs.example.org/releases/"
AREAS = ("tile", "cache", "thread", "layer", "index", "raster", "vector", "label", "style", "export")
WORDS = (
    "tile cache thread safe",
    "thread safety of the cache",
    "concurrent tile cache",
    "cache locking",
    "tile lock threads",
    "several threads tile",
    "parallel rendering cache",
    "cache race condition",
    "thread pool tile cache",
    "tile cache mutex",
    "release notes thread safe cache",
    "cache concurrency fix",
    "raster cache threads",
    "shared tile cache",
    "cache per thread",
    "tile cache deadlock",
    "multi-threaded tile loading",
    "atomic cache update",
    "cache thread crash",
    "safe tile sharing",
)


def pages() -> dict[str, str]:
    """Release notes in which the answer is not."""
    texts = {}
    for number in range(ROUNDS + 4):
        first, second, third = (AREAS[(number * step + step) % len(AREAS)] for step in (1, 3, 7))
        texts[f"{SITE}{2 + number // 10}.{number % 10}"] = (
            f"Release {2 + number // 10}.{number % 10}\n"
            f"- The {first} panel remembers its size; the {second} list is sorted by name.\n"
            f"- Reading a {third} from disk takes a fifth less memory, and the tile preview is sharper.\n"
            f"- Fixed: a {first} with an empty name could not be removed. Fixed: the {second} legend was cut off.\n"
            f"- Deprecated: the {third} option of the cache command, which has had no effect for some releases."
        )
    return texts


def script() -> Script:
    """Search, open the first hit that is new, search on."""
    opened: set[str] = set()
    for words in WORDS:
        messages = yield say(f"Let me search for '{words}'.", call("search", query=words))
        url = next(hit for hit in hits(messages[-1]) if hit not in opened)
        opened.add(url)
        yield say("This one may tell.", call("open_page", url=url))
    yield say("I could not find the release in which the tile cache became safe to use from several threads.")


def hits(message: BaseMessage) -> list[str]:
    """The addresses in a search result."""
    return re.findall(rf"{re.escape(SITE)}\S+", message.text)


def run(stage: Stage) -> None:
    """Ask once."""
    site = pages()

    @tool
    def search(query: str) -> str:
        """Find pages by words, the best first."""
        words = query.split()
        ranked = sorted(site, key=lambda url: (-sum(site[url].count(word) for word in words), url))
        return "\n".join(f"{url}  {site[url].splitlines()[1][2:50]}…" for url in ranked)

    @tool
    def open_page(url: str) -> str:
        """The text of a page."""
        return site[url]

    agent = create_agent(
        ScriptedModel(script=script()), [search, open_page], middleware=[stage.guard()], name="researcher"
    )
    ask(agent, QUESTION, ("tile-cache", "run-1"))


SAMPLE = Sample(
    name="search-fetch-alternation",
    summary="Search, open, search, open, forty times with new arguments each: both layers miss this loop.",
    looping=True,
    first_warning=None,
    first_stop=None,
    run=run,
    seconds={"search": 0.9, "open_page": 1.4},
)
