"""What the debugger's screen does with limits that are being tried: presets, export, and putting them in force.

Apart from the pane, which changes and tries them. A recording cannot be steered; a live run gives a way to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.screen import Screen

from loopscope.engine.policy import PRESETS, Policy
from loopscope.recording.inert import inert
from loopscope.session.journal import Journal
from loopscope.session.session import Session
from loopscope_widgets.terminal.panes.base import tell
from loopscope_widgets.terminal.panes.whatif import WhatIfPane

__all__ = ["Trying"]


class Trying(Screen[None]):
    """A screen with the pane What-if."""

    session: Session
    journal: Journal
    whatif: WhatIfPane
    apply: Callable[[Policy], None] | None = None
    """Puts a policy in force where the run goes on; None where it cannot be, as in a recording."""

    def cannot_apply(self) -> str:
        """Why no policy can be put in force; nothing where it can."""
        return "" if self.apply is not None else "this is a recording; e exports the limits"

    def action_presets(self) -> None:
        """Ask which preset to take."""
        from loopscope_widgets.terminal.screens.choose import Choose  # noqa: PLC0415 - loaded when it is asked for

        baseline = self.whatif.draft.baseline
        policies = {"baseline": baseline, **PRESETS}
        entries = [(name, self._said(name, baseline, policy)) for name, policy in policies.items()]
        self.app.push_screen(Choose("Presets", entries), partial(self._take, tuple(policies.values())))

    @staticmethod
    def _said(name: str, baseline: Policy, policy: Policy) -> str:
        from loopscope.views.exporting import differences  # noqa: PLC0415 - as above

        if name == "baseline":
            return "the limits that decided this run"
        return ", ".join(differences(baseline, policy)) or "the same as the baseline"

    def _take(self, policies: tuple[Policy, ...], chosen: int | None) -> None:
        if chosen is not None:
            self.whatif.take(self.whatif.draft.take(policies[chosen]))

    def action_apply_limits(self) -> None:
        """Ask once, then put them in force."""
        from loopscope.views.exporting import differences  # noqa: PLC0415 - as above

        why = self.cannot_apply()
        draft = self.whatif.draft
        said = differences(self.session.policy, draft.policy)
        if why:
            tell(self, f"cannot apply: {why}", problem=True)
        elif not said:
            tell(self, "nothing to apply: these limits are in force", problem=True)
        else:
            from loopscope_widgets.terminal.screens.confirm import Confirm  # noqa: PLC0415 - as above

            words = f"put in force in {inert(self.session.source, 100)}, from the next batch on?"
            self.app.push_screen(Confirm("Apply", words, *said), partial(self._applied, draft.policy))

    def _applied(self, policy: Policy, yes: bool | None) -> None:  # noqa: FBT001 - the answer of a window
        if yes and self.apply is not None:
            self.apply(policy)

    def action_export(self) -> None:
        """The limits in a file: those that are tried, else those of the run."""
        from loopscope_widgets.terminal.screens.exporting import ExportWindow, Limits  # noqa: PLC0415 - as above

        draft = self.whatif.draft
        self.app.push_screen(ExportWindow(Limits(self.session.source, draft.baseline, draft.policy)))
