"""Tables in Markdown."""

from __future__ import annotations


def row(*cells: object) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(*titles: str) -> list[str]:
    """The two lines that a table begins with."""
    return [row(*titles), row(*("---" for _ in titles))]
