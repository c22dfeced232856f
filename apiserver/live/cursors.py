"""Cursors as readers get them: signed text that says how far a reader has been told.

A cursor is a place in the event store's order (`events/changes.py`), signed for a company. A live stream adds a mark of
the statuses that it told, after a dot: documents have no order, so a reader who comes back is told all statuses if
their mark differs now. Wherever a cursor is taken, it may be of either kind.
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.events.changes import Cursor
from apiserver.reading.scroll import InvalidScroll, Scrolls

_BETWEEN = "."


class Place(NamedTuple):
    """How far a reader has been told."""

    cursor: Cursor
    statuses: int | None = None
    """The mark of the statuses that were told; None if none were."""


def text_of(scrolls: Scrolls, company: str, cursor: Cursor) -> str:
    """The text of a cursor, which this company can use."""
    return scrolls.encode(_signed_for(company), cursor)


def with_statuses(text: str, mark: int) -> str:
    """The cursor's text, with a mark of the statuses that were told."""
    return f"{text}{_BETWEEN}{mark:x}"


def place_of(scrolls: Scrolls, company: str, text: str) -> Place:
    """The place that a text names. InvalidScroll if this company was not given it."""
    cursor, between, mark = text.partition(_BETWEEN)
    try:
        return Place(scrolls.decode(_signed_for(company), cursor), int(mark, 16) if between else None)
    except ValueError:
        raise InvalidScroll(text) from None


def _signed_for(company: str) -> tuple[str, str]:
    return ("get_changes", company)
