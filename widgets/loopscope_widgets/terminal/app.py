"""The application: themes, colour or none, glyphs or ASCII, the command palette. The rest is the screen's business."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

from textual.app import App, SystemCommand
from textual.command import CommandPalette
from textual.events import Event, Key
from textual.screen import Screen

from loopscope.errors import LoopscopeError, UsageError
from loopscope.session.session import Session
from loopscope.views.glyphs import in_ascii
from loopscope_widgets.terminal.ending import Ending
from loopscope_widgets.terminal.keymap import LIST, OWN, Keymap
from loopscope_widgets.terminal.panes.base import ASCII
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.screens.opening import Attach, KeyedScreen, Opened, Opener
from loopscope_widgets.terminal.theme import DARK, LIGHT, THEMES

__all__ = ["LoopscopeApp"]

_SHORT = {"dark": DARK.name, "light": LIGHT.name}


class LoopscopeApp(App[None]):
    """The debugger on one session, or the picker where there is none; arguments as for `terminal.run`."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "loopscope"
    ENABLE_COMMAND_PALETTE = True

    def __init__(  # noqa: PLR0913 - those of `run`
        self,
        session: Session | None,
        *,
        theme: str | None = None,
        ascii_only: bool = False,
        no_color: bool = False,
        screen: Callable[[], KeyedScreen] | None = None,
        opener: Opener | None = None,
        keys: Keymap | None = None,
        control: bool = False,
    ) -> None:
        with _environment(no_color=no_color):
            super().__init__()
        self.session = session
        self._first: Callable[[], KeyedScreen] | None = screen
        if screen is None and session is not None:
            self._first = partial(DebugScreen, session)
        self.opener = opener or _plainly
        self._control = control
        self.keys = keys or Keymap()
        self.set_keymap(dict(self.keys.changed))
        self.when_drawn: Callable[[], None] | None = None
        """Called once, when the first picture is drawn."""
        self.ending = Ending(self.exit)
        for own in THEMES:
            self.register_theme(own)
        self._begin_with(self._named(theme or "dark"))
        self.set_class(ascii_only, ASCII)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables, for themes that know nothing of them."""
        ours = DARK if self.current_theme.dark else LIGHT
        return {name: value for name, value in ours.variables.items() if name.startswith("pane-")}

    def _begin_with(self, theme: str) -> None:
        """Our dark theme from the first picture on: one that is set later is drawn over the default one."""
        if theme != DARK.name:
            self.theme = theme
            return
        self.set_reactive(App.theme, theme)
        self.set_class(True, f"-theme-{theme}", update=False)
        self.stylesheet.set_variables(self.get_css_variables())

    def _named(self, theme: str) -> str:
        """The theme of this name; without colours one of RGB values, since ANSI colours turn black on black then."""
        name = _SHORT.get(theme, theme)
        if name not in self.available_themes:
            known = ", ".join(["dark", "light", *self.available_themes])
            raise UsageError(f"there is no theme {theme!r}: there are {known}")
        return DARK.name if self.no_color and self.available_themes[name].ansi else name

    def get_default_screen(self) -> Screen[None]:
        """The debugger is the first screen: a bare one before it would only be drawn over. Else it is the picker."""
        return self._picker() if self._first is None else self._with_keys(self._first())

    def _with_keys(self, screen: KeyedScreen) -> KeyedScreen:
        screen.keymap = self.keys
        return screen

    def _picker(self) -> Screen[None]:
        from loopscope_widgets.terminal.screens.picker import Picker  # noqa: PLC0415 - loaded when it is asked for

        return Picker(self.opener)

    def action_open(self) -> None:
        """Pick another recording."""
        self.push_screen(self._picker())

    async def on_opened(self, event: Opened) -> None:
        """Another recording was read: show it in place of what was shown."""
        from loopscope_widgets.terminal.user import remember  # noqa: PLC0415 - as above

        self.session = event.session
        remember(event.session.source)
        await self._put_in_front(DebugScreen(event.session))

    async def on_attach(self, event: Attach) -> None:
        """A running process was picked: show it in place of what was shown."""
        from loopscope.link.follow import Follow  # noqa: PLC0415 - a recording needs none of it
        from loopscope.session.live import LiveSession  # noqa: PLC0415 - as above
        from loopscope_widgets.terminal.screens.live import LiveScreen  # noqa: PLC0415 - as above
        from loopscope_widgets.terminal.screens.picker import Picker  # noqa: PLC0415 - as above

        try:
            feed = await asyncio.to_thread(Follow, event.address, control=self._control, name="loopscope attach")
        except LoopscopeError as error:
            self.screen.post_message(Picker.Refused(str(error)))
            return
        enforced = any(engine.enforced for engine in feed.welcome.engines)
        live = LiveSession(feed.name, enforced=enforced, newest=feed.welcome.seq)
        self.session = live.session
        await self._put_in_front(LiveScreen(feed, live))

    async def _put_in_front(self, screen: DebugScreen) -> None:
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        if not self.screen._result_callbacks:  # noqa: SLF001 - Textual gives the first screen none, and then misses it
            self.screen._push_result_callback(self, None)  # noqa: SLF001 - as above
        await self.switch_screen(self._with_keys(screen))

    def open(self) -> None:
        """Draw until the user leaves.

        Raises:
            SystemExit: where SIGTERM or SIGHUP asked to end it; the terminal is as it was then.
        """
        self.run()
        self.ending.settle()

    def on_mount(self) -> None:
        """Tell when the first picture is drawn."""
        self.ending.listen()
        if self.when_drawn is not None:
            self.call_after_refresh(self.when_drawn)

    async def on_event(self, event: Event) -> None:
        """A key typed while a window, or a value, was opening belongs there: one types `:20`, or a limit, in one go."""
        debug = self.screen_stack[0] if self.screen_stack else None
        if isinstance(event, Key) and isinstance(debug, DebugScreen) and event in debug.passed:
            debug.passed.discard(event)
            if debug.whatif.typed is not None or self.screen is not debug:
                self.post_message(Key(event.key, event.character))
                return
        await super().on_event(event)

    def action_command_palette(self) -> None:
        """Find an action by its words."""
        if self.use_command_palette and not CommandPalette.is_open(cast("App[object]", self)):
            self.push_screen(CommandPalette(placeholder="words of an action", id="--command-palette"))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers: every key's action by its words, the themes, a picture of the screen."""
        if isinstance(screen, DebugScreen):
            pane = screen.pane(screen.tabs.current)
            special = self.keys.of(OWN.get(pane.number, ()))
            for node, keys in ((screen, screen.keys), (pane, special), (pane, self.keys.of(LIST))):
                for key in keys:
                    run = partial(node.run_action, key.action)
                    shown = in_ascii(key.shown) if self.has_class(ASCII) else key.shown
                    yield SystemCommand(key.help[:1].upper() + key.help[1:], f"key {shown}", run)
        for own in THEMES:
            title = f"Theme {own.name}"
            yield SystemCommand(title, "draw in these colours", partial(setattr, self, "theme", own.name))
        yield SystemCommand("Themes", "choose among all themes", self.action_change_theme)
        yield SystemCommand(
            "Screenshot", "save a picture of the screen (SVG)", partial(self.set_timer, 0.1, self.deliver_screenshot)
        )

    def action_help_quit(self) -> None:
        """ctrl+c does not end a debugger by accident."""
        self.notify("q quits", markup=False, timeout=3)


def _plainly(target: str) -> Session:
    """Opens a target under no policy but its own."""
    from loopscope.settings import Choice  # noqa: PLC0415 - loaded when it is asked for
    from loopscope.targets import open_session  # noqa: PLC0415 - as above

    return open_session(target, Choice.of())


@contextmanager
def _environment(*, no_color: bool) -> Iterator[None]:
    """NO_COLOR as Textual reads it, once, when an application is made."""
    before = os.environ.get("NO_COLOR")
    if no_color and before is None:
        os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        if no_color and before is None:
            del os.environ["NO_COLOR"]
