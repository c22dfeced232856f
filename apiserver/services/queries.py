"""The query side of every `get_all`: from a request to a filter, a sort, a projection and a page of documents.

Empty lists and null mean "no filter". The functions do no I/O and raise validation errors that name the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from apiserver.rpc.errors import validation_error
from apiserver.services.lists import list_filter, lists_filter
from apiserver.services.names import escape_path
from apiserver.stores.documents.base import Document, Filter, InvalidFilter
from apiserver.stores.documents.dialect.patterns import compile_pattern
from apiserver.times import utc_text

#: How many documents an answer has when the request does not say.
DEFAULT_PAGE_SIZE = 500
#: No page begins later: stores count in 64 bits.
FURTHEST = 2**62
#: Fields that are sorted by, words that are looked for, and conditions: of 100,000 tasks, each may take half a second.
MOST_SORTED, MOST_WORDS, MOST_CONDITIONS = 10, 16, 100

#: Dotted fields as a tree of names; those that have none inside end them.
_Names: TypeAlias = "dict[str, _Names]"

_COMPARISONS = {">=": "$gte", ">": "$gt", "<=": "$lte", "<": "$lt", "": "$eq"}
_EXACT = re.compile(r"\^((?:[^\\.^$*+?{}\[\]|()]|\\[^a-zA-Z0-9])*)\$", re.DOTALL)
#: A hyperparameter of a task, or metadata of a model, as a whole.
_PARAMETER = re.compile(r"hyperparams\.[^.]+\.[^.]+|metadata\.[^.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpec:
    """Which request fields narrow a query, by how they do it; a field that ends in `.*` stands for all below it.

    `patterns` are regular expressions; `lists` name wanted values, with the operators of `lists.py`; `values` are
    equal, or one of a list's; `times` are comparisons such as `>=2026-11-21T08:00:00`; `ranges` are `[min, max]`, both
    included, one may be null; `text` are the document's fields that `search_text` looks in.
    """

    patterns: tuple[str, ...] = ("name",)
    lists: tuple[str, ...] = ("id", "tags", "system_tags")
    values: tuple[str, ...] = ()
    times: tuple[str, ...] = ("created", "last_update")
    ranges: tuple[str, ...] = ()
    text: tuple[str, ...] = ("id", "name")


@dataclass(frozen=True, slots=True)
class Page:
    """The slice of the matches to answer."""

    skip: int
    limit: int


def build_filter(request: Mapping[str, Any], spec: QuerySpec) -> Filter:
    """The conditions that `request` sets, all of which a document must meet; `{}` when it sets none."""
    conditions = [*_simple_conditions(request, spec), *_multi_field_conditions(request, spec)]
    if text := request.get("search_text"):
        conditions.append(_text_filter(text, spec.text))
    if filters := request.get("filters"):
        conditions.append(lists_filter(filters, spec.lists))
    if sum(map(_size, conditions)) > MOST_CONDITIONS:
        raise validation_error(f"at most {MOST_CONDITIONS} conditions are allowed")
    return all_of(conditions)


def _size(condition: Filter) -> int:
    """How many conditions there are in one; a list of values that a field may have is a single one."""
    size = 0
    for name, operand in condition.items():
        if name in ("$and", "$or", "$nor"):
            size += sum(map(_size, operand))
        else:
            size += len(operand["$all"]) if isinstance(operand, dict) and "$all" in operand else 1
    return size


def all_of(conditions: Iterable[Filter]) -> Filter:
    """The filter for documents that meet every condition."""
    present = [condition for condition in conditions if condition]
    if len(present) <= 1:
        return present[0] if present else {}
    return {"$and": present}


def hide_hidden(request: Mapping[str, Any]) -> Filter:
    """The condition that keeps hidden documents out, unless they are asked for by id or by `search_hidden`."""
    return {} if request.get("search_hidden") or request.get("id") else {"system_tags": {"$ne": "hidden"}}


def sort_of(
    request: Mapping[str, Any], default: tuple[tuple[str, int], ...] = (("created", 1),)
) -> list[tuple[str, int]]:
    """The order that `order_by` asks for ("-" before a field: descending); parameters are sorted by their values."""
    fields = request.get("order_by") or []
    fields = _at_most(MOST_SORTED, [fields] if isinstance(fields, str) else fields, "order_by")
    return [
        (_valued(escape_path(field.lstrip("-"))), -1 if field.startswith("-") else 1)
        for field in fields
        if field.lstrip("-") and not field.lstrip("-").startswith("@")
    ] or list(default)


def _valued(path: str) -> str:
    return f"{path}.value" if _PARAMETER.fullmatch(path) else path


def projection_of(request: Mapping[str, Any]) -> list[str] | None:
    """The fields that `only_fields` asks for (dotted), none of them inside another; None: all (but see `leave_out`)."""
    wanted = request.get("only_fields") or []
    return outermost(escape_path(field) for field in wanted if field and not field.startswith("-")) or None


def outermost(fields: Iterable[str]) -> list[str]:
    """Those of some dotted fields that are inside none of the others, sorted: `["a", "b.c"]` of `a`, `a.b`, `b.c`.

    Sorted by their names, fields come right after the one that they are inside.
    """
    found: list[str] = []
    for field in sorted(set(fields), key=lambda field: field.split(".")):
        if not found or not field.startswith(f"{found[-1]}."):
            found.append(field)
    return sorted(found)


def leave_out(request: Mapping[str, Any], found: Iterable[Document]) -> None:
    """Take the fields that `only_fields` has after a "-" (dotted) out of stored documents, in place; never the id."""
    unwanted = [field for field in request.get("only_fields") or [] if field.startswith("-")]
    names: _Names = {}
    for field in outermost(escape_path(field[1:]) for field in unwanted if field not in ("-", "-id")):
        *above, last = field.split(".")
        inside = names
        for name in above:
            inside = inside.setdefault(name, {})
        inside[last] = {}
    for document in found if names else ():
        _drop(document, names)


def _drop(value: Any, names: _Names) -> None:
    """Take out what is named, in time for the names that are there: of thousands, a document has but some."""
    if isinstance(value, list):
        for item in value:
            _drop(item, names)
    elif isinstance(value, dict):
        for name in value.keys() & names.keys():
            if names[name]:
                _drop(value[name], names[name])
            else:
                del value[name]


def page_of(request: Mapping[str, Any]) -> Page:
    """The page that `page` and `page_size` ask for."""
    size = request.get("page_size") or DEFAULT_PAGE_SIZE
    skip = (request.get("page") or 0) * size
    if skip > FURTHEST:
        raise validation_error("beyond any page there can be", field="page")
    return Page(skip, size)


def pattern_filter(field: str, pattern: str, *, ignore_case: bool = False, source: str | None = None) -> Filter:
    """The condition that `field` matches the regular expression; one that spells out the whole value is an equality.

    `source` names the request's field in the error of a malformed pattern.
    """
    literal = None if ignore_case else exact_literal(pattern)
    if literal is not None:
        return {field: literal}
    source = source or field
    try:
        compile_pattern(source, pattern)
    except InvalidFilter as error:
        raise validation_error(str(error).removeprefix(f"field '{source}': "), field=source) from None
    return {field: {"$regex": pattern, "$options": "i"} if ignore_case else {"$regex": pattern}}


def exact_literal(pattern: str) -> str | None:
    """The one text that `pattern` matches when it is `^`, plain or escaped characters, and `$`; else None."""
    match = _EXACT.fullmatch(pattern)
    return None if match is None else re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)


def parse_time(text: Any, field: str) -> str:
    """An ISO-8601 date or time as documents keep it; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise validation_error(f"not an ISO-8601 time: {str(text)[:100]!r}", field=field) from None
    return utc_text(moment)


