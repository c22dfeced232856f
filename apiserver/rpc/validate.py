"""Validates requests: a schema is compiled once into functions that check requests quickly and fill in defaults.

Clients need some tolerance: null means "not given" except in `nullable` properties, numbers and booleans may come as
text, a float such as 3.0 counts as an integer, and unknown fields are left out. Errors name the field by its dotted
path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from typing import Any

from apiserver.common import urls
from apiserver.common.errors import Refusal, validation_error
from apiserver.rpc.schema_bounds import FREE_BOUNDS, Schema

Check = Callable[[Any], Any]
Validator = Callable[[dict[str, Any]], dict[str, Any]]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,4})?")
_LONGEST_NUMBER = 64
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}

#: Every request of the SDK has a field `"method": "get"`, which means nothing. Only a schema that names it gets it.
_JUNK = frozenset({"method"})


class Invalid(Exception):
    """A value does not match its schema. `steps` lead to it, innermost first: `["metric", "[1]", "metrics"]`."""

    def __init__(self, message: str, *, other_kind: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.steps: list[str] = []
        self.other_kind = other_kind
        """Whether a `const` differs: then another choice of an `anyOf` is meant, and its error says more."""

    @property
    def field(self) -> str:
        """The dotted path, such as `metrics[1].metric`; text that is not valid UTF-8 is escaped."""
        path = "".join(step if step.startswith("[") else f".{step}" for step in reversed(self.steps)).removeprefix(".")
        return path[:200].encode("utf-8", "backslashreplace").decode()


def compile_request(schema: Schema) -> Validator:
    """The validator of a request. It returns what the handler gets, or raises 400/12, which names the field."""
    check = compile_schema(schema, ignore=_JUNK - set(schema.get("properties", ())))

    def validate(request: dict[str, Any]) -> dict[str, Any]:
        try:
            validated: dict[str, Any] = check(request)
        except Invalid as invalid:
            raise as_refusal(invalid) from None
        return validated

    return validate


def as_refusal(invalid: Invalid) -> Refusal:
    """The refusal of a request with an invalid value."""
    return validation_error(invalid.message, field=invalid.field or None)


def compile_schema(schema: Schema, *, ignore: frozenset[str] = frozenset()) -> Check:
    """A function that returns a value converted as the schema says, or raises Invalid. `schema` is resolved."""
    kind = schema.get("type")
    check = _object(schema, ignore) if kind == "object" else _BY_TYPE[kind](schema)
    if "anyOf" in schema:
        check = _then(check, _any_of(schema["anyOf"]))
    if "enum" in schema:
        check = _then(check, _one_of(schema["enum"], other_kind=False))
    if "const" in schema:
        check = _then(check, _one_of([schema["const"]], other_kind=True))
    return check


def _then(first: Check, second: Check) -> Check:
    return second if first is _anything else lambda value: second(first(value))


def _shown(value: Any) -> str:
    if type(value) in (int, float, str):
        text = repr(value)
        return text if len(text) <= 60 else text[:60] + "…"
    return _NAMES.get(type(value), "something else")


# --- one function a type ---------------------------------------------------------------------------


def _anything(value: Any) -> Any:
    return value


#: The formats that are checked: a function that tells whether a text has the format, and what error messages call it.
_FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "stored-file": (lambda text: not urls.is_script(text), "the address of a stored file"),
    "picture": (lambda text: not text or urls.is_of_file(text), urls.FILE_ADDRESSES),
}


def _string(schema: Schema) -> Check:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    shape = _FORMATS.get(schema.get("format", ""))

    def check(value: Any) -> Any:
        if type(value) is not str:
            raise Invalid(f"expected a string, got {_shown(value)}")
        if not shortest <= len(value) <= longest:
            raise _length_error(len(value), shortest, longest, "characters")
        if shape is not None and not shape[0](value):
            raise Invalid(f"expected {shape[1]}, got {_shown(value)}")
        return value

    return check


def _integer(schema: Schema) -> Check:
    low, high = max(schema.get("minimum", INT64_MIN), INT64_MIN), min(schema.get("maximum", INT64_MAX), INT64_MAX)

    def check(value: Any) -> Any:
        number = value if type(value) is int else _as_integer(value)
        if not low <= number <= high:
            raise _range_error(number, low, high)
        return number

    return check


def _as_integer(value: Any) -> int:
    number = _parse_number(value) if type(value) is str else value
    if type(number) is int:
        return number
    if type(number) is float and number.is_integer():
        return int(number)
    raise Invalid(f"expected an integer, got {_shown(value)}")


def _number(schema: Schema) -> Check:
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)

    def check(value: Any) -> Any:
        number = _parse_number(value) if type(value) is str else value
        if type(number) is not float and type(number) is not int:
            raise Invalid(f"expected a number, got {_shown(value)}")
        if type(number) is float and not math.isfinite(number):
            raise Invalid(f"expected a finite number, got {_shown(value)}")
        if not low <= number <= high:
            raise _range_error(number, low, high)
        return number

    return check


def _parse_number(text: str) -> int | float | None:
    if len(text) > _LONGEST_NUMBER or (match := _NUMBER.fullmatch(text)) is None:
        return None
    return float(text) if match[1] or match[2] else int(text)


def _boolean(schema: Schema) -> Check:
    def check(value: Any) -> Any:
        if type(value) is bool:
            return value
        if type(value) is str and value.lower() in _BOOLEANS:
            return _BOOLEANS[value.lower()]
        raise Invalid(f"expected a boolean, got {_shown(value)}")

    return check


def _array(schema: Schema) -> Check:
    check_item = compile_schema(schema.get("items", {}))
    shortest, longest = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    most = schema.get("maxValues")

    def check(value: Any) -> Any:
        if type(value) is not list:
            raise Invalid(f"expected an array, got {_shown(value)}")
        if not shortest <= len(value) <= longest:
            raise _length_error(len(value), shortest, longest, "items")
        if most is not None:
            _check_number(value, most)
        items: list[Any] = []
        try:
            for item in value:
                items.append(check_item(item))
        except Invalid as invalid:
            invalid.steps.append(f"[{len(items)}]")
            raise
        return items

    return check


def _object(schema: Schema, ignore: frozenset[str]) -> Check:
    if "properties" not in schema and not ignore and not isinstance(schema.get("additionalProperties"), dict):
        return _free_object(schema)
    checks = {name: compile_schema(field) for name, field in schema.get("properties", {}).items()}
    defaults = {name: field["default"] for name, field in schema.get("properties", {}).items() if "default" in field}
    mutable = [name for name, default in defaults.items() if isinstance(default, (dict, list))]
    nullable = {name for name, field in schema.get("properties", {}).items() if field.get("nullable")}
    required = tuple(name for name in schema.get("required", ()) if name not in defaults)
    check_other = _other_fields(schema)
    check_size = _size(schema)

    def check(value: Any) -> Any:
        if type(value) is not dict:
            raise Invalid(f"expected an object, got {_shown(value)}")
        if check_size is not None:
            check_size(value)
        fields = defaults.copy()
        for name in mutable:
            fields[name] = deepcopy(defaults[name])
        name = ""
        try:
            for name, given in value.items():
                check_field = checks.get(name) or check_other
                if check_field is not None and (given is not None or name in nullable) and name not in ignore:
                    fields[name] = None if given is None else check_field(given)
            for name in required:
                if name not in fields:
                    raise Invalid("is required")
        except Invalid as invalid:
            invalid.steps.append(name)
            raise
        return fields

    return check


def _free_object(schema: Schema) -> Check:
    most, check_inside = schema.get("maxProperties", math.inf), _free(schema)

    def check(value: Any) -> Any:
        if type(value) is not dict:
            raise Invalid(f"expected an object, got {_shown(value)}")
        if len(value) > most:
            raise _length_error(len(value), 0, most, "names")
        return check_inside(value)

    return check


def _other_fields(schema: Schema) -> Check | None:
    """The check of fields beyond `properties`; None if such fields are left out."""
    others = schema.get("additionalProperties", "properties" not in schema)
    if isinstance(others, dict):
        return compile_schema(others)
    return _free(schema) if others else None


# --- bounds ----------------------------------------------------------------------------------------


def _size(schema: Schema) -> Callable[[dict[str, Any]], None] | None:
    """A function that raises Invalid for a map with too many or too long names, or too many values; None: no bounds."""
    if schema.keys().isdisjoint(("maxProperties", "maxName", "maxValues")):
        return None
    most, longest, values = (schema.get(key, math.inf) for key in ("maxProperties", "maxName", "maxValues"))

    def check(value: dict[str, Any]) -> None:
        if len(value) > most:
            raise _length_error(len(value), 0, most, "names")
        _check_names(value, longest)
        if values is not math.inf:
            _check_number(value, values)

    return check


def _check_names(value: dict[str, Any], longest: float) -> None:
    length = max(map(len, value), default=0)
    if length > longest:
        raise _length_error(length, 0, longest, "characters in a name")


def _check_number(value: Any, most: float) -> None:
    """Raise Invalid if `value` holds more than `most` items and names at all depths: `[[1, 2], {"a": 3}]` holds 5.

    They are counted before any value is checked, so that refusing too many costs little.
    """
    left, waiting = most, [value]
    while waiting:
        parent = waiting.pop()
        left -= len(parent)
        if left < 0:
            raise _number_error(most)
        children = parent.values() if type(parent) is dict else parent
        waiting += _lists_and_maps(children)


def _free(schema: Schema) -> Check:
    """The check of values of any type: it bounds the number of values, their depth, and the length of texts."""
    if schema.keys().isdisjoint(FREE_BOUNDS):
        return _anything
    most, deepest = schema.get("maxValues", math.inf), schema.get("maxDepth", math.inf)
    longest, longest_name = schema.get("maxText", math.inf), schema.get("maxName", math.inf)

    def check(value: Any) -> Any:
        if type(value) is str:
            check_texts([value])
        level, left, depth = _lists_and_maps([value]), most, 0
        while level:
            left, depth = left - sum(map(len, level)), depth + 1
            if left < 0:
                raise _number_error(most)
            if depth > deepest:
                raise Invalid(f"expected at most {deepest} levels of lists and objects")
            level = [child for parent in level for child in _lists_and_maps(children_of(parent))]
        return value

    def children_of(parent: Any) -> Collection[Any]:
        if type(parent) is dict:
            _check_names(parent, longest_name)
            parent = parent.values()
        check_texts(parent)
        children: Collection[Any] = parent
        return children

    def check_texts(values: Iterable[Any]) -> None:
        for value in values:
            if type(value) is str and len(value) > longest:
                raise _length_error(len(value), 0, longest, "characters in a text")

    return check


def _lists_and_maps(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) is list or type(value) is dict]


# --- enum, const and anyOf -------------------------------------------------------------------------


def _one_of(allowed: list[Any], *, other_kind: bool) -> Check:
    choices = ", ".join(_shown(value) for value in allowed)

    def check(value: Any) -> Any:
        if not any(value == choice and type(value) is type(choice) for choice in allowed):
            raise Invalid(f"expected one of {choices}, got {_shown(value)}", other_kind=other_kind)
        return value

    return check


def _any_of(schemas: list[Schema]) -> Check:
    """The value as the first schema that allows it converts it.

    If none does, the error is that of a schema for the value's own type, if there is one.
    """
    choices = [(_PYTHON_TYPES.get(schema.get("type")), compile_schema(schema)) for schema in schemas]

    def check(value: Any) -> Any:
        errors: list[Invalid] = []
        of_its_type = [choice for kind, choice in choices if kind is type(value)]
        for choice in of_its_type or [choice for _, choice in choices]:
            try:
                return choice(value)
            except Invalid as invalid:
                errors.append(invalid)
        raise next((error for error in errors if not error.other_kind), errors[0])

    return check


def _length_error(length: int, shortest: float, longest: float, unit: str) -> Invalid:
    bound = f"at least {shortest}" if length < shortest else f"at most {longest}"
    return Invalid(f"expected {bound} {unit}, got {length}")


def _number_error(most: float) -> Invalid:
    return Invalid(f"expected at most {most} values in all")


def _range_error(number: float, low: float, high: float) -> Invalid:
    bound = f"at least {low}" if number < low else f"at most {high}"
    return Invalid(f"expected {bound}, got {_shown(number)}")


_BY_TYPE: dict[str | None, Callable[[Schema], Check]] = {
    None: _free,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
}

#: Types with one Python type each. Numbers and booleans have none, because they may come as text.
_PYTHON_TYPES: dict[str | None, type] = {"string": str, "array": list, "object": dict}

#: The types a schema may name.
TYPES = frozenset({"object", *(name for name in _BY_TYPE if name)})
