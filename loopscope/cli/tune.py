"""`loopscope tune`: thresholds over one or many recordings, and which of them to take."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.shell_completion import CompletionItem

from loopscope.cli.options import channel_option, complete_policy, target_argument
from loopscope.errors import LoopscopeError, UnreadableInputError, UsageError

if TYPE_CHECKING:
    from loopscope.cli.corpus import Found, Labels
    from loopscope.cli.measuring import Measured, Plan
    from loopscope.engine.policy import Policy
    from loopscope.session.grid import Grid
    from loopscope.session.session import Session
    from loopscope.session.summary import Run
    from loopscope.session.tune import Comparison, Tuning
    from loopscope.views.model import Line

__all__ = ["command"]

_WIDTH = 100
_MOST_VERDICTS = 20_000_000
"""Recordings times settings: more would not fit in memory."""
_NAMED = 5


class _Look(NamedTuple):
    """How a result is to be shown."""

    svg: str | None
    html: str | None
    theme: str | None
    as_json: bool
    as_csv: bool
    as_text: bool
    ascii_only: bool
    no_color: bool

    @property
    def on_stdout(self) -> bool:
        """Whether stdout has a program's data, or nothing."""
        return self.as_json or self.as_csv or self.svg is not None or self.html is not None


def _settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The settings that a grid can take."""
    from loopscope.engine.parsing import INTEGERS
    from loopscope.engine.sections import COUNTERS

    del ctx, param
    layers = ("cycle.hash", "cycle.names", "error_streak", "stagnation")
    names = [
        *INTEGERS,
        *(f"{layer}.{part}" for layer in layers for part in ("warn", "hard_limit")),
        "repeat_in_batch.warn",
    ]
    names += [f"budget.{counter}.limit" for counter in COUNTERS]
    return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]


@click.command()
@target_argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--grid", "grids", metavar="NAME=3..12", multiple=True, shell_complete=_settings,
    help="Values of a setting: 3..12, 3..30..3 (in steps) or 10,20,40; repeatable, every combination is tried. "
    "By default hard_limit, window_size and tool_freq_hard_limit around the limits in force.",
)  # fmt: skip
@click.option(
    "--labels", metavar="FILE", type=click.Path(),
    help="Which runs are loops and which are fine: a recording, a tab, loop or ok, one a line.",
)  # fmt: skip
@click.option(
    "--policy", "policies", metavar="FILE|PRESET", multiple=True, shell_complete=complete_policy,
    help="What the grid is laid over; several are compared side by side instead.",
)  # fmt: skip
@click.option("--presets", is_flag=True, help="Compare all presets side by side, run by run.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="One limit, laid over the policy; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every cell.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a row a cell, as CSV; of a comparison, a row a verdict.")
@click.option("--svg", metavar="FILE", help="Write the heat map and the front as a picture; - is stdout.")
@click.option(
    "--html", metavar="FILE", help="Write them as a page, with every run under the advised limits; - is stdout."
)
@click.option("--text", "as_text", is_flag=True, help="Print a table also where a screen could be opened.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; by default as many as are worth it.")
@click.option(
    "--cluster", metavar="dask|ray[=ADDRESS]",
    help="Spread the recordings over a Dask or Ray cluster, whose workers must see the same files.",
)  # fmt: skip
@click.option(
    "--theme", type=click.Choice(["dark", "light"]), help="By default as the reader's system; the screen is dark."
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@click.option("--no-color", is_flag=True, envvar="LOOPSCOPE_NO_COLOR", help="Draw in greys, as with NO_COLOR.")
@channel_option
def command(
    targets: tuple[str, ...],
    grids: tuple[str, ...],
    labels: str | None,
    policies: tuple[str, ...],
    sets: tuple[str, ...],
    svg: str | None,
    html: str | None,
    jobs: int | None,
    cluster: str | None,
    theme: str | None,
    channel: str | None,
    *,
    presets: bool,
    as_json: bool,
    as_csv: bool,
    as_text: bool,
    ascii_only: bool,
    no_color: bool,
) -> int:
    """Try limits on many runs: files, folders, globs (quoted or not), sample:NAME or sample:*.

    For every setting of the grid: runs warned and stopped, the median batch of the first stop, what stopping saves
    and, with labels, healthy runs stopped and loops missed; what no other setting beats; which one to take, and why.
    On a terminal that is a screen: arrows move, enter opens a run under the setting in the debugger.

    \b
    loopscope tune runs/ --labels labels.tsv
    loopscope tune 'runs/**/*.jsonl' --grid hard_limit=3..12 --grid window_size=10,20,40
    loopscope tune runs/ --presets
    """  # noqa: D301 - click looks for the character
    from loopscope.cli.corpus import Labels, find, read_labels

    look = _Look(svg, html, theme, as_json, as_csv, as_text, ascii_only, no_color)
    _check(look, grids, policies, presets=presets)
    known = read_labels(labels) if labels is not None else Labels({})
    with ExitStack() as stack:
        found = [_kept(each, stack) for each in find(targets)]
        if presets or len(policies) > 1:
            return _compare(found, known, _named(policies, sets, presets=presets), channel, jobs, cluster, look)
        base = _base(found, policies, sets, channel)
        return _sweep(found, known, base, grids, channel, jobs, cluster, look)


def _check(look: _Look, grids: Sequence[str], policies: Sequence[str], *, presets: bool) -> None:
    if grids and (presets or len(policies) > 1):
        raise UsageError("tune: a grid is laid over one policy; leave out --grid, or name one --policy")
    on_stdout = [name for name, wanted in (("--json", look.as_json), ("--csv", look.as_csv)) if wanted]
    on_stdout += [f"{name} -" for name, file in (("--svg", look.svg), ("--html", look.html)) if file == "-"]
    if len(on_stdout) > 1:
        raise UsageError(f"tune: stdout takes one of {', '.join(on_stdout)}")


def _kept(found: Found, stack: ExitStack) -> Found:
    """The standard input as a file, since it is read more than once."""
    from loopscope.targets import STDIN

    if found.target != STDIN:
        return found
    from tempfile import NamedTemporaryFile

    made = NamedTemporaryFile(prefix="loopscope-", suffix=".stdin")  # noqa: SIM115 - the stack closes it
    file = stack.enter_context(made)
    shutil.copyfileobj(sys.stdin.buffer, file)
    file.flush()
    return found._replace(target=file.name)


def _named(policies: Sequence[str], sets: Sequence[str], *, presets: bool) -> dict[str, Policy]:
    from loopscope.engine.policy import PRESETS
    from loopscope.settings import Choice

    names = dict.fromkeys((*(PRESETS if presets else ()), *policies))
    return {name: Choice.of(name, sets).settings.policy for name in names}


def _base(found: Sequence[Found], policies: Sequence[str], sets: Sequence[str], channel: str | None) -> Policy:
    """What the grid is laid over: `--policy`, else what all recordings ran under, else the project's, else defaults."""
    from loopscope.cli.output import tell
    from loopscope.settings import Choice

    choice = Choice.of(policies[0] if policies else None, sets, project=Path.cwd())
    if choice.fixed:
        return choice.settings.policy
    recorded = [choice.over(_recorded(each.target, channel)).policy for each in found]
    kinds = list(dict.fromkeys(recorded))
    if len(kinds) == 1:
        return kinds[0]
    told = (
        f"the recordings ran under {len(kinds)} policies; the grid is laid over the project's limits, else the defaults"
    )
    tell(f"{told}: name others with --policy")
    return choice.settings.policy


