"""Detect on a page: the counts of each layer with their bars, the warnings, and what the scope has spent."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from loopscope.engine.scope import WarningRecord
from loopscope.views import detect
from loopscope.views.topbar import scope_name
from loopscope.views.web import meters
from loopscope.views.web.markup import Markup, joined, tag
from loopscope.views.web.pieces import Told, cell, facts, panel, reference, sign, table
from loopscope.views.words import amount, money, span_of_time, times

__all__ = ["counts"]


def counts(told: Told, found: detect.Data) -> Markup:
    """The panel of these values."""
    tables = [_section(section) for section in meters.sections(found)]
    note = f"{scope_name(*found.view.key)} after #{found.row.n:,}"
    return panel("detect", "Detect", *tables, *_warnings(told, found), _spent(found), note=note)


def _section(section: meters.Section) -> Markup:
    rows = [_meter(meter) for meter in section.meters]
    if section.more:
        rows.append(tag("tr", tag("td", section.more, colspan=5, class_="dim")))
    about = [tag("span", f" {section.about}", class_="note")] if section.about else []
    heads: list[tuple[str, str]] = [
        (joined([section.layer, *about]), ""),
        ("count", "n"),
        ("warn", "n"),
        ("hard", "n"),
        ("next", "next"),
    ]
    return table(f"{section.layer} {section.about}", heads, rows, "meters")


def _meter(meter: meters.Meter) -> Markup:
    name = [tag("b", meter.letter, class_="letter"), " "] if meter.letter else []
    drawn = meters.draw(meter, 0, 3, 200, 8)
    bar = tag("svg", drawn, class_="bar", viewBox="0 0 200 14", preserveAspectRatio="none", aria_hidden="true")
    coming = [tag("span", text, class_=f"s-{style}") for text, style in meter.coming]
    limit = [cell("none" if value is None else meter.tell(value), look="n") for value in (meter.warn, meter.hard)]
    return tag(
        "tr",
        tag("th", *name, tag("code", meter.label), bar, scope="row"),
        cell(meter.tell(meter.value), look=f"n value {meter.state}"),
        *limit,
        cell(*coming, look="next"),
        class_="moved" if meter.moved else None,
    )


def _warnings(told: Told, found: detect.Data) -> Iterator[Markup]:
    letters = told.session.letters(found.row.scope)
    rows: list[Markup] = []
    for record in found.warnings:
        subject = record.subject if record.layer == "tool_frequency" else letters(record.subject)
        count = f" {record.count:g}/{record.threshold:g} "
        rows.append(
            tag(
                "tr",
                tag("th", sign("warn"), " ", tag("code", subject), count, record.layer, scope="row"),
                cell(reference(record.batch, told.rows)),
                cell(*_delivery(record, told.rows)),
                cell(times(record.ignored) if record.ignored else "not so far"),
            )
        )
    if rows:
        heads = [("warning", ""), ("queued", ""), ("delivered", ""), ("ignored", "")]
        yield table("Warnings", heads, rows)


def _delivery(record: WarningRecord, rows: Collection[int]) -> list[Markup]:
    if record.state == "dropped":
        return [joined(["dropped before a model call"])]
    if record.state == "queued":
        return [joined(["waits for the next model call"])]
    assumed = [joined([" (assumed)"])] if record.assumed else []
    if record.before is None:
        return [joined(["yes"]), *assumed]
    return [joined(["before "]), reference(record.before, rows), *assumed]


def _spent(found: detect.Data) -> Markup:
    """What the scope has used up; what the recording does not tell is left out."""
    spent = found.spent
    tokens = spent.input_tokens + spent.output_tokens
    values = [
        ("batches", f"{spent.batches:,}"),
        ("calls", f"{spent.tool_calls:,}"),
        ("model calls", f"{spent.model_calls:,}"),
        *([("tokens", amount(tokens))] if tokens else []),
        *([("cost", money(spent.cost_usd))] if spent.cost_usd else []),
        *([("time", span_of_time(spent.seconds))] if spent.started is not None else []),
    ]
    return facts(values)
