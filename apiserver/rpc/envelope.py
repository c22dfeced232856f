"""The envelope around every answer: `{"meta": …, "data": …}`."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

import orjson

from apiserver.rpc.call import Encoded
from apiserver.rpc.encode import encode
from apiserver.rpc.errors import ApiError


@dataclass(slots=True)
class Meta:
    """What is known of a request; filled in as it is understood."""

    id: str = field(default_factory=lambda: token_hex(16))
    endpoint: str = ""
    requested_version: str | None = None
    actual_version: str | None = None


def success(meta: Meta, answer: dict[str, Any] | Encoded) -> bytes:
    """The answer of a handler. NaN and infinities become null; TypeError for values that JSON does not have."""
    data = answer.json if isinstance(answer, Encoded) else encode(answer)
    return _envelope(meta, data, 200, 0, "OK", {})


def failure(meta: Meta, error: ApiError) -> bytes:
    """The answer to a request that could not be served."""
    return _envelope(meta, b"{}", error.code, error.subcode, error.message, error.data)


def _envelope(meta: Meta, data: bytes, code: int, subcode: int, message: str, error_data: dict[str, Any]) -> bytes:
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
    return b"".join((b'{"meta":', orjson.dumps(head), b',"data":', data, b"}"))
