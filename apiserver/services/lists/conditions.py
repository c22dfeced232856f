"""How every `get_all` turns its request into a filter.

Empty lists and null mean "no filter". The functions do no I/O. Their validation errors name the request's field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.times import stored_time
from apiserver.services.documents.keys import escape_path
from apiserver.services.lists.filters import include_exclude_filter, list_filter
from apiserver.services.lists.limits import MOST_CONDITIONS, MOST_WORDS, at_most
from apiserver.stores.documents import query
from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.patterns import compile_pattern
from apiserver.stores.documents.query import AllOf, AnyOf, Filter, HasAll, Matches, Unequal, all_of

#: A search looks for words in ids only if they have so many characters: shorter ones are in the ids of many documents.
_SHORTEST_IN_ID = 6

_COMPARISONS = {">=": query.AtLeast, ">": query.Greater, "<=": query.AtMost, "<": query.Less, "": query.Equal}
_EXACT = re.compile(r"\^((?:[^\\.^$*+?{}\[\]|()]|\\[^a-zA-Z0-9])*)\$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpec:
    """Which request fields are filters, and of which form. A field that ends in `.*` stands for all fields below it.

    `patterns`: a regular expression. `lists`: wanted values, with the operators of `filters.py`. `values`: one
    value, or a list of allowed ones. `times`: comparisons such as `>=2026-11-21T08:00:00`. `ranges`: `[min, max]`, both
    inclusive, one of them may be null. `text`: not filters, but the document's fields that `search_text` searches.
    """

    patterns: tuple[str, ...] = ("name",)
    lists: tuple[str, ...] = ("id", "tags", "system_tags")
    values: tuple[str, ...] = ()
    times: tuple[str, ...] = ("created", "last_update")
    ranges: tuple[str, ...] = ()
    text: tuple[str, ...] = ("id", "name")

    @property
    def names(self) -> tuple[str, ...]:
        """The request fields that are filters, of any form."""
        return (*self.patterns, *self.lists, *self.values, *self.times, *self.ranges)


def build_filter(request: Mapping[str, Any], spec: QuerySpec) -> Filter:
    """The filter for documents that meet all conditions of the request; `{}` if it has none."""
    conditions = [*_simple_conditions(request, spec), *_multi_field_conditions(request, spec)]
    if text := request.get("search_text"):
        conditions.append(_text_filter(text, spec.text))
    if filters := request.get("filters"):
        conditions.append(include_exclude_filter(filters, spec.lists))
    if sum(map(_size, conditions)) > MOST_CONDITIONS:
        raise validation_error(f"at most {MOST_CONDITIONS} conditions are allowed")
    return all_of(conditions)


def _size(condition: Filter) -> int:
    """The number of single conditions in `condition`. A list of allowed values counts as one."""
    if not isinstance(condition, Mapping):
        return sum(map(_size, condition.parts))
    return sum(len(wanted.values) if isinstance(wanted, HasAll) else 1 for wanted in condition.values())


def hide_hidden(request: Mapping[str, Any]) -> Filter:
    """The condition that leaves hidden documents out; `{}` if the request names ids or says `search_hidden`."""
    return {} if request.get("search_hidden") or request.get("id") else {"system_tags": Unequal("hidden")}


def pattern_filter(field: str, pattern: Any, *, ignore_case: bool = False, source: str | None = None) -> Filter:
    """The condition that `field` matches the regular expression. If it spells a whole value (`^loss$`): equals it.

    `source` is the request's field, for the error about a malformed pattern, or one that is no text.
    """
    source = source or field
    if not isinstance(pattern, str):
        raise validation_error(f"expected text, not {type(pattern).__name__}", field=source)
    literal = None if ignore_case else exact_literal(pattern)
    if literal is not None:
        return {field: literal}
    try:
        compile_pattern(source, pattern)
    except InvalidFilter as error:
        raise validation_error(str(error).removeprefix(f"field '{source}': "), field=source) from None
    return {field: Matches(pattern, any_case=True) if ignore_case else Matches(pattern)}


def exact_literal(pattern: str) -> str | None:
    """The only text that `pattern` matches if it is `^`, plain or escaped characters, and `$`; else None."""
    match = _EXACT.fullmatch(pattern)
    return None if match is None else re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)


def parse_time(text: Any, field: str) -> str:
    """An ISO-8601 date or time in the form that documents store. Without an offset it is UTC."""
    time = stored_time(text)
    if time is None:
        raise validation_error(f"not an ISO-8601 time: {str(text)[:100]!r}", field=field)
    return time


def _simple_conditions(request: Mapping[str, Any], spec: QuerySpec) -> Iterable[Filter]:
    for field in spec.patterns:
        if pattern := request.get(field):
            yield pattern_filter(field, pattern)
    listed = [(escape_path(field), value) for field, value in _given(request, spec.lists)]
    yield from starmap(list_filter, listed)
    for field, value in _given(request, spec.values):
        path = escape_path(field)
        yield list_filter(path, value) if isinstance(value, list) else {path: value}
    for field, value in _given(request, spec.ranges):
        yield _range_filter(field, value)
    for field, value in _given(request, spec.times):
        yield _time_filter(field, value)


def _given(request: Mapping[str, Any], fields: tuple[str, ...]) -> Iterable[tuple[str, Any]]:
    """The (field, value) pairs of the request that are filters, with fields below `.*` entries."""
    for field in fields:
        below = [name for name in request if name.startswith(field[:-1])] if field.endswith(".*") else [field]
        for name in below:
            value = request.get(name)
            if value is not None and value != [] and value != "":
                yield name, value


def _range_filter(field: str, value: Any) -> Filter:
    if not isinstance(value, list) or len(value) != 2 or value == [None, None]:
        raise validation_error("expected [min, max], one of which may be null", field=field)
    path = escape_path(field)
    least, most = query.AtLeast(_number(value[0])), query.AtMost(_number(value[1]))
    if value[0] is None:
        return AnyOf([{path: most}, {path: None}])
    return {path: least if value[1] is None else query.Both(least, most)}


def _number(value: Any) -> Any:
    """The value as a number if it is a number, or text that spells one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _time_filter(field: str, value: Any) -> Filter:
    """The condition of one comparison or a list of them. Two times without operators are a range with both ends."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) or text is None for text in texts):
        raise validation_error("expected times, such as '>=2026-11-21T08:00:00'", field=field)
    pairs = [_comparison(text, field) for text in texts if text]
    if not pairs:
        raise validation_error("expected a time at least at one end", field=field)
    if len(texts) == 2 and all(operator == "" for operator, _ in pairs):
        bounds = [">=", "<="] if len(pairs) == 2 else [">=" if texts[0] else "<="]
        pairs = [(bound, time) for bound, (_, time) in zip(bounds, pairs, strict=True)]
    return all_of({escape_path(field): _COMPARISONS[operator](time)} for operator, time in pairs)


def _comparison(text: str, field: str) -> tuple[str, str]:
    """The operator and the time: `>=` and `2026-11-21T…` of `>= 2026-11-21`."""
    text = text.strip()
    operator = next(operator for operator in _COMPARISONS if text.startswith(operator))
    return operator, parse_time(text[len(operator) :].strip(), field)


def _multi_field_conditions(request: Mapping[str, Any], spec: QuerySpec) -> Iterable[Filter]:
    """The conditions of `_any_` and `_all_`, which have {fields, pattern} or {fields, datetime}."""
    for name, combined in (("_any_", AnyOf), ("_or_", AnyOf), ("_all_", AllOf), ("_and_", AllOf)):
        condition = request.get(name)
        if condition and condition.get("fields"):
            fields = at_most(MOST_CONDITIONS, condition["fields"], f"{name}.fields")
            terms = [term for field in fields if (term := _multi_field_term(name, field, condition, spec))]
            if terms:
                yield combined(terms)


def _multi_field_term(name: str, field: str, condition: Mapping[str, Any], spec: QuerySpec) -> Filter:
    if pattern := condition.get("pattern"):
        return pattern_filter(escape_path(field), pattern, ignore_case=True, source=f"{name}.pattern")
    if (moment := condition.get("datetime")) and field in spec.times:
        return _time_filter(field, moment)
    return {}


def _text_filter(text: str, fields: tuple[str, ...]) -> Filter:
    """The condition that each word of `text` occurs in at least one of the fields, whatever its case."""
    return all_of(
        AnyOf([{field: Matches(re.escape(word), any_case=True)} for field in fields if _may_have(field, word)])
        for word in at_most(MOST_WORDS, text.split(), "search_text")
    )


def _may_have(field: str, word: str) -> bool:
    """Whether a search looks for the word in the field."""
    return field != "id" or len(word) >= _SHORTEST_IN_ID
