"""Plans how a condition is tested: what SQLite tests by itself, and what it calls Python for.

A plan is a tree of the parts of a condition. Each part says where its values are: in a column of their own, in the JSON
of a short list, in side tables, or only in the JSON of documents. For example, `status` is "created", `tags` has "a",
and `hyperparams.Args.lr.value`, which has the side table "side:3", is 0.1:

    Every([InColumn(status is "created"), InList(tags has "a"), InValues(hyperparams.Args.lr.value is 0.1, "side:3")])

A plan is made of the condition alone. `looks.py` then looks into side tables, and notes in the plan which rows it finds
there; `rendering.py` makes SQL of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeGuard

from apiserver.stores.documents.dialect.filters import (
    Condition,
    Field,
    Not,
    OfFirst,
    accepts,
    fields_of,
    paths_of,
)
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.query import AllOf, AnyOf, Comparison, Equal
from apiserver.stores.documents.sqlite.planning import cost, flattened, has_key, literals_in, path_inside, texts_of
from apiserver.stores.documents.sqlite.side_tables import Side, Values, in_one_case
from apiserver.stores.documents.sqlite.table import Table


class Way(Enum):
    """How SQLite finds the rows for which a side table has what a condition needs, if they are many."""

    TESTED = "each row is looked up in the side table"
    SEARCHED = "the rows are searched in the side table"


Rows: TypeAlias = "tuple[int, ...] | Way"
"""The numbers of the rows, if they are few, or how SQLite finds them."""


class InColumn(NamedTuple):
    """A test of a field that has a column. `never_empty`: other conditions keep the field from being an empty text."""

    field: Field
    never_empty: bool


class InList(NamedTuple):
    """A test of a short list."""

    field: Field


class InJson(NamedTuple):
    """A condition that Python tests in the JSON of one column."""

    condition: Condition


class InNumbers(NamedTuple):
    """A test of the first number at some paths. The side tables have the values at each path."""

    condition: OfFirst
    sides: Sequence[str]


class InValues(NamedTuple):
    """A condition on the single path whose values a side table has."""

    condition: Condition
    side: str
    rows: Rows = Way.TESTED


class InTexts(NamedTuple):
    """A part that is met only if the texts of a side table have all that a pattern must find.

    For example, the pattern "lo.s_a" needs "lo" and "s_a", so it cannot match a document without these.
    """

    part: Plan
    side: str
    sought: Sequence[str]
    in_columns: bool
    """Whether the texts are those of columns."""
    narrowing: Sequence[Plan]
    """Parts on columns that hold, too. If they leave few rows, each of these is tested."""
    rows: Rows = Way.TESTED


class Every(NamedTuple):
    """All parts are met."""

    parts: Sequence[Plan]


class Some(NamedTuple):
    """At least one part is met."""

    parts: Sequence[Plan]


class Unmet(NamedTuple):
    """The part is not met."""

    part: Plan


Plan: TypeAlias = "InColumn | InList | InJson | InNumbers | InValues | InTexts | Every | Some | Unmet"


class _Besides(NamedTuple):
    """What holds besides a part: the conditions of all `Every` around it."""

    narrowing: tuple[Plan, ...] = ()
    """Parts that test only columns."""
    never_empty: frozenset[Path] = frozenset()
    """Fields that are not empty texts."""


class Planner:
    """Plans conditions on the documents of a table. `sides`: the side tables that may be used, with their names."""

    def __init__(self, table: Table, sides: Mapping[Side, str]) -> None:
        self._table = table
        self._sides = sides

    def plan(self, condition: Condition) -> Plan:
        return self._every(AllOf([condition]), _Besides())

    def _part(self, condition: Condition, besides: _Besides) -> Plan:
        if self._has_column(condition):
            column = InColumn(condition, condition.path in besides.never_empty)
            return self._with_texts(condition, column, besides)
        if (side := self._side_of(condition)) is not None:
            return InValues(condition, side)
        if isinstance(condition, AllOf):
            return self._every(condition, besides)
        if isinstance(condition, AnyOf):
            return self._some(condition, besides)
        if isinstance(condition, Not):
            return Unmet(self._part(condition.condition, besides))
        if isinstance(condition, OfFirst):
            sides = sides_of_values(self._sides, condition.paths)
            return InNumbers(condition, sides) if sides else InJson(condition)
        return InList(condition) if condition.path[0] in self._table.lists else InJson(condition)

    def _every(self, condition: AllOf[Condition], besides: _Besides) -> Every:
        """The plan of conditions that all must hold, the cheapest first.

        Conditions that use the same side table become one, and so do those that Python tests in the same JSON.
        """
        costs = [(cost(self._table, item), isinstance(item, Not), item) for item in flattened(condition)]
        costs.sort(key=itemgetter(0, 1))
        filled = {item.path for *_, item in costs if self._keeps_from_empty(item)}
        narrowing, never_empty = besides.narrowing, besides.never_empty | filled
        in_values: dict[str, list[Condition]] = {}
        in_json: dict[str, list[Condition]] = {}
        parts: list[Plan] = []
        for item_cost, _, item in costs:
            if (side := self._side_of(item)) is not None:
                in_values.setdefault(side, []).append(item)
            elif (root := self._root_in_json(item)) is not None:
                in_json.setdefault(root, []).append(item)
            else:
                parts.append(self._part(item, _Besides(narrowing, never_empty)))
                narrowing = (*narrowing, parts[-1]) if item_cost == 0 else narrowing
        parts += [InValues(AllOf(items), side) for side, items in in_values.items()]
        return Every([*parts, *(InJson(AllOf(items)) for items in in_json.values())])

    def _some(self, condition: AnyOf[Condition], besides: _Besides) -> Plan:
        """The plan of conditions of which one must hold. One pattern at several paths may use a side table of texts."""
        in_json: dict[str, list[Condition]] = {}
        parts: list[Plan] = []
        for item in condition.parts:
            if (
                isinstance(item, Field)
                and not has_key(self._table, item.path)
                and item.path[0] not in self._table.apart
            ):
                in_json.setdefault("", []).append(item)
            elif (root := self._root_in_json(item)) is not None:
                in_json.setdefault(root, []).append(item)
            else:
                parts.append(self._part(item, besides))
        some = Some([*parts, *(InJson(AnyOf(items)) for items in in_json.values())])
        return self._with_texts(condition, some, besides)

    def _with_texts(self, condition: Field | AnyOf[Condition], part: Plan, besides: _Besides) -> Plan:
        """The part, or `InTexts` of it if the condition is on a pattern whose texts a side table has."""
        texts = texts_of(condition) if self._sides else None
        if texts is None or (side := self._sides.get(texts)) is None:
            return part
        sought = [in_one_case(text) for text in literals_in(condition)]
        in_columns = all(has_key(self._table, path) for path in texts.paths)
        return InTexts(part, side, sought, in_columns, besides.narrowing)

    def _has_column(self, condition: Condition) -> TypeGuard[Field]:
        """Whether a condition is on one field that has a column."""
        return isinstance(condition, Field) and has_key(self._table, condition.path)

    def _keeps_from_empty(self, condition: Condition) -> TypeGuard[Field]:
        """Whether a condition keeps a field by which an index sorts from being an empty text."""
        if not isinstance(condition, Field) or condition.path not in self._table.sorted:
            return False
        return isinstance(condition.test, Comparison) and not accepts(condition.test)("")

    def _side_of(self, condition: Condition) -> str | None:
        """The side table of the values that a condition tests, if the condition is on a single path."""
        path = path_inside(self._table, condition) if self._sides else None
        return None if path is None else self._sides.get(Values(path))

    def _root_in_json(self, condition: Condition) -> str | None:
        """The field in whose JSON Python tests the whole condition; "" for `doc`, None if SQLite tests a part of it.

        Several such conditions are tested together, so that the JSON is parsed once.
        """
        if self._has_column(condition):
            return None
        roots = {path[0] if path[0] in self._table.large else "" for path in paths_of(condition)}
        in_texts = self._sides and texts_of(condition) in self._sides
        if len(roots) != 1 or in_texts or not all(map(self._only_python_tests, fields_of(condition))):
            return None
        return roots.pop()

    def _only_python_tests(self, field: Field | OfFirst) -> bool:
        if isinstance(field, OfFirst):
            return not sides_of_values(self._sides, field.paths)
        looks_for_text = isinstance(field.test, Equal) and isinstance(field.test.value, str)
        in_column = has_key(self._table, field.path) or field.path[0] in self._table.lists
        return not (looks_for_text or in_column or Values(field.path) in self._sides)


def sides_of_values(sides: Mapping[Side, str], paths: Sequence[Path]) -> list[str]:
    """The side tables of the values at some paths, in order; none unless there are all of them."""
    names = [sides[side] for side in map(Values, paths) if side in sides]
    return names if len(names) == len(paths) else []