def _recorded(target: str, channel: str | None) -> Mapping[str, object] | None:
    """A recording's own policy; one that cannot be read is told of when it is measured."""
    from loopscope.targets import recorded_policy

    del channel
    try:
        return recorded_policy(target)
    except LoopscopeError:
        return None


def _sweep(
    found: Sequence[Found], labels: Labels, base: Policy, grids: Sequence[str], channel: str | None,
    jobs: int | None, cluster: str | None, look: _Look,
) -> int:  # fmt: skip
    from loopscope.cli.measuring import INSTEAD, Plan
    from loopscope.session.grid import default_grid, parse_grid
    from loopscope.session.tune import tune

    grid: Grid = parse_grid(grids, base) if grids else default_grid(base)
    verdicts = len(found) * prod(map(len, grid.values))
    if verdicts > _MOST_VERDICTS:
        raise UsageError(
            f"--grid: {verdicts:,} verdicts are too many; {_MOST_VERDICTS:,} is the most: take fewer values"
        )
    measured, code = _measured(found, labels, Plan(base, grid), channel, jobs, cluster)
    runs = _runs(measured, labels)
    others = {name: [each.instead[place] for each in measured] for place, name in enumerate(INSTEAD)}
    tuning = tune(grid, base, runs, others)
    if not tuning.cells:
        raise UsageError(f"tune: {tuning.advice.reasons[0]}")
    _show_tuning(tuning, look, _opener(channel))
    return code


