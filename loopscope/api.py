"""The top of the library: `loopscope.open`, how a session shows itself, and what IPython loads.

The command line beside it does the same for a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from loopscope.engine.policy import Policy
from loopscope.errors import UsageError
from loopscope.session.session import Session
from loopscope.session.surface import Surface
from loopscope.settings import Choice, Settings
from loopscope.targets import open_session

if TYPE_CHECKING:
    from loopscope.session.tune import Tuning

__all__ = ["Session", "load_ipython_extension", "open"]

Theme: TypeAlias = Literal["dark", "light"] | None


def open(  # noqa: A001 - reads as `loopscope.open(...)`
    target: str | os.PathLike[str],
    policy: Policy | str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    channel: str | None = None,
) -> Session:
    """Reads a recording to its end; the cursor is on its first stop, else on its last batch.

    Args:
        target: a recording (`.jsonl` or `.jsonl.gz`), a LangGraph checkpoint file, `sample:NAME`, or `-` for the
            standard input.
        policy: what decides, in place of the recording's own: a policy, a file or preset, or settings by name. None
            takes the recording's own, else the nearest `loopscope.toml`, else the defaults.
        channel: of a checkpoint file, the channel that holds the messages; None takes every channel that holds some.

    Raises:
        UsageError: if there is no such sample or channel.
        UnreadableInputError: if the recording cannot be read.
        PolicyError: if the policy breaks a rule.
    """
    return open_session(target, _choice(policy), channel)


def _choice(policy: Policy | str | os.PathLike[str] | Mapping[str, Any] | None) -> Choice:
    if policy is None:
        return Choice.of(project=Path.cwd())
    if isinstance(policy, (str, os.PathLike)):
        return Choice.of(os.fspath(policy))
    value = policy if isinstance(policy, Policy) else Policy.parse(policy)
    return Choice(Settings(value, dict.fromkeys(value.to_dict(), "policy=")), fixed=True)


class _Showing:
    """Draws sessions for programs and notebooks; what draws is loaded when it is asked for."""

    def bundle(self, session: Session) -> tuple[dict[str, Any], dict[str, Any]]:
        """Text and a static fragment always; the widget too where the extra `notebook` is installed."""
        if find_spec("anywidget") is not None:
            from loopscope_widgets.notebook.widget import LoopWidget  # noqa: PLC0415 - most programs show nothing

            return LoopWidget(session)._repr_mimebundle_()
        from loopscope.views.glance import glance  # noqa: PLC0415 - as above
        from loopscope.views.web.cell import cell  # noqa: PLC0415 - as above

        return {"text/plain": glance(session), "text/html": cell(session)}, {}

    def page(self, session: Session, theme: Theme) -> str:
        """As `loopscope export --html`."""
        from loopscope.views.web.page import page  # noqa: PLC0415 - as above

        return page(session, theme=theme)

    def timeline(self, session: Session, theme: Theme) -> str:
        """As `loopscope export --svg`."""
        from loopscope.views.web.picture import picture  # noqa: PLC0415 - as above

        return picture(session, theme=theme)

    def heat(self, tuning: Tuning, theme: Theme) -> str:
        """As `loopscope tune --svg`."""
        from loopscope.views.web.tune_picture import picture  # noqa: PLC0415 - as above

        return picture(tuning, theme=theme)


Surface.drawn_by = _Showing()


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext loopscope` calls.

    Raises:
        UsageError: where the extra `notebook` is not installed.
    """
    if find_spec("anywidget") is None:
        raise UsageError("%load_ext loopscope: the notebook part is not installed; pip install 'loopscope[notebook]'")
    from loopscope_widgets.notebook.magics import register  # noqa: PLC0415 - as above

    register(shell)
