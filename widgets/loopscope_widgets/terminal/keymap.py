"""Every key of the terminal in one table: bindings, footer, help and the command palette all read it.

One rule: Shift goes back in time, as n and N do in vim and less. Letters are pdb's where pdb has one. Every binding
has an id, by which a user may give it other keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import Keys

from loopscope.errors import UsageError

__all__ = [
    "BESIDE",
    "BREAKPOINTS",
    "GLOBAL",
    "LIST",
    "LIVE",
    "OWN",
    "PRESETS",
    "TUNE",
    "WHATIF",
    "WINDOW",
    "Key",
    "Keymap",
    "bindings",
    "keymap",
]


class Key(NamedTuple):
    """One binding."""

    id: str
    keys: str
    """Textual's names, separated by commas."""
    action: str
    shown: str
    """The keys as help and footer write them."""
    help: str
    group: str
    footer: str = ""
    """The word in the footer; nothing for keys that are only in the help."""
    footer_keys: str = ""
    """The keys before that word: with their twins that go back."""


GLOBAL: tuple[Key, ...] = (
    Key("batch.next", "n", "step(1)", "n", "next batch", "Move", "Step", "nN"),
    Key("batch.previous", "N", "step(-1)", "N", "previous batch", "Move"),
    Key(
        "decision.next",
        "right_square_bracket",
        "decision(1)",
        "]",
        "next decision: a warning or a stop",
        "Move",
        "Decision",
        "[]",
    ),
    Key("decision.previous", "left_square_bracket", "decision(-1)", "[", "previous decision", "Move"),
    Key("breakpoint.next", "c", "run_to(1)", "c", "run to the next breakpoint", "Move", "Run", "cC"),
    Key("breakpoint.previous", "C", "run_to(-1)", "C", "run back to the breakpoint before", "Move"),
    Key("batch.first", "g", "first", "g", "first batch", "Move"),
    Key("batch.last", "G", "last", "G", "last batch", "Move"),
    Key("event.next", "s", "event(1)", "s", "next engine event, within the batch", "Move", "Event", "sS"),
    Key("event.previous", "S", "event(-1)", "S", "previous engine event", "Move"),
    Key("scope.end", "r", "scope_edge(1)", "r", "end of the scope at the cursor", "Move"),
    Key("scope.start", "R", "scope_edge(-1)", "R", "start of the scope at the cursor", "Move"),
    Key("mark", "m", "mark", "m", "mark this batch, or take its mark away", "Move"),
    Key("mark.next", "apostrophe", "next_mark", "'", "next mark", "Move"),
    Key("play", "space", "play", "space", "play, and pause", "Move", "Play", "space"),
    Key("play.faster", "plus,equals_sign", "speed(1)", "+", "play faster", "Move"),
    Key("play.slower", "minus", "speed(-1)", "-", "play slower", "Move"),
    Key("scrub.right", "l,right", "step(1)", "l →", "one batch on", "Move"),
    Key("scrub.left", "h,left", "step(-1)", "h ←", "one batch back", "Move"),
    Key("scrub.right.ten", "L,shift+right", "step(10)", "L shift+→", "ten batches on", "Move"),
    Key("scrub.left.ten", "H,shift+left", "step(-10)", "H shift+←", "ten batches back", "Move"),
    Key("goto", "colon", "goto", ":", "go to a batch, hash letter, scope or time", "Windows", "Go to", ":"),
    Key("find", "slash", "filter", "/", "filter the decisions; esc shows all again", "Windows", "Find", "/"),
    Key("match.next", "full_stop", "match(1)", ".", "next decision that the filter leaves", "Move"),
    Key("match.previous", "comma", "match(-1)", ",", "previous decision that the filter leaves", "Move"),
    Key("scope.parent", "u", "parent", "u", "parent scope, then the whole thread", "Scopes and panes"),
    Key("scope.child", "d", "child", "d", "child scope", "Scopes and panes"),
    Key(
        "breakpoint.here",
        "b",
        "break_here",
        "b",
        "set a breakpoint at this batch; take it away",
        "Breakpoints and limits",
        "Break",
        "b",
    ),
    Key("breakpoint.list", "B", "pane(7)", "B", "list and edit the breakpoints", "Breakpoints and limits"),
    Key("tune", "t", "pane(5)", "t", "what if: try other limits on this run", "Breakpoints and limits", "Tune", "t"),
    Key("export", "e", "export", "e", "export the limits: TOML, YAML, Python", "Breakpoints and limits"),
    Key("why", "w", "why", "w", "why: the whole explanation of this verdict", "Windows", "Why", "w"),
    Key("copy", "y", "copy", "y", "copy the batch; a plain view to select in", "Windows"),
    Key("undo", "U", "undo", "U", "undo: limits, breakpoints, scope, marks", "Windows"),
    Key("open", "o,a", "open", "o a", "open a recording, or attach to what runs", "Windows", "Open", "o"),
    Key("pane.next", "tab", "next_pane(1)", "tab", "next pane", "Scopes and panes", "Pane", "tab"),
    Key("pane.previous", "shift+tab", "next_pane(-1)", "shift+tab", "previous pane", "Scopes and panes"),
    Key("pane.scopes", "1", "pane(1)", "1", "Scopes: threads, runs and sub-agents", "Scopes and panes"),
    Key("pane.detect", "2", "pane(2)", "2", "Detect: counts, limits and distances", "Scopes and panes"),
    Key("pane.inspect", "3", "pane(3)", "3", "Inspect: the batch, and why its verdict", "Scopes and panes"),
    Key("pane.graph", "4", "pane(4)", "4", "Graph: nodes, ways, and the circle between", "Scopes and panes"),
    Key("pane.whatif", "5", "pane(5)", "5", "What-if: other limits beside the run's own", "Scopes and panes"),
    Key("pane.decisions", "6", "pane(6)", "6", "Decisions: the log of warnings and stops", "Scopes and panes"),
    Key("pane.breakpoints", "7", "pane(7)", "7", "Breakpoints: where c and C stop", "Scopes and panes"),
    Key("pane.zoom", "z", "zoom", "z", "zoom this pane, and back", "Scopes and panes", "Zoom", "z"),
    Key("help", "question_mark,f1", "help", "? F1", "these keys", "Windows", "Keys", "?"),
    Key("close", "escape", "back", "esc", "close the window, the zoom or the filter", "Windows"),
    Key("quit", "q", "leave", "q", "the same; quit where nothing is open", "Windows", "Quit", "q"),
)
LIST: tuple[Key, ...] = (
    Key("list.down", "j,down", "move(1)", "j ↓", "down: next row or reference", "In a pane"),
    Key("list.up", "k,up", "move(-1)", "k ↑", "up", "In a pane"),
    Key("list.enter", "enter", "choose", "enter", "show this scope, or go to this batch", "In a pane"),
    Key("list.page.down", "pagedown", "page(1)", "pgdn", "a page down", "In a pane"),
    Key("list.page.up", "pageup", "page(-1)", "pgup", "a page up", "In a pane"),
    Key("list.first", "home", "edge(-1)", "home", "to the top", "In a pane"),
    Key("list.last", "end", "edge(1)", "end", "to the bottom", "In a pane"),
)


