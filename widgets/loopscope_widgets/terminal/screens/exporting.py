"""The window Export: the limits in three forms, what each changes, and how to verify it; written only after `y`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from textual.app import ComposeResult
from textual.screen import ModalScreen

from loopscope.engine.policy import Policy
from loopscope.recording.inert import inert
from loopscope.views import exporting
from loopscope.views.model import Line, Style
from loopscope_widgets.terminal.keymap import WINDOW, Keymap, bindings
from loopscope_widgets.terminal.panes.base import LinePane, tell
from loopscope_widgets.terminal.screens.ask import Ask
from loopscope_widgets.terminal.screens.confirm import Confirm

__all__ = ["ExportWindow", "FileName", "Limits"]


class Limits(NamedTuple):
    """What is exported."""

    source: str
    before: Policy
    after: Policy


class FileName(Ask[str]):
    """Asks where to write."""

    def __init__(self, name: str) -> None:
        super().__init__("Write to", name)
        self._file = name

    def says(self) -> tuple[str, Style]:
        """What is there already."""
        if not self._file.strip():
            return "the name of a file", "dim"
        there = _is_there(self._file)
        return ("is there already: it would be overwritten", "warn") if there else ("a new file", "dim")

    def typed(self, text: str) -> None:
        """Another name."""
        self._file = text

    def submitted(self) -> None:
        """That is it, if it is one."""
        if self._file.strip():
            self.dismiss(self._file.strip())


class ExportWindow(ModalScreen[None]):
    """Shows the forms side by side, one at a time.

    Args:
        limits: what is exported.
    """

    BINDINGS = bindings(tuple(key for key in WINDOW if key.id.startswith("export.")))
    DEFAULT_CSS = """
    ExportWindow { align: center middle; }
    ExportWindow LinePane { width: 90%; max-width: 110; height: 90%; background: $panel; padding: 1 2; }
    ExportWindow.-narrow LinePane, ExportWindow.-tiny LinePane, ExportWindow.-low LinePane {
        display: block; width: 100%; height: 100%; padding: 0 1; border: round $foreground;
    }
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        self._kind = 0
        self._files = [kind.file for kind in exporting.KINDS]
        self.pane = LinePane(self._body, number=0, name="Export")
        self.pane.heading = "Export"

    def compose(self) -> ComposeResult:
        """The text."""
        yield self.pane

    def on_mount(self) -> None:
        """The keys go there at once, and the border tells of them."""
        keys: Keymap = getattr(self.app, "keys", Keymap())
        told = {"export.save": "write", "export.copy": "copy", "export.next": "the other forms"}
        said = [f"{key.shown.split()[0]} {told[key.id]}" for key in keys.of(WINDOW) if key.id in told]
        self.pane.beside = (f"  {', '.join(said)}",)
        self.set_focus(self.pane)

    @property
    def export(self) -> exporting.Export:
        """What is shown."""
        limits = self._limits
        kind = exporting.KINDS[self._kind]
        return exporting.Export(kind, limits.source, self._files[self._kind], limits.before, limits.after)

    @property
    def text(self) -> str:
        """What is written."""
        return exporting.text(self.export.kind, self._limits.after)

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        return exporting.body(self.export, max(1, width))

    def action_kind(self, by: int) -> None:
        """The next form."""
        self._kind = (self._kind + by) % len(exporting.KINDS)
        self.pane.show()
        self.pane.scroll_to(y=0, animate=False)

    def action_copy(self) -> None:
        """To the terminal's clipboard, if it has one for programs."""
        self.app.copy_to_clipboard(self.text)
        tell(self, "copied, if the terminal lets programs copy; s writes it to a file")

    def action_save(self) -> None:
        """Ask for a file."""
        self.app.push_screen(FileName(self.export.file), self._named)

    def _named(self, name: str | None) -> None:
        if name is None:
            return
        self._files[self._kind] = name
        self.pane.show()
        there = _is_there(name)
        act = f"{'overwrite' if there else 'write'} {inert(name, 300)}"
        said = exporting.differences(self._limits.before, self._limits.after)
        changed = f"{len(said)} of its limits are not those of this run" if said else "its limits are those of this run"
        self.app.push_screen(Confirm("Export", f"{act}?", changed), self._confirmed)

    def _confirmed(self, yes: bool | None) -> None:  # noqa: FBT001 - the answer of a window
        if not yes:
            tell(self, "nothing was written")
            return
        export = self.export
        try:
            Path(export.file).expanduser().write_text(self.text, "utf-8")
        except (OSError, ValueError, RuntimeError) as error:
            tell(self, f"{export.file} cannot be written: {getattr(error, 'strerror', None) or error}", problem=True)
            return
        tell(self, f"wrote {export.file}; verify: {exporting.command(export)}")

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)


def _is_there(name: str) -> bool:
    try:
        return Path(name.strip()).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
