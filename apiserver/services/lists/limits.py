"""Limits on the sort fields, search words and conditions of a request."""

from __future__ import annotations

from apiserver.common.errors import validation_error

#: With 100,000 tasks, each may cost half a second.
MOST_SORTED, MOST_WORDS, MOST_CONDITIONS = 10, 16, 100


def at_most(count: int, items: list[str], field: str) -> list[str]:
    """The items of a request's field. Raises Refusal(INVALID) if there are more than `count`."""
    if len(items) > count:
        raise validation_error(f"at most {count} are allowed", field=field)
    return items