WHATIF: tuple[Key, ...] = (
    Key("whatif.more", "l,right", "change(1)", "l →", "raise the limit, or take the next choice", "In What-if"),
    Key("whatif.less", "h,left", "change(-1)", "h ←", "lower the limit; below 1 it is off", "In What-if"),
    Key("whatif.more.ten", "L,shift+right", "change(10)", "L shift+→", "ten more", "In What-if"),
    Key("whatif.less.ten", "H,shift+left", "change(-10)", "H shift+←", "ten less", "In What-if"),
    Key("whatif.reset", "0", "reset", "0", "as in the baseline again", "In What-if"),
    Key("whatif.presets", "p", "presets", "p", "take a preset, or the baseline", "In What-if"),
    Key("whatif.beside", "v", "beside", "v", "compare: a further column beside this one", "In What-if"),
    Key("whatif.without", "V", "without", "V", "drop this column", "In What-if"),
    Key("whatif.column.next", "greater_than_sign", "column(1)", ">", "the next column", "In What-if"),
    Key("whatif.column.previous", "less_than_sign", "column(-1)", "<", "the column before", "In What-if"),
    Key("whatif.apply", "a", "apply", "a", "put these limits in force in a live run", "In What-if"),
    Key("whatif.differing.next", "full_stop", "differing(1)", ".", "next batch that differs", "In What-if"),
    Key("whatif.differing.previous", "comma", "differing(-1)", ",", "the batch before that differs", "In What-if"),
)
"""Keys of the pane What-if; they go before those of all panes. enter types a value."""
BREAKPOINTS: tuple[Key, ...] = (
    Key("breakpoints.new", "i", "new", "i", "a new breakpoint", "In Breakpoints"),
    Key("breakpoints.toggle", "a", "arm", "a", "put it on or off", "In Breakpoints"),
    Key("breakpoints.remove", "x,delete,backspace", "remove", "x del", "take it away", "In Breakpoints"),
)
"""Keys of the pane Breakpoints; they go before those of all panes. enter edits one."""
OWN: Mapping[int, tuple[Key, ...]] = {5: WHATIF, 7: BREAKPOINTS}
"""Keys of single panes, by the pane's number."""
LIVE: tuple[Key, ...] = (
    Key("live.step", "n", "next", "n", "next batch; a paused run makes one", "Live", "Step", "nN"),
    Key("live.pause", "space", "pause", "space", "hold the next batch of each scope; resume", "Live", "Pause", "space"),
    Key("live.continue", "c", "continue", "c", "continue: hold nothing more", "Live"),
    Key("live.follow", "f", "follow", "f", "follow the newest batch", "Live", "Follow", "f"),
    Key("live.control", "x", "control", "x", "let a held batch pass once, or stop a run", "Live"),
    Key("live.detach", "D", "detach", "D", "detach: the agent goes on", "Live"),
)
"""Keys of a live run; they go before those of all runs."""
BESIDE: tuple[Key, ...] = (
    Key("pane.output", "8", "pane(8)", "8", "Output: what the program writes", "Live", "Output", "8"),
)
"""Keys of a program that was begun with the debugger."""
WINDOW: tuple[Key, ...] = (
    Key("window.close", "escape,q", "leave", "esc q", "close a window", "In a window"),
    Key("ask.close", "escape", "leave", "esc", "leave a line where one types", "In a window"),
    Key("control.close", "escape,q", "dismiss(None)", "esc q", "leave the control menu", "In a window"),
    Key("confirm.close", "escape,q", "dismiss(False)", "esc q", "answer no", "In a window"),
    Key("choose.close", "escape,q", "dismiss(None)", "esc q", "leave a list without a choice", "In a window"),
    Key("export.next", "l,right,tab", "kind(1)", "l → tab", "the next format", "In Export"),
    Key("export.previous", "h,left,shift+tab", "kind(-1)", "h ←", "the format before", "In Export"),
    Key("export.save", "s", "save", "s", "write it to a file", "In Export"),
    Key("export.copy", "y", "copy", "y", "copy it", "In Export"),
    Key("export.close", "escape,q", "leave", "esc q", "close", "In Export"),
    Key("picker.type", "slash,colon", "type", "/ :", "type the path of a recording", "In a window"),
    Key("picker.close", "escape,q", "leave", "esc q", "leave the list of recordings", "In a window"),
)
TUNE: tuple[Key, ...] = (
    Key("tune.right", "l,right", "across(1)", "l →", "the next value of the first setting", "In Tune"),
    Key("tune.left", "h,left", "across(-1)", "h ←", "the value before", "In Tune"),
    Key("tune.slice.next", "right_square_bracket", "slice(1)", "]", "the next slice", "In Tune", "Slice", "[]"),
    Key("tune.slice.previous", "left_square_bracket", "slice(-1)", "[", "the slice before", "In Tune"),
    Key("tune.metric.next", "m", "metric(1)", "m", "count something else", "In Tune", "Count", "m"),
    Key("tune.metric.previous", "M", "metric(-1)", "M", "count what was counted before", "In Tune"),
    Key("tune.best", "b", "best", "b", "go to the advised setting, then to today's limits", "In Tune", "Advised", "b"),
    Key("tune.pane.next", "tab", "next_pane(1)", "tab", "next pane", "In Tune", "Pane", "tab"),
    Key("tune.pane.previous", "shift+tab", "next_pane(-1)", "shift+tab", "previous pane", "In Tune"),
    Key("tune.pane.settings", "1", "pane(1)", "1", "Settings: the heat map", "In Tune"),
    Key("tune.pane.runs", "2", "pane(2)", "2", "Runs: each under the chosen setting", "In Tune"),
    Key("tune.pane.front", "3", "pane(3)", "3", "Front: what no other setting beats", "In Tune"),
    Key("tune.pane.advice", "4", "pane(4)", "4", "Advice: which setting to take, and why", "In Tune"),
    Key("tune.help", "question_mark,f1", "help", "? F1", "these keys", "In Tune", "Keys", "?"),
    Key("tune.close", "escape,q", "leave", "esc q", "quit", "In Tune", "Quit", "q"),
)
"""Keys of the screen of a sweep."""
PRESETS: dict[str, dict[str, str]] = {
    "vscode": {"batch.next": "n,f10", "event.next": "s,f11", "scope.end": "r,shift+f11", "breakpoint.next": "c,f5",
               "breakpoint.here": "b,f9"}
}  # fmt: skip
"""Keymaps by name. Keys of VS Code's debugger come beside our own."""
_TOGETHER = (
    ("", (*GLOBAL, *LIST)),
    ("whatif.", (*WHATIF, *LIST)),
    ("breakpoints.", (*BREAKPOINTS, *LIST)),
    ("live.", (*LIVE, *BESIDE, *LIST)),
    ("window.", (*WINDOW, *LIST)),
    ("picker.", (*WINDOW, *LIST)),
    ("ask.", WINDOW),
    ("control.", WINDOW),
    ("confirm.", WINDOW),
    ("choose.", (*WINDOW, *LIST)),
    ("export.", (*WINDOW, *LIST)),
    ("tune.", (*TUNE, *LIST)),
)
"""Keys that work at the same time: those of the panes, and those of each kind of window, by what its ids begin with."""
_MODIFIERS = ("ctrl+", "shift+", "alt+", "super+")
_SHOWN = {
    "right_square_bracket": "]", "left_square_bracket": "[", "colon": ":", "slash": "/", "full_stop": ".", "comma": ",",
    "apostrophe": "'", "plus": "+", "minus": "-", "equals_sign": "=", "question_mark": "?", "escape": "esc",
    "greater_than_sign": ">", "less_than_sign": "<",
    "right": "→", "left": "←", "up": "↑", "down": "↓", "pagedown": "pgdn", "pageup": "pgup",
}  # fmt: skip


