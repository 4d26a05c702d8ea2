"""`loopscope config`: which limits are in force and why, whether a policy file is right, and writing one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopscope.cli.options import json_option, policy_choice, policy_options, target_argument
from loopscope.errors import PolicyError, UsageError

if TYPE_CHECKING:
    from loopscope.engine.policy import Policy
    from loopscope.settings import Settings

__all__ = ["command"]

_FILES = {"toml": "loopscope.toml", "yaml": "loop_detection.yaml", "json": "limits.json", "python": "limits.py"}
"""What an export is called unless somebody says otherwise."""
_NOTES = {
    "warn_threshold": "Equal batches of tool calls in the window: from this many on the model is warned ...",
    "hard_limit": "... and from this many on the run is stopped.",
    "window_size": "How many of the newest batches of one agent loop are compared.",
    "max_tracked_threads": "How many agent loops are remembered; the least recently used goes first.",
    "tool_freq_warn": "Calls of one tool, whatever their arguments: from this many on the model is warned ...",
    "tool_freq_hard_limit": "... and from this many on the run is stopped.",
    "tool_freq_overrides": "Other frequency limits for single tools, such as: bash = { warn = 60, hard_limit = 300 }",
}


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show, check, export or begin a policy file.

    The nearest loopscope.toml, or [tool.loopscope] of a pyproject.toml, is the project's file.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _settings(target: str | None, policy: str | None, sets: tuple[str, ...]) -> Settings:
    choice = policy_choice(policy, sets)
    if target is None:
        return choice.settings
    from loopscope.targets import recorded_policy

    return choice.over(recorded_policy(target))


@command.command()
@target_argument(required=False)
@policy_options
@json_option("Print one JSON object with the policy and the origin of each limit.")
def show(target: str | None, policy: str | None, sets: tuple[str, ...], *, as_json: bool) -> None:
    """Show the limits in force, and where each comes from.

    With TARGET, a recording or sample:NAME, those that it would be replayed under.
    """
    from loopscope.recording.inert import inert
    from loopscope.settings import flat

    settings = _settings(target, policy, sets)
    values = flat(settings.policy.to_dict())
    if as_json:
        origins = {name: settings.origin(name) for name in values}
        click.echo(json.dumps({"policy": settings.policy.to_dict(), "origins": origins}))
        return
    rows = [(inert(name), inert(json.dumps(value)), inert(settings.origin(name))) for name, value in values.items()]
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, value, origin in rows:
        click.echo(f"{name:{name_width}}  {value:>{value_width}}  {origin}")


@command.command()
@click.argument("files", nargs=-1, metavar="[FILE|PRESET]...")
def check(files: tuple[str, ...]) -> None:
    """Check policy files; without FILE, the project's.

    Every problem is told, one a line, with file, line and field; exit code 2 if there is one.
    """
    from loopscope.recording.inert import inert
    from loopscope.settings import load_settings
    from loopscope.views.words import plural

    problems = []
    for name in files or (_project_file(),):
        try:
            settings = load_settings(name)
        except PolicyError as error:
            problems += error.problems
        else:
            click.echo(inert(f"{name}: ok, {plural(len(settings.origins), 'limit')} set"))
    for problem in problems:
        click.echo(inert(str(problem)), err=True)
    if problems:
        raise click.exceptions.Exit(PolicyError.exit_code)


def _project_file() -> str:
    from loopscope.settings import find

    file = find(Path.cwd())
    if file is None:
        raise UsageError("no loopscope.toml here or above; name a file, or begin one with `loopscope config init`")
    return os.path.relpath(file)


@command.command()
@target_argument(required=False)
@policy_options
@click.option("--format", "language", type=click.Choice(["toml", "yaml", "json", "python"]), default="toml")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def export(
    target: str | None, policy: str | None, sets: tuple[str, ...], language: str, output: str | None, *, force: bool
) -> None:
    """Print the limits in force as a policy file, or as the lines of a program.

    With TARGET, a recording or sample:NAME, those that it would be replayed under. yaml is DeerFlow's loop_detection:
    section. Beside it, on stderr: what --policy and --set change, and the command that shows the limits at work.
    """
    from loopscope.export import FORMATS

    after = _settings(target, policy, sets).policy
    text = FORMATS[language](after)
    if output is None:
        click.echo(text, nl=False)
    else:
        _write(Path(output), text, force=force)
    _tell_export(target, _settings(target, None, ()).policy, after, language, output)


def _tell_export(target: str | None, before: Policy, after: Policy, language: str, output: str | None) -> None:
    """The difference to what was loaded, and how to verify the export."""
    from loopscope.recording.inert import inert
    from loopscope.views.exporting import differences

    against = inert(target) if target is not None else "the limits in force here"
    click.echo(f"against {against}:", err=True)
    for told in differences(before, after) or ["nothing changes"]:
        click.echo(f"  {told}", err=True)
    needed = output is None and (target is None or language != "python")
    saved = f", once it is saved as {_FILES[language]}" if needed else ""
    click.echo(
        inert(f"verify{saved}: {_verify(target, output or _FILES[language], before, after, language)}"), err=True
    )


def _verify(target: str | None, file: str, before: Policy, after: Policy, language: str) -> str:
    from shlex import quote

    from loopscope.views.exporting import KINDS, Export, command

    if target is None:
        return f"python {quote(file)}" if language == "python" else f"loopscope config show --policy {quote(file)}"
    kind = next(kind for kind in KINDS if (kind.name == "Python") == (language == "python"))
    return command(Export(kind, target, file, before, after))


@command.command()
@click.argument("file", default="loopscope.toml", type=click.Path(dir_okay=False))
@policy_options
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def init(file: str, policy: str | None, sets: tuple[str, ...], *, force: bool) -> None:
    """Write a commented policy file, by default ./loopscope.toml."""
    from loopscope.export import to_toml
    from loopscope.settings import Choice

    _write(Path(file), to_toml(Choice.of(policy, sets).settings.policy, _NOTES), force=force)


def _write(file: Path, text: str, *, force: bool) -> None:
    from loopscope.recording.inert import inert

    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already; name another file, or overwrite it with --force") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from None
    click.echo(inert(f"wrote {file}"), err=True)
