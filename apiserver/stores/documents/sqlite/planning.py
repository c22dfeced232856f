"""Plans how conditions are tested: which of them first, and which side tables help.

For example, of "status is created, and hyperparams.Args.lr.value is 0.1", the first has a column, and is tested first.
The second may use the side table of the values at its path. A test of the first number at some paths may use those of
all these paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.stores.documents.dialect.filters import Condition, Field, Not, OfFirst, fields_of, paths_of
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


def sides_of_first(paths: Sequence[Path]) -> set[Side]:
    """The side tables that tell the first number at some paths; none if it would take too many."""
    return {Values(path) for path in paths} if len(paths) <= _MOST_SIDES else set()


def sides_for(table: Table, condition: Condition) -> tuple[set[Side], list[Condition]]:
    """The side tables that help with a condition, and the parts of the condition that need none."""
    sides: set[Side] = set()
    others: list[Condition] = []
    for item in sorted(flattened(condition), key=lambda item: cost(table, item)):
        needed = _sides_for_one(table, item)
        if not needed:
            others.append(item)
        elif len(sides | needed) <= _MOST_SIDES:
            sides |= needed
    return sides, others


def _sides_for_one(table: Table, condition: Condition) -> set[Side]:
    path = path_inside(table, condition)
    if path is not None:
        return {Values(path)}
    first = [sides_of_first(field.paths) for field in fields_of(condition) if isinstance(field, OfFirst)]
    texts = texts_of(condition)
    return set().union(*first) if first else set() if texts is None else {texts}


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
