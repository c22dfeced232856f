"""Filters by lists of values: `["a", "-b"]`, `["__$all", "a", "__$not", "b"]`, `{any: {include, exclude}, all: …}`.

A list without operators wants documents that have at least one of its values, and none of those after `-` or `__$not`.
`__$or` (or `__$any`) and `__$and` (or `__$all`) begin a group, which ends at the next operator. `__$nop` begins a group
without an operator. The first operator also says how the groups combine, unless anything else comes before it: then
all groups must hold. A null, wherever it is in a list, adds the documents without any value to those that are found.

    ["a", "b", "-c"]                    a or b, and not c
    ["a", "-b", null]                   a and not b, or no value
    ["__$all", "a", "b"]                both a and b
    ["__$any", "a", "__$all", "b", "c"] a, or both b and c
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from apiserver.common.errors import validation_error
from apiserver.services.documents.keys import escape_path
from apiserver.stores.documents.query import AllOf, AnyOf, Filter, HasAll, In, NoneOf, NotIn, Unequal, combined

_Combined: TypeAlias = type[AllOf[Filter]] | type[AnyOf[Filter]]

_OPERATORS: dict[str, _Combined] = {"__$all": AllOf, "__$and": AllOf, "__$any": AnyOf, "__$or": AnyOf}


@dataclass(slots=True)
class _Group:
    """The values up to the next operator, and the operator before them (None: no operator)."""

    operator: _Combined | None = None
    included: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)


def list_filter(path: str, value: Any) -> Filter:
    """The condition on the field at `path` that `value` sets: a list of texts and operators, or one text."""
    values = value if isinstance(value, list) else [value]
    first, groups = _parse(path, values)
    of_values = combined(first, [_condition(path, group) for group in groups])
    return combined(AnyOf, [of_values, _without_value(path)]) if None in values else of_values


def only_values(value: Any) -> list[str] | None:
    """The values in `value` if it is a plain list of values (or one value); None if it has operators or exclusions."""
    values = value if isinstance(value, list) else [value]
    plain = [text for text in values if isinstance(text, str) and text and not text.startswith(("-", "__$"))]
    return plain if plain and len(plain) == len(values) else None


def include_exclude_filter(filters: Mapping[str, Any], fields: tuple[str, ...]) -> Filter:
    """The condition of a `filters` object, which has `{any: {include, exclude}, all: {include, exclude}, op}` by field.

    Fields that are not among `fields` are ignored.
    """
    conditions = [
        _object_condition(name, value)
        for name, value in filters.items()
        if value and (name in fields or any(name.startswith(f[:-1]) for f in fields if f.endswith(".*")))
    ]
    present = [condition for condition in conditions if condition]
    return AllOf(present) if present else {}


def _parse(path: str, values: list[Any]) -> tuple[_Combined, list[_Group]]:
    """The operator that combines the groups, and the groups."""
    first: _Combined | None = None
    groups = [_Group()]
    negated = False
    for value in values:
        if value is not None and not isinstance(value, str):
            raise validation_error(f"expected text, not {type(value).__name__}", field=path)
        if negated and (value is None or value.startswith("__$")):
            raise validation_error("'__$not' needs a value after it", field=path)
        if value == "__$not":
            negated = True
            continue
        if value is None:
            first = first or AllOf
        elif value == "__$nop":
            first = first or AllOf
            groups.append(_Group())
        elif value.startswith("__$"):
            operator = _OPERATORS.get(value)
            if operator is None:
                raise validation_error(f"unknown operator {value!r}", field=path)
            first = first or operator
            groups.append(_Group(operator))
        else:
            first = first or AllOf
            _add(groups[-1], value, negated, path)
        negated = False
    if negated:
        raise validation_error("'__$not' needs a value after it", field=path)
    return first or AllOf, groups


def _add(group: _Group, value: str, negated: bool, path: str) -> None:
    if negated:
        group.excluded.append(value)
    elif group.operator is None and value.startswith("-"):
        if value == "-":
            raise validation_error("'-' needs a value after it", field=path)
        group.excluded.append(value[1:])
    else:
        group.included.append(value)


def _condition(path: str, group: _Group) -> Filter:
    terms: list[Filter] = []
    if group.operator is AllOf:
        terms += [{path: HasAll(group.included)}] if group.included else []
    elif group.included:
        terms.append({path: In(group.included)} if len(group.included) > 1 else {path: group.included[0]})
    if group.operator is AnyOf:
        terms += [{path: Unequal(value)} for value in group.excluded]
    elif group.excluded:
        terms.append({path: NotIn(group.excluded)})
    return combined(group.operator or AllOf, terms)


def _object_condition(name: str, value: Any) -> Filter:
    path = escape_path(name)
    known = isinstance(value, dict) and value.keys() <= {"any", "all", "op"}
    if not known or (value.get("op") or "and") not in ("and", "or"):
        raise validation_error("expected {any, all, op: 'and' or 'or'}", field=f"filters.{name}")
    parts = [part for part in ("any", "all") if value.get(part)]
    conditions = [_part_condition(path, part, value[part], f"filters.{name}.{part}") for part in parts]
    return combined(AnyOf if value.get("op") == "or" else AllOf, conditions)


def _part_condition(path: str, part: str, values: Any, source: str) -> Filter:
    """`any`: an included value is there, or an excluded one is not. `all`: all included ones are there, no excluded."""
    include, exclude = _part_values(values, "include", source), _part_values(values, "exclude", source)
    terms: list[Filter] = [_has(path, value) for value in include] + [NoneOf([_has(path, v)]) for v in exclude]
    if not terms:
        return {}
    return AnyOf(terms) if part == "any" else AllOf(terms)


def _part_values(values: Any, key: str, source: str) -> list[Any]:
    known = isinstance(values, dict) and values.keys() <= {"include", "exclude"}
    found = values.get(key) or [] if known else None
    if not isinstance(found, list) or not all(item is None or isinstance(item, str) for item in found):
        raise validation_error("expected {include: [texts], exclude: [texts]}", field=source)
    return found


def _has(path: str, value: str | None) -> Filter:
    return _without_value(path) if value is None else {path: value}


def _without_value(path: str) -> Filter:
    """The condition that there is nothing at the path: null, an empty list, or an empty list on the way there."""
    names = path.split(".")
    on_the_way = (".".join(names[:count]) for count in range(1, len(names) + 1))
    return AnyOf([{path: None}, *({place: []} for place in on_the_way)])
