"""A sweep, or policies side by side, as one HTML page: every slice, the front, the advice, and each run under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopscope import __version__
from loopscope.recording.inert import inert
from loopscope.session.grid import Values
from loopscope.session.summary import Run
from loopscope.session.tune import Comparison, Tuning
from loopscope.views.tune import Map, Metric, Slice, verdict, wrong
from loopscope.views.tune_lines import slice_name, title
from loopscope.views.tune_matrix import totals
from loopscope.views.web import look, tune_plot
from loopscope.views.web.document import document
from loopscope.views.web.markup import Markup, tag
from loopscope.views.web.pieces import cell, panel, table
from loopscope.views.words import plural

__all__ = ["matrix_page", "page"]

_MOST_SLICES = 60
_LONGEST = 1000
_TABLES = """
.heat{width:auto;border-collapse:separate;border-spacing:2px;margin:0 1.5rem 1rem 0;font-variant-numeric:tabular-nums}
.heat td{text-align:center;min-width:2.4rem;padding:.25rem .3rem;border-radius:3px}
.heat th{color:var(--dim);text-align:right;padding:.25rem .4rem}
.heat thead th{text-align:center}
.heat caption{text-align:left;color:var(--dim);padding:.2rem 0}
.heat tbody tr{border:0}
.heat .no{color:var(--dim)}
.maps{display:flex;flex-wrap:wrap}
.plane{display:block;max-width:100%;height:auto}
td.bad,span.bad{color:var(--warn);font-weight:600}
.both{display:grid;grid-template-columns:minmax(0,1fr);gap:1rem}
@media (min-width:60rem){.both{grid-template-columns:auto minmax(0,1fr)}}
.wide{overflow-x:auto}
.wide td{white-space:nowrap}
"""


def page(tuning: Tuning, *, theme: str | None = None) -> str:
    """The page of a sweep, as a whole document.

    Args:
        tuning: the sweep.
        theme: `dark` or `light`; None follows the reader.
    """
    sheet = Map(tuning)
    told = title(tuning)
    body = tag(
        "body",
        tag("header", tag("h1", "loopscope tune"), tag("p", told)),
        tag("main", _advice(sheet), _front(sheet), *_maps(sheet), _runs(sheet)),
        _footer(),
        class_="loopscope",
    )
    return document(f"loopscope tune: {told}", _style(theme), body, theme)


def matrix_page(comparison: Comparison, *, theme: str | None = None) -> str:
    """The page of policies side by side, as a whole document."""
    told = f"{plural(len(comparison.runs), 'recording')} under {plural(len(comparison.names), 'policy', 'policies')}"
    rows = [_matrix_row(run) for run in comparison.runs]
    rows += [
        tag("tr", tag("th", name, scope="row", class_="dim"), cell(""), *(cell(value, look="n") for value in values))
        for name, values in totals(comparison)
    ]
    heads = [("run", ""), ("label", ""), *((inert(name), "n") for name in comparison.names)]
    note = "first warning / first stop, as batch numbers; what contradicts the label is marked wrong"
    matrix = tag("div", table("Verdicts", heads, rows), class_="wide")
    body = tag(
        "body",
        tag("header", tag("h1", "loopscope tune"), tag("p", told)),
        tag("main", panel("matrix", "Verdicts", matrix, note=note)),
        _footer(),
        class_="loopscope",
    )
    return document(f"loopscope tune: {told}", _style(theme), body, theme)


def _style(theme: str | None) -> str:
    return look.page_style(theme, tune_plot.style) + _TABLES


def _footer() -> Markup:
    return tag("footer", f"loopscope {__version__} · ", tag("code", "loopscope tune"), " on a terminal opens each run")


def _advice(sheet: Map) -> Markup:
    reasons = [tag("li", inert(reason, _LONGEST)) for reason in sheet.tuning.advice.reasons]
    best = sheet.tuning.advice.best
    sets = [] if best is None else [tag("p", "Try it: ", tag("code", _whatif(sheet, best)))]
    return panel("advice", "What to take", tag("ol", *reasons, class_="why"), *sets)


def _whatif(sheet: Map, values: Values) -> str:
    sets = " ".join(f"--set {setting}" for setting in sheet.setting(values).split(" "))
    return f"loopscope whatif RUN {sets}"


def _front(sheet: Map) -> Markup:
    wide, high = tune_plot.PLANE
    drawn = tag(
        "svg",
        tune_plot.plane(sheet, 52, 30),
        class_="plane",
        viewBox=f"0 0 {wide + 70} {high + 74}",
        width=wide + 70,
        height=high + 74,
        role="img",
        aria_label=tune_plot.describe(sheet),
    )
    tuning = sheet.tuning
    heads = [("", ""), *((inert(name), "n") for name in tuning.grid.settings)]
    heads += [("loops stopped", "n"), ("healthy stopped", "n")] if sheet.labelled else [("runs stopped", "n")]
    heads += [("first stop (median)", "n"), ("batches saved", "n"), ("tokens saved", "n")]
    rows = [tag("tr", *_front_row(sheet, place)) for place in range(len(tuning.front))]
    cells = tag("div", table("What no other setting beats", heads, rows), class_="wide")
    return panel("front", "What no other setting beats", tag("div", drawn, cells, class_="both"))


def _front_row(sheet: Map, place: int) -> Iterator[Markup]:
    tuning, found = sheet.tuning, sheet.tuning.front[place]
    yield tag("th", {"●": "advised", "○": "now"}.get(sheet.sign(found.values), ""), scope="row", class_="dim")
    for value in found.values:
        yield cell(f"{value}", look="n")
    if sheet.labelled:
        yield cell(f"{tuning.loops - found.loops_not_stopped} of {tuning.loops}", look="n")
        yield cell(f"{found.healthy_stopped} of {tuning.healthy}", look="n")
    else:
        yield cell(f"{found.stopped} of {len(tuning.runs)}", look="n")
    yield cell("-" if found.median_first_stop is None else f"#{found.median_first_stop:g}", look="n")
    yield cell(f"{found.saved_batches:,}", look="n")
    yield cell(f"{found.saved_tokens:,}", look="n")


def _maps(sheet: Map) -> Iterator[Markup]:
    """Each thing that is counted, slice by slice."""
    shown: Sequence[Slice] = sheet.slices
    if len(shown) > _MOST_SLICES:
        shown = (sheet.slices[sheet.slice_of(sheet.start)],)
    hidden = f"one of {len(sheet.slices):,} slices" if len(shown) < len(sheet.slices) else ""
    for metric in sheet.metrics[:3]:
        maps = tag("div", *(_map(sheet, part, metric) for part in shown), class_="maps")
        yield panel(metric.name, metric.title.capitalize(), maps, note=hidden)


def _map(sheet: Map, part: Slice, metric: Metric) -> Markup:
    names = [inert(name) for name in sheet.tuning.grid.settings]
    corner = f"{names[1]} ↓ {names[0]} →" if len(names) > 1 else f"{names[0]} →"
    head = tag("tr", tag("th", corner), *(tag("th", f"{value}", scope="col") for value in part.columns))
    rows = [
        tag(
            "tr",
            tag("th", f"{value}" if len(names) > 1 else "", scope="row"),
            *(_cell(sheet, metric, sheet.values(part, column, row)) for column in range(len(part.columns))),
        )
        for row, value in enumerate(part.rows)
    ]
    caption = tag("caption", slice_name(sheet, part))
    return tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="heat")


def _cell(sheet: Map, metric: Metric, values: Values) -> Markup:
    found = sheet.cell(values)
    if found is None:
        return tag("td", "·", class_="no", title="no valid policy")
    text = f"{sheet.text(metric, found)} {sheet.sign(values)}".rstrip()
    return tag("td", text, class_=tune_plot.shade_name(sheet, metric, values), title=sheet.setting(values))


def _runs(sheet: Map) -> Markup:
    """Every run under the advised cell and under today's limits."""
    wanted = [("limits now", sheet.now), ("advised", sheet.tuning.advice.best)]
    columns = [(name, sheet.index[values]) for name, values in wanted if values in sheet.index]
    columns = columns or [("shown", sheet.index[sheet.start])]
    heads = [("run", ""), ("label", ""), ("batches", "n"), *((name, "n") for name, _ in columns)]
    rows = [
        tag(
            "tr",
            tag("th", tag("code", run.name), scope="row"),
            cell(run.label or ""),
            cell(f"{run.batches:,}", look="n"),
            *(_verdict(run, place) for _, place in columns),
        )
        for run in sheet.tuning.runs
    ]
    note = "first warning / first stop, as batch numbers"
    return panel("runs", "Every run", table("Every run", heads, rows), note=note)


def _verdict(run: Run, place: int) -> Markup:
    outcome = run.outcomes[place]
    if wrong(run, outcome):
        return cell(verdict(outcome), " wrong", look="n bad")
    return cell(verdict(outcome), look="n")


def _matrix_row(run: Run) -> Markup:
    cells = [_verdict(run, place) for place in range(len(run.outcomes))]
    return tag("tr", tag("th", tag("code", run.name), scope="row"), cell(run.label or ""), *cells)
