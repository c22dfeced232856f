"""Prints what the doctor found, for people and for programs.

Names come from users. Whatever is in them, a terminal gets only characters that it shows: others are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from apiserver.common.escaping import shown
from apiserver.common.sizes import counted, shown_bytes
from apiserver.events.model import EventType
from apiserver.operating.doctor.examination import Examined
from apiserver.operating.doctor.kept import Amount
from apiserver.stores.events.usage import TYPES

#: Characters of a name that a table shows.
_LONGEST = 60


def lines_of(examined: Examined) -> Iterator[str]:
    """The examination, for people."""
    for store, parts in examined.held.items():
        yield f"{store}:"
        for part in parts:
            amount = counted(part.number, part.what) if part.number is not None else ""
            size = shown_bytes(part.bytes) if part.bytes is not None else ""
            yield f"  {shown(part.name, longest=_LONGEST):<28} {size:>12} {amount:>24}".rstrip()
    if examined.total is not None:
        yield from _of_usage(examined, examined.total)
    if examined.is_checked:
        yield ""
        yield from (shown(finding.line) for finding in examined.findings)
        for kind, number in examined.more.items():
            yield f"and {counted(number, 'more findings')} of the kind {kind}"
        count = len(examined.findings) + sum(examined.more.values())
        yield "all well" if not count else counted(count, "findings")
    yield from (f"note: {shown(note)}" for note in examined.notes)


def _of_usage(examined: Examined, total: Amount) -> Iterator[str]:
    yield ""
    yield "by type:"
    for type, bytes, events, series in zip(TYPES, examined.bytes_by_type, total.events, total.series, strict=True):
        what = {"SCALAR": "points", "LOG": "lines"}.get(type.name, "samples")
        of_series = "" if type is EventType.LOG else counted(series, "series")
        yield f"  {type.plural:<28} {shown_bytes(bytes):>12} {counted(events, what):>24} {of_series:>18}".rstrip()
    yield f"  {'files':<28} {shown_bytes(total.files):>12}"
    yield f"  {'all':<28} {shown_bytes(total.bytes):>12}"
    for title, amounts in (("projects", examined.projects), ("tasks", examined.owners)):
        if amounts:
            yield ""
            yield from _table(title, amounts)


def _table(title: str, amounts: Sequence[Amount]) -> Iterator[str]:
    yield f"largest {title}:"
    yield f"  {'bytes':>12} {'files':>12} {'points':>16} {'lines':>14} {'samples':>12} {'series':>10}  name"
    for amount in amounts:
        points, lines, samples = numbers_of(amount)
        name = amount.name or ("no project" if amount.kind == "project" and not amount.id else "no name")
        which = f" ({amount.kind} {shown(amount.id, longest=_LONGEST)})" if amount.id else ""
        yield (
            f"  {shown_bytes(amount.bytes):>12} {shown_bytes(amount.files):>12}"
            f" {points:>16,} {lines:>14,} {samples:>12,} {sum(amount.series):>10,}"
            f"  {shown(name, longest=_LONGEST)}{which}{_parts(amount)}"
        )


def _parts(one: Amount) -> str:
    parts = ", ".join(counted(number, name) for name, number in one.parts.items() if number)
    return f": {parts}" if parts else ""


def numbers_of(amount: Amount) -> tuple[int, int, int]:
    """Points, log lines and samples."""
    by_name = {type.name: number for type, number in zip(TYPES, amount.events, strict=True)}
    points, lines = by_name.pop("SCALAR"), by_name.pop("LOG")
    return points, lines, sum(by_name.values())


def report_of(examined: Examined) -> dict[str, Any]:
    """The examination, for programs."""
    total = examined.total
    return {
        "well": examined.well,
        "checked": examined.is_checked,
        "stores": {store: [part._asdict() for part in parts] for store, parts in examined.held.items()},
        "total": None if total is None else _amount(total),
        "types": {} if total is None else _by_type(examined.bytes_by_type, total),
        "projects": [_amount(one) for one in examined.projects],
        "tasks": [_amount(one) for one in examined.owners],
        "findings": [finding._asdict() for finding in examined.findings],
        "more_findings": examined.more,
        "notes": examined.notes,
    }


def _by_type(bytes_by_type: Sequence[int], total: Amount) -> dict[str, Any]:
    numbers = zip(TYPES, bytes_by_type, total.events, total.series, strict=True)
    return {
        type.plural: {"bytes": bytes, "events": events, "series": series} for type, bytes, events, series in numbers
    }


def _amount(amount: Amount) -> dict[str, Any]:
    points, lines, samples = numbers_of(amount)
    about = {"id": amount.id, "name": amount.name, "kind": amount.kind, "company": amount.company}
    amounts = {"bytes": amount.bytes, "file_bytes": amount.files, "points": points, "lines": lines, "samples": samples}
    return {**about, **amounts, "series": sum(amount.series), "parts": dict(amount.parts)}