def _compare(
    found: Sequence[Found], labels: Labels, policies: Mapping[str, Policy], channel: str | None,
    jobs: int | None, cluster: str | None, look: _Look,
) -> int:  # fmt: skip
    from loopscope.cli.measuring import Plan
    from loopscope.session.tune import compare_policies

    first = next(iter(policies.values()))
    plan = Plan(first, policies=tuple(policies.values()))
    measured, code = _measured(found, labels, plan, channel, jobs, cluster)
    _show_comparison(compare_policies(policies, _runs(measured, labels)), look)
    return code


def _measured(
    found: Sequence[Found], labels: Labels, plan: Plan, channel: str | None, jobs: int | None, cluster: str | None
) -> tuple[list[Measured], int]:
    """What could be measured, and the exit code for what could not; that is told."""
    from loopscope.cli.measuring import jobs_for, measure_all, on_cluster, pieces, whole
    from loopscope.cli.output import tell
    from loopscope.cli.progress import Progress

    work = pieces([each.target for each in found], plan)
    noun = "recordings" if len(work) == len(found) else "pieces of work"
    kept: list[Measured] = []
    codes, silent, broken = [0], 0, []
    with ExitStack() as stack:
        if cluster is not None:
            stack.enter_context(on_cluster(cluster))
        progress = stack.enter_context(Progress(noun, len(work)))
        many = jobs if jobs is not None else jobs_for(work, plan)
        parts = progress.over(measure_all(work, plan, channel, many, cluster=cluster is not None))
        for each, result in zip(found, whole(parts), strict=True):
            if result.problem or not result.batches:
                problem = result.problem or f"{each.target}: has no batch with tool calls"
                if len(found) == 1 and each.named:
                    raise (UsageError if result.code == UsageError.exit_code else UnreadableInputError)(problem)
                if each.named or labels.of(each.target) is not None:
                    tell(problem)
                    codes.append(result.code)
                elif result.problem and not result.foreign:
                    broken.append(problem)
                else:
                    silent += 1
                continue
            kept.append(result)
    _tell_rest(kept, labels, silent, broken)
    if not kept:
        raise UnreadableInputError("tune: no recording with a batch of tool calls could be read")
    return kept, max(codes)


def _tell_rest(kept: Sequence[Measured], labels: Labels, silent: int, broken: Sequence[str]) -> None:
    from loopscope.cli.output import tell
    from loopscope.views.words import plural

    for problem in broken[:_NAMED]:
        tell(f"{problem} (passed over)")
    if len(broken) > _NAMED:
        tell(f"{plural(len(broken) - _NAMED, 'more file')} in folders could not be read")
    if silent:
        tell(f"{plural(silent, 'file')} in folders passed over: no batch of tool calls in them")
    for result in kept:
        if result.skipped:
            tell(f"{result.target}: {plural(result.skipped, 'line')} could not be read; `loopscope replay` names them")
    used = {name for result in kept for name in labels.names(result.target)}
    unused = [name for name in labels.by_name if name not in used]
    if unused:
        more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
        tell(f"labels without a recording: {', '.join(unused[:_NAMED])}{more}")


