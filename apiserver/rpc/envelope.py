"""The envelope around every answer: `{"meta": …, "data": …}`."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

import orjson

from apiserver.answers import Held
from apiserver.rpc.encode import Json
from apiserver.rpc.errors import ApiError


@dataclass(slots=True)
class Meta:
    """What is known of a request; filled in as it is understood."""

    id: str = field(default_factory=lambda: token_hex(16))
    endpoint: str = ""
    requested_version: str | None = None
    actual_version: str | None = None
    held: Held | None = None
    """What its answer takes, if it is one that reads."""


def success(meta: Meta, data: Json) -> Json:
    """The envelope around what a handler answered; in pieces when that is."""
    head = _head(meta, 200, 0, "OK", {})
    return [head, *data, b"}"] if isinstance(data, list) else b"".join((head, data, b"}"))


def failure(meta: Meta, error: ApiError) -> bytes:
    """The answer to a request that could not be served."""
    return _head(meta, error.code, error.subcode, error.message, error.data) + b"{}}"


def _head(meta: Meta, code: int, subcode: int, message: str, error_data: dict[str, Any]) -> bytes:
    head = {
        "id": meta.id,
        "trx": meta.id,
        "endpoint": {
            "name": meta.endpoint,
            "requested_version": meta.requested_version,
            "actual_version": meta.actual_version,
        },
        "result_code": code,
        "result_subcode": subcode,
        "result_msg": message,
        "error_stack": None,
        "error_data": error_data,
    }
    return b'{"meta":%b,"data":' % orjson.dumps(head)
