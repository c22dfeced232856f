"""The envelope around every answer: `{"meta": …, "data": …}`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.rpc.admission import Reading
from apiserver.rpc.call import ANONYMOUS, Identity
from apiserver.rpc.encode import Json
from apiserver.rpc.errors import ApiError


@dataclass(slots=True)
class Heard:
    """What a call asked, as the audit log hears of it."""

    request: dict[str, Any]
    tried: str = ""
    """The name of the user as whom somebody tried to log in."""


@dataclass(slots=True)
class Meta:
    """What the envelope says about a request; filled in step by step while the request is served."""

    # It is no secret, so the system is not asked for it, which takes ten times as long.
    id: str = field(default_factory=lambda: f"{random.getrandbits(128):032x}")
    endpoint: str = ""
    requested_version: str | None = None
    actual_version: str | None = None
    reading: Reading | None = None
    """What was admitted, if the endpoint reads."""
    caller: Identity = ANONYMOUS
    heard: Heard | None = None
    """What was asked, if the endpoint is one of which others are told."""


def success(meta: Meta, data: Json) -> Json:
    """A handler's answer in its envelope; in pieces if the answer is."""
    head = _head(meta, 200, 0, "OK", {})
    return [head, *data, b"}"] if isinstance(data, list) else b"".join((head, data, b"}"))


def failure(meta: Meta, error: ApiError) -> bytes:
    """The envelope of an error."""
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
