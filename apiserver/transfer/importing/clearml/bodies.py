"""Turns stored events of a ClearML server back into the lines of a request, and these into a batch."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Collection, Sequence
from typing import Any

import orjson

from apiserver.common.times import epoch_millis, now_ms
from apiserver.events.event_types import ADDRESSES
from apiserver.events.ingest import Ingest, ingest_lines
from apiserver.events.model import EventType, Owner
from apiserver.events.rejects import Contradiction
from apiserver.transfer.importing.clearml.elasticsearch import StoredEvent
from apiserver.transfer.importing.clearml.urls import Replacements


def batch_of(
    events: Sequence[StoredEvent], type: EventType, owners: Collection[Owner], urls: Replacements
) -> tuple[Ingest, dict[str, str]]:
    """The batch of the events, and the ids of events that cannot be taken, each with the reason.

    The owners are of one company. Events of other owners are not taken.
    """
    company = next(iter(owners)).company
    written = epoch_millis(orjson.loads(events[-1].line).get("@timestamp"))
    received = now_ms() if written is None else written
    bad: dict[str, str] = {}
    lines: dict[str, bytes] = {}
    for event in events:
        try:
            lines[event.id] = line_of(event.line, type, urls)
        except ValueError as error:
            bad[event.id] = str(error)
    batch = _ingested(lines.values(), company, received)
    if batch is None or batch.rejects.total or not batch.locked_allowed.keys() <= set(owners):
        bad |= _unfit(lines, company, set(owners))
        fit = [line for id, line in lines.items() if id not in bad]
        batch = _ingested(fit, company, received)
        assert batch is not None
    return batch, bad


def line_of(line: bytes, type: EventType, urls: Replacements) -> bytes:
    """The line as a client sent it, with addresses replaced. ValueError if it holds a plot that cannot be unpacked."""
    if type in ADDRESSES and (urls.pairs or b'"plot_data"' in line):
        event: dict[str, Any] = orjson.loads(line)
        if event.get("plot_data") and event.get("plot_str") is None:
            event["plot_str"] = _unpacked(event.pop("plot_data"))
        field = ADDRESSES[type]
        if isinstance(event.get(field), str):
            event[field] = urls.in_text(event[field])
        return orjson.dumps(event)
    return line


def _unpacked(plot_data: str) -> str:
    try:
        return zlib.decompress(base64.b64decode(plot_data)).decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError, TypeError) as error:
        raise ValueError(f"its plot_data cannot be unpacked ({error})") from None


def _ingested(lines: Collection[bytes], company: str, received: int) -> Ingest | None:
    """The batch of the lines; None if they contradict each other."""
    try:
        return ingest_lines(b"\n".join(lines), company=company, received=received, worker="", bounded=False)
    except Contradiction:
        return None


def _unfit(lines: dict[str, bytes], company: str, owners: set[Owner]) -> dict[str, str]:
    """The ids of events that cannot be taken, each with the reason; every event is tried by itself."""
    bad = {}
    for id, line in lines.items():
        found = _ingested([line], company, 0)
        if found is None or found.rejects.total:
            bad[id] = str(found.rejects) if found else "it contradicts itself"
        elif not found.locked_allowed.keys() <= owners:
            bad[id] = "it says that it is of a model but is of a task, or the other way round"
    return bad