def _simple_conditions(request: Mapping[str, Any], spec: QuerySpec) -> Iterable[Filter]:
    for field in spec.patterns:
        if pattern := request.get(field):
            yield pattern_filter(field, pattern)
    for field, value in _given(request, spec.lists):
        yield list_filter(escape_path(field), value)
    for field, value in _given(request, spec.values):
        path = escape_path(field)
        yield list_filter(path, value) if isinstance(value, list) else {path: value}
    for field, value in _given(request, spec.ranges):
        yield _range_filter(field, value)
    for field, value in _given(request, spec.times):
        yield _time_filter(field, value)


def _given(request: Mapping[str, Any], fields: tuple[str, ...]) -> Iterable[tuple[str, Any]]:
    """The (field, value) pairs of the request that set a filter."""
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
    bounds = {op: _number(item) for op, item in zip(("$gte", "$lte"), value, strict=True) if item is not None}
    return {path: bounds} if "$gte" in bounds else {"$or": [{path: bounds}, {path: None}]}


def _number(value: Any) -> Any:
    """A number that was written as text is compared as a number."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _time_filter(field: str, value: Any) -> Filter:
    """All comparisons of `value` (one, or a list); two plain times are a range, its ends included."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) or text is None for text in texts):
        raise validation_error("expected times, such as '>=2026-11-21T08:00:00'", field=field)
    pairs = [_comparison(text, field) for text in texts if text]
    if len(texts) == 2 and all(operator == "" for operator, _ in pairs):
        bounds = [">=", "<="] if len(pairs) == 2 else [">=" if texts[0] else "<="]
        pairs = [(bound, time) for bound, (_, time) in zip(bounds, pairs, strict=True)]
    return all_of({escape_path(field): {_COMPARISONS[operator]: time}} for operator, time in pairs)


def _comparison(text: str, field: str) -> tuple[str, str]:
    """The operator and the time: `>=` and `2026-11-21T…` of `>= 2026-11-21`."""
    text = text.strip()
    operator = next(operator for operator in _COMPARISONS if text.startswith(operator))
    return operator, parse_time(text[len(operator) :].strip(), field)


def _multi_field_conditions(request: Mapping[str, Any], spec: QuerySpec) -> Iterable[Filter]:
    """`_any_` / `_all_`: {fields, pattern} or {fields, datetime}."""
    for name, operator in (("_any_", "$or"), ("_or_", "$or"), ("_all_", "$and"), ("_and_", "$and")):
        condition = request.get(name)
        if condition and condition.get("fields"):
            fields = _at_most(MOST_CONDITIONS, condition["fields"], f"{name}.fields")
            terms = [term for field in fields if (term := _multi_field_term(name, field, condition, spec))]
            if terms:
                yield {operator: terms}


def _multi_field_term(name: str, field: str, condition: Mapping[str, Any], spec: QuerySpec) -> Filter:
    if pattern := condition.get("pattern"):
        return pattern_filter(escape_path(field), pattern, ignore_case=True, source=f"{name}.pattern")
    if (moment := condition.get("datetime")) and field in spec.times:
        return _time_filter(field, moment)
    return {}


def _text_filter(text: str, fields: tuple[str, ...]) -> Filter:
    """Every word of `text` occurs in some of the fields, in any case."""
    return all_of(
        {"$or": [{field: {"$regex": re.escape(word), "$options": "i"}} for field in fields]}
        for word in _at_most(MOST_WORDS, text.split(), "search_text")
    )


def _at_most(count: int, items: list[str], field: str) -> list[str]:
    """The items of a request's field; 400 when there are more than that."""
    if len(items) > count:
        raise validation_error(f"at most {count} are allowed", field=field)
    return items