def _runs(measured: Sequence[Measured], labels: Labels) -> list[Run]:
    from loopscope.cli.corpus import short_names
    from loopscope.session.summary import Run

    names = short_names([each.target for each in measured])
    return [
        Run(name, each.batches, each.outcomes, labels.of(each.target), each.target)
        for name, each in zip(names, measured, strict=True)
    ]


def _opener(channel: str | None) -> Callable[[str], Session]:
    """Opens a run under its own policy, beside which a cell is an override."""

    def opener(target: str) -> Session:
        from loopscope.settings import Choice
        from loopscope.sources import detect
        from loopscope.targets import open_session

        foreign = channel is not None and not target.startswith("sample:") and detect(target) is not None
        return open_session(target, Choice.of(project=Path.cwd()), channel if foreign else None)

    return opener


def _show_tuning(tuning: Tuning, look: _Look, opener: Callable[[str], Session]) -> None:
    from loopscope.cli.output import can_draw
    from loopscope.cli.terminal import why_no_screen
    from loopscope.cli.tune_output import tuning_csv, tuning_json, write_pictures

    write_pictures(look.svg, look.html, partial(_picture, tuning, look.theme), partial(_page, tuning, look.theme))
    if look.as_json:
        click.echo(tuning_json(tuning))
    elif look.as_csv:
        click.echo(tuning_csv(tuning), nl=False)
    elif look.on_stdout:
        return
    elif look.as_text or why_no_screen():
        from loopscope.views.tune import Map
        from loopscope.views.tune_lines import text

        _print(text(Map(tuning), _width()), ascii_only=look.ascii_only or not can_draw(sys.stdout.encoding))
    else:
        from loopscope_widgets.terminal.tuning import show

        show(tuning, opener, theme=look.theme, ascii=look.ascii_only, no_color=look.no_color)


def _show_comparison(comparison: Comparison, look: _Look) -> None:
    from loopscope.cli.output import can_draw
    from loopscope.cli.tune_output import comparison_csv, comparison_json, write_pictures

    if look.svg is not None:
        raise UsageError("tune: a comparison is a table; write it with --html, --csv or --json")
    write_pictures(None, look.html, str, partial(_matrix_page, comparison, look.theme))
    if look.as_json:
        click.echo(comparison_json(comparison))
    elif look.as_csv:
        click.echo(comparison_csv(comparison), nl=False)
    elif not look.on_stdout:
        from loopscope.views.tune_matrix import matrix

        _print(matrix(comparison, _width()), ascii_only=look.ascii_only or not can_draw(sys.stdout.encoding))


def _picture(tuning: Tuning, theme: str | None) -> str:
    from loopscope.views.web.tune_picture import picture

    return picture(tuning, theme=theme)


def _page(tuning: Tuning, theme: str | None) -> str:
    from loopscope.views.web.tune_page import page

    return page(tuning, theme=theme)


def _matrix_page(comparison: Comparison, theme: str | None) -> str:
    from loopscope.views.web.tune_page import matrix_page

    return matrix_page(comparison, theme=theme)


def _width() -> int:
    return shutil.get_terminal_size((_WIDTH, 40)).columns if sys.stdout.isatty() else _WIDTH


def _print(lines: Sequence[Line], *, ascii_only: bool) -> None:
    from loopscope.views.glyphs import line_in_ascii
    from loopscope.views.model import plain

    for line in lines:
        click.echo(plain(line_in_ascii(line) if ascii_only else line).rstrip())
