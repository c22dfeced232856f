"""Request validation: a schema is compiled once into closures, which check and complete requests quickly.

What clients need is built in: null means "not given" (but in `nullable` properties), numbers and booleans may come as
text, an integral float is an integer, and fields that a schema does not know are left out. Errors name the field by its
dotted path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from apiserver.rpc.errors import ApiError, validation_error

Schema = dict[str, Any]
Check = Callable[[Any], Any]
Validator = Callable[[dict[str, Any]], dict[str, Any]]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,4})?")
_LONGEST_NUMBER = 64
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}

#: Every request of the SDK carries `"method": "get"`; it is never a field of an endpoint that takes any field.
_JUNK = frozenset({"method"})


class Invalid(Exception):
    """A value does not fit its schema. `steps` lead to it, innermost first, such as `["metric", "[1]", "metrics"]`."""

    def __init__(self, message: str, *, other_kind: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.steps: list[str] = []
        self.other_kind = other_kind
        """The value is of another kind altogether (a `const` differs), so other errors tell more."""

    @property
    def field(self) -> str:
        """The dotted path, such as `metrics[1].metric`; text that is no valid UTF-8 is shown escaped."""
        path = "".join(step if step.startswith("[") else f".{step}" for step in reversed(self.steps)).removeprefix(".")
        return path[:200].encode("utf-8", "backslashreplace").decode()


def compile_request(schema: Schema) -> Validator:
    """The validator of a request: returns what the handler gets, or raises 400/12 naming the field."""
    check = compile_schema(schema, ignore=_JUNK - set(schema.get("properties", ())))

    def validate(request: dict[str, Any]) -> dict[str, Any]:
        try:
            validated: dict[str, Any] = check(request)
        except Invalid as invalid:
            raise as_api_error(invalid) from None
        return validated

    return validate


def as_api_error(invalid: Invalid) -> ApiError:
    """The answer to a request with an invalid value."""
    return validation_error(invalid.message, field=invalid.field or None)


def compile_schema(schema: Schema, *, ignore: frozenset[str] = frozenset()) -> Check:
    """A function that returns a value as the schema wants it, or raises Invalid. `schema` has no `$ref` left."""
    kind = schema.get("type")
    check = _object(schema, ignore) if kind == "object" else _BY_TYPE[kind](schema)
    if "anyOf" in schema:
        check = _then(check, _any_of([compile_schema(choice) for choice in schema["anyOf"]]))
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


def _string(schema: Schema) -> Check:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", math.inf)

    def check(value: Any) -> Any:
        if type(value) is not str:
            raise Invalid(f"expected a string, got {_shown(value)}")
        if not shortest <= len(value) <= longest:
            raise _length_error(len(value), shortest, longest, "characters")
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

    def check(value: Any) -> Any:
        if type(value) is not list:
            raise Invalid(f"expected an array, got {_shown(value)}")
        if not shortest <= len(value) <= longest:
            raise _length_error(len(value), shortest, longest, "items")
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
        return _free_object
    checks = {name: compile_schema(field) for name, field in schema.get("properties", {}).items()}
    defaults = {name: field["default"] for name, field in schema.get("properties", {}).items() if "default" in field}
    mutable = [name for name, default in defaults.items() if isinstance(default, (dict, list))]
    nullable = {name for name, field in schema.get("properties", {}).items() if field.get("nullable")}
    required = tuple(name for name in schema.get("required", ()) if name not in defaults)
    check_other = _other_fields(schema)

    def check(value: Any) -> Any:
        if type(value) is not dict:
            raise Invalid(f"expected an object, got {_shown(value)}")
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


def _free_object(value: Any) -> Any:
    if type(value) is not dict:
        raise Invalid(f"expected an object, got {_shown(value)}")
    return value


def _other_fields(schema: Schema) -> Check | None:
    """How fields beyond `properties` are checked; None when they are left out."""
    others = schema.get("additionalProperties", "properties" not in schema)
    if isinstance(others, dict):
        return compile_schema(others)
    return _anything if others else None


# --- what narrows a type ---------------------------------------------------------------------------


def _one_of(allowed: list[Any], *, other_kind: bool) -> Check:
    wanted = ", ".join(_shown(value) for value in allowed)

    def check(value: Any) -> Any:
        if not any(value == choice and type(value) is type(choice) for choice in allowed):
            raise Invalid(f"expected one of {wanted}, got {_shown(value)}", other_kind=other_kind)
        return value

    return check


def _any_of(choices: list[Check]) -> Check:
    def check(value: Any) -> Any:
        errors: list[Invalid] = []
        for choice in choices:
            try:
                return choice(value)
            except Invalid as invalid:
                errors.append(invalid)
        raise next((error for error in errors if not error.other_kind), errors[0])

    return check


def _length_error(length: int, shortest: float, longest: float, unit: str) -> Invalid:
    bound = f"at least {shortest}" if length < shortest else f"at most {longest}"
    return Invalid(f"expected {bound} {unit}, got {length}")


def _range_error(number: float, low: float, high: float) -> Invalid:
    bound = f"at least {low}" if number < low else f"at most {high}"
    return Invalid(f"expected {bound}, got {_shown(number)}")


_BY_TYPE: dict[str | None, Callable[[Schema], Check]] = {
    None: lambda schema: _anything,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
}

#: The types a schema may name.
TYPES = frozenset({"object", *(name for name in _BY_TYPE if name)})
