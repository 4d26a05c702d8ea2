"""`loopscope ctl`: the debugger's controls without a screen, for shells and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from loopscope.errors import CannotAttachError, UsageError

if TYPE_CHECKING:
    from loopscope.engine.events import ScopeKey
    from loopscope.link.client import Client
    from loopscope.recording.feed import Verb
    from loopscope.settings import Choice

__all__ = ["command"]

_VERBS = {
    "pause": "pause",
    "continue": "continue",
    "next": "next",
    "pass-once": "passOnce",
    "stop": "stop",
    "set": "setPolicy",
    "reset": "reset",
}


@click.command()
@click.argument("target")
@click.argument("action", type=click.Choice(list(_VERBS)), metavar="ACTION")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--thread", metavar="ID", help="With --run: act on this one scope, not on all of the process.")
@click.option("--run", "run_id", metavar="ID", help="See --thread.")
@click.option("--engine", type=int, metavar="N", help="Of several middlewares, set the policy of this one.")
def command(
    target: str, action: str, settings: tuple[str, ...], thread: str | None, run_id: str | None, engine: int | None
) -> None:
    """Steer a live process: TARGET is its pid, its name or its socket, as `loopscope ps` lists them.

    \b
    pause       hold the next batch of calls of each scope before its tools run
    continue    let everything go on
    next        let one batch go on, and hold the one after it
    pass-once   let the batch that is held run, even if the policy would stop it
    stop        end the run at its next batch, as a hard stop would
    set K=V     decide under other limits from the next batch on (hard_limit=9)
    reset       forget what was counted

    A pause stays until `continue`, at most ten minutes unless the process says otherwise. The process must allow
    control: loopscope.listen(control=True), LOOPSCOPE=control or `loopscope run --control`. TARGET may also be the URL
    of a LangGraph server, of which `stop` cancels runs; it can do nothing else.
    """  # noqa: D301 - click's mark for lines that stay lines
    if (action == "set") != bool(settings):
        missing = "needs KEY=VALUE, for example hard_limit=9" if action == "set" else "takes no KEY=VALUE"
        raise UsageError(f"ctl: {action} {missing}")
    if engine is not None and action != "set":
        raise UsageError(f"ctl: --engine is for set, not for {action}")
    if target.startswith(("http://", "https://")):
        click.echo(_on_server(target, action, _scope(thread, run_id)))
        return
    from loopscope.link.client import connect
    from loopscope.settings import Choice

    choice = Choice.of(sets=settings)
    client = connect(target, control=True, name="loopscope ctl")
    try:
        reason = client.welcome.capabilities.get(_VERBS[action], "this process is too old for that")
        if reason:
            raise CannotAttachError(f"{client.welcome.name}: {reason}")
        scope = _scope(thread, run_id)
        if action == "set":
            click.echo(_set(client, scope, choice, engine))
        else:
            click.echo(_said(action, scope, client.request(_VERBS[action], scope)))
    finally:
        # Whatever is paused was meant to stay so when this command is over.
        client.close(resume=False)


def _on_server(target: str, action: str, scope: ScopeKey | None) -> str:
    """A LangGraph server cancels runs, and refuses the rest with its reason."""
    from loopscope.sources.langgraph_server import follow

    feed = follow(target, control=True, name="loopscope ctl")
    try:
        verb = cast("Verb", _VERBS[action])
        if reason := feed.capabilities[verb]:
            raise CannotAttachError(f"{feed.name}: {reason}")
        return _said(action, scope, feed.request(verb, scope))
    finally:
        feed.close()


def _scope(thread: str | None, run_id: str | None) -> ScopeKey | None:
    from loopscope.engine.events import ScopeKey

    return None if thread is None and run_id is None else ScopeKey(thread, run_id)


def _set(client: Client, scope: ScopeKey | None, choice: Choice, number: int | None) -> str:
    """Set the policy, engine by engine where what is to be set depends on what is in force there."""
    engines = [each for each in client.welcome.engines if number in (None, each.number)]
    changes = [_changes(each.policy, choice) for each in engines] or [_changes(None, choice)]
    if all(each == changes[0] for each in changes):
        asked = [client.request("setPolicy", scope, changes=changes[0], engine=number)]
    else:
        asked = [
            client.request("setPolicy", scope, changes=each, engine=engine.number)
            for engine, each in zip(engines, changes, strict=True)
        ]
    from loopscope.recording.inert import inert

    names = [inert(str(engine.get("engine")), 80) for answer in asked for engine in answer.get("engines", ())]
    what = ", ".join(inert(override.where.removeprefix("--set "), 200) for override in choice.overrides)
    return f"set {what} in {', '.join(names)}, {_where(scope)}, from the next batch on"


def _changes(policy: Mapping[str, Any] | None, choice: Choice) -> dict[str, Any]:
    """The top-level settings that change, whole."""
    values = choice.over(policy).policy.to_dict()
    return {override.path[0]: values.get(override.path[0], override.value) for override in choice.overrides}


def _where(scope: ScopeKey | None) -> str:
    from loopscope.views.topbar import scope_name

    return "every scope" if scope is None else scope_name(*scope)


def _said(action: str, scope: ScopeKey | None, answer: Mapping[str, Any]) -> str:
    """What was done, in one line."""
    from loopscope.views.words import plural

    where = _where(scope)
    if action == "pass-once":
        return f"passed {plural(int(answer.get('batches', 0)), 'held batch')}, {where}"
    if action == "stop":
        count = int(answer.get("scopes", 0))
        return f"stopping {plural(count, 'scope')} at the next batch" if count else "no run goes on: nothing to stop"
    return {
        "pause": f"paused: the next batch is held, {where}",
        "continue": f"continues, {where}",
        "next": f"one batch goes on and the one after it is held, {where}",
        "reset": f"forgot what was counted, {where}",
    }[action]