class Keymap(NamedTuple):
    """The keys as a user has them."""

    changed: Mapping[str, str] = {}
    """Textual's names of the keys by id, for those that are not as in the tables."""

    def of(self, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        """A table with this user's keys, and how they are written."""
        return tuple(self._mine(key) for key in keys)

    def _mine(self, key: Key) -> Key:
        names = self.changed.get(key.id)
        if names is None:
            return key
        shown = [_written(name) for name in names.split(",")]
        return key._replace(keys=names, shown=" ".join(shown), footer_keys=shown[0] if key.footer else "")


def _written(name: str) -> str:
    modifier, plus, base = name.rpartition("+")
    return f"{modifier}{plus}{_SHOWN.get(base, base.upper() if base[:1] == 'f' and base[1:].isdigit() else base)}"


def keymap(wanted: object, where: str) -> Keymap:
    """What a user asks for in the settings: the name of a preset, or a table of keys by id.

    Args:
        wanted: a name from `PRESETS`; or a mapping of ids to a key, keys with commas between, or a list of keys. Its
            `preset` names one that it goes on from.
        where: what to call the settings in a message.

    Raises:
        UsageError: if an id, a key or a preset does not exist, or a key would mean two things; it names them all.
    """
    table = {"preset": wanted} if isinstance(wanted, str) else wanted
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: keymap: give a table of keys by id, or a preset: {', '.join(PRESETS)}")
    problems: list[str] = []
    changed: dict[str, str] = {}
    preset = table.get("preset")
    if isinstance(preset, str) and preset in PRESETS:
        changed.update(PRESETS[preset])
    elif preset is not None:
        problems.append(f"there is no preset {preset!r}: there is {', '.join(PRESETS)}")
    known = {key.id for key in (*GLOBAL, *LIST, *LIVE, *BESIDE, *WHATIF, *BREAKPOINTS, *WINDOW, *TUNE)}
    for identity, value in _flat(table):
        if identity not in known:
            near = difflib.get_close_matches(identity, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "the ids are in docs/screens.md and docs/tuning.md"
            problems.append(f"there is no {identity}; {hint}")
            continue
        names = _names(value)
        wrong = [name for name in names if not _exists(name)]
        problems.extend(f"{identity}: there is no key {name!r}" for name in wrong)
        if not names:
            problems.append(f"{identity}: needs a key")
        elif not wrong:
            changed[identity] = ",".join(names)
    problems.extend(_conflicts(Keymap(changed)))
    if problems:
        raise UsageError(f"{where}: keymap: {'; '.join(problems)}")
    return Keymap(changed)


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """`batch.next = "x"` is a table in a table to TOML, unless the id is in quotes."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif prefix or name != "preset":
            yield f"{prefix}{name}", value


def _names(value: object) -> list[str]:
    """Keys as Textual names them; a comma alone is the key."""
    parts = value if isinstance(value, list) else [value] if value == "," else str(value).split(",")
    texts = [text if text == " " else text.strip() for text in map(str, parts)]
    names = ["comma" if text == "," else "space" if text == " " else text for text in texts if text]
    return [binding.key for name in names for binding in Binding.make_bindings([(name, "", "")])]


def _exists(name: str) -> bool:
    """Whether some key has this name."""
    base = name
    while modifier := next((each for each in _MODIFIERS if base.startswith(each)), ""):
        base = base.removeprefix(modifier)
    named = {key.value for key in Keys} | {each for key in (*GLOBAL, *LIST) for each in key.keys.split(",")}
    return base in named or base in {key for code in range(33, 127) for key in _names([chr(code)])}


def _conflicts(mine: Keymap) -> list[str]:
    """Keys that mean two things at the same time."""
    found: list[str] = []
    for prefix, keys in _TOGETHER:
        meaning: dict[str, str] = {}
        for key in mine.of(keys):
            if key in mine.of(WINDOW) and not key.id.startswith(prefix):
                continue
            for name in key.keys.split(","):
                other = meaning.setdefault(name, key.id)
                if other != key.id:
                    found.append(f"{_written(name)} is both {other} and {key.id}")
    return list(dict.fromkeys(found))


def bindings(keys: tuple[Key, ...], *, first: str = "") -> list[BindingType]:
    """The table as Textual takes it.

    Args:
        keys: the keys.
        first: id of the one that acts before the focused pane sees it; its action skips what is not its business.
    """
    return [Binding(key.keys, key.action, key.help, id=key.id, show=False, priority=key.id == first) for key in keys]
