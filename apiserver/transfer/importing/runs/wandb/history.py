"""Reads the items of a history record: names and values, which are JSON.

An item holds a name, or the names that lead into nested values, and its value:

    0a 10 | 12 04 "loss" | 82 01 04 "0.25"

Most items are short and have one or two names, so their lengths are one byte each. These are read here. For all others,
also those with a value that is not JSON (W&B's setting `x_history_value_encoding`), the record is read as any message.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.names import leaves
from apiserver.transfer.importing.runs.protobuf import parsed, text
from apiserver.transfer.importing.runs.wandb.messages import History, Items
from apiserver.transfer.importing.runs.wandb.messages import Item as Value

#: The name of a value, or the names that lead to it, and its JSON.
Item: TypeAlias = tuple[tuple[bytes, ...], bytes]

_ITEM, _KEY, _NESTED = 0x0A, 0x0A, 0x12
_VALUE = b"\x82\x01"
#: Names of W&B itself.
OWN = (b"_step", b"_timestamp", b"_runtime", b"_wandb")
#: A value is nested at most so deep.
_DEEPEST = 100
#: Bytes of a value with NaN in it.
_LONGEST_ODD = 2**20


def items(data: bytes) -> list[Item]:
    """The items of a record of history, summary or config. Raises Malformed."""
    short, at = _short(data)
    if at == len(data):
        return short
    longer = parsed(Items, data[at:]).item
    return short + [(tuple(item.key or item.nested_key), _json_of(item)) for item in longer]


def _json_of(item: Value) -> bytes:
    """The value of an item as JSON; empty without one."""
    if item.HasField("value_json") or item.HasField("json"):
        return item.value_json or item.json
    for name in ("integer", "number", "boolean"):
        if item.HasField(name):
            return json.dumps(getattr(item, name)).encode()
    if item.HasField("text"):
        return json.dumps(text(item.text)).encode()
    return b"null" if item.HasField("none") else b""


@lru_cache(maxsize=4096)
def full_name(names: tuple[bytes, ...]) -> str:
    """The name of a value as W&B shows it: "n.x" of a nested one."""
    return b".".join(names).decode(errors="replace")


def number(value: bytes) -> int | float | None:
    """The finite number that JSON is; None if it is anything else."""
    try:
        whole = int(value)
        if -(2**63) <= whole < 2**63:
            return whole
    except ValueError:
        pass
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def of_json(value: bytes) -> Any:
    """The value of JSON, in which Python writes NaN. Raises ValueError."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        if len(value) > _LONGEST_ODD:
            raise
        try:
            return json.loads(value)
        except RecursionError:
            raise Malformed("a value is nested too deep") from None


def values_of(row: list[Item]) -> Iterator[tuple[str, bytes]]:
    """The values of a row by their full names, also those inside of JSON: of these, what is no number is empty."""
    for names, value in row:
        if value[:1] != b"{":
            yield full_name(names), value
            continue
        try:
            content = of_json(value)
        except ValueError:
            continue
        for name, leaf in leaves(full_name(names), content, "."):
            yield name, json.dumps(leaf).encode() if isinstance(leaf, int | float) else b""


def step_beside(row: bytes) -> int | None:
    """The step that older versions write beside the items of a row."""
    history = parsed(History, row)
    return history.step.num if history.HasField("step") else None


def root_of(names: tuple[bytes, ...], roots: set[tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """The value with a `_type` that this one is inside of; empty without one."""
    depths = range(1, min(len(names), _DEEPEST))
    return next((names[:depth] for depth in depths if names[:depth] in roots), ())


def tree(inside: list[Item]) -> dict[str, Any]:
    """Nested values, by their names. Raises ValueError."""
    made: dict[str, Any] = {}
    for names, value in inside:
        here: Any = made
        for name in names[:-1]:
            here = here.setdefault(full_name((name,)), {})
            if not isinstance(here, dict):
                raise Malformed("a value has values inside of it")
        here[full_name(names[-1:])] = of_json(value)
    return made


def _short(data: bytes) -> tuple[list[Item], int]:
    """The items up to the first field that is not a short one, and where that is."""
    items: list[Item] = []
    start, at, stop = 0, 0, len(data)
    try:
        while at < stop:
            if data[at] != _ITEM or data[at + 1] > 127:
                return items, start
            end = at + 2 + data[at + 1]
            at += 2
            names: tuple[bytes, ...] = ()
            while (tag := data[at]) in (_KEY, _NESTED) and at < end:
                after = at + 2 + data[at + 1]
                names = (*names, data[at + 2 : after])
                at = after
            if data[at : at + 2] != _VALUE or at + 3 + data[at + 2] != end or end > stop or tag != _VALUE[0]:
                return items, start
            items.append((names, data[at + 3 : end]))
            start = at = end
    except IndexError:
        pass
    return items, start
