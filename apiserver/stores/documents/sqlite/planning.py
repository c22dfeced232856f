"""Plans how conditions are tested: which of them first, and which side tables help.

For example, of "status is created, and hyperparams.Args.lr.value is 0.1", the first has a column, and is tested first.
The second may use the side table of the values at its path.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.stores.documents.dialect.filters import Condition, Field, Not, OfFirst, paths_of
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.dialect.patterns import literals_of
from apiserver.stores.documents.query import AllOf, AnyOf, Matches
from apiserver.stores.documents.sqlite.side_tables import Side, Texts, Values
from apiserver.stores.documents.sqlite.table import Table

#: Side tables that one statement may use, because each has to be filled the first time.
_MOST_SIDES = 4


def path_inside(table: Table, condition: Condition) -> Path | None:
    """The path that a condition tests, if there is only one and it leads into JSON other than a short list."""
    found = set(paths_of(condition))
    path = found.pop() if len(found) == 1 else None
    return None if path is None or has_key(table, path) or path[0] in table.lists else path


def texts_of(condition: Condition) -> Texts | None:
    """The side table of texts that helps to find where a pattern may match; None if it would not help."""
    return Texts(tuple(sorted(set(paths_of(condition))))) if literals_in(condition) else None


def sides_for(table: Table, condition: Condition) -> tuple[set[Side], list[Condition]]:
    """The side tables that help with a condition, and the parts of the condition that need none."""
    sides: set[Side] = set()
    others: list[Condition] = []
    for item in sorted(flattened(condition), key=lambda item: cost(table, item)):
        path = path_inside(table, item)
        side = texts_of(item) if path is None else Values(path)
        if side is None:
            others.append(item)
        elif len(sides) < _MOST_SIDES:
            sides.add(side)
    return sides, others


def cost(table: Table, condition: Condition) -> int:
    """How long a test of a condition takes, from 0 to 3. The cheapest conditions are tested first."""
    if isinstance(condition, OfFirst):
        return max(cost(table, Field(path, condition.test)) for path in condition.paths)
    if isinstance(condition, Field):
        root = condition.path[0]
        known = 0 if has_key(table, condition.path) else 1 if root in table.lists else 2
        return 3 if root in table.large else max(known, 2 * isinstance(condition.test, Matches))
    inner = (condition.condition,) if isinstance(condition, Not) else condition.parts
    return max((cost(table, item) for item in inner), default=0)


def has_key(table: Table, path: Path) -> bool:
    """Whether a column has what is at the path."""
    return path == ("id",) or path in table.keys


def flattened(condition: Condition) -> Iterator[Condition]:
    """The parts of a condition that all must hold: (a AND (b AND c)) gives a, b, c."""
    if isinstance(condition, AllOf):
        for inner in condition.parts:
            yield from flattened(inner)
    else:
        yield condition


def literals_in(condition: Condition) -> tuple[str, ...]:
    """The texts that every match of a condition's pattern contains; none if the condition is not on one pattern."""
    fields = condition.parts if isinstance(condition, AnyOf) else (condition,)
    patterns = {
        item.test.pattern if isinstance(item, Field) and isinstance(item.test, Matches) else None for item in fields
    }
    (pattern, *others) = patterns or {None}
    return literals_of(pattern) if pattern is not None and not others else ()
