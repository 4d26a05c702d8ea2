"""Every key of the terminal in one table: bindings, footer, help and the command palette all read it.

One rule: Shift goes back in time, as n and N do in vim and less. Letters are pdb's where pdb has one. Every binding
has an id, by which a user may give it other keys.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType

__all__ = ["GLOBAL", "LIST", "Key", "bindings"]


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
    Key("why", "w", "why", "w", "why: the whole explanation of this verdict", "Windows", "Why", "w"),
    Key("copy", "y", "copy", "y", "copy the batch; a plain view to select in", "Windows"),
    Key("undo", "U", "undo", "U", "undo: scope shown, filter, marks", "Windows"),
    Key("pane.next", "tab", "next_pane(1)", "tab", "next pane", "Scopes and panes", "Pane", "tab"),
    Key("pane.previous", "shift+tab", "next_pane(-1)", "shift+tab", "previous pane", "Scopes and panes"),
    Key("pane.scopes", "1", "pane(1)", "1", "Scopes: threads, runs and sub-agents", "Scopes and panes"),
    Key("pane.detect", "2", "pane(2)", "2", "Detect: counts, limits and distances", "Scopes and panes"),
    Key("pane.inspect", "3", "pane(3)", "3", "Inspect: the batch, and why its verdict", "Scopes and panes"),
    Key("pane.graph", "4", "pane(4)", "4", "Graph: nodes, ways, and the circle between", "Scopes and panes"),
    Key("pane.decisions", "6", "pane(6)", "6", "Decisions: the log of warnings and stops", "Scopes and panes"),
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


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """The table as Textual takes it."""
    return [Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in keys]
