"""The envelope around answers."""

from __future__ import annotations

import json
import re

from apiserver.rpc.encode import Json
from apiserver.rpc.envelope import Meta, failure, success
from apiserver.rpc.errors import ApiError


def test_an_answer_has_the_meta_that_clients_read() -> None:
    meta = Meta("0" * 32, "events.add", "999.0", "1.0")
    assert json.loads(_whole(success(meta, b'{"added":1}'))) == {
        "meta": {
            "id": "0" * 32,
            "trx": "0" * 32,
            "endpoint": {"name": "events.add", "requested_version": "999.0", "actual_version": "1.0"},
            "result_code": 200,
            "result_subcode": 0,
            "result_msg": "OK",
            "error_stack": None,
            "error_data": {},
        },
        "data": {"added": 1},
    }


def test_an_error_has_its_code_and_no_data() -> None:
    error = ApiError(400, 12, "Validation error", data={"field": "task"})
    answer = json.loads(failure(Meta("0" * 32), error))
    assert answer["data"] == {}
    assert answer["meta"]["result_code"] == 400
    assert answer["meta"]["result_subcode"] == 12
    assert answer["meta"]["result_msg"] == "Validation error"
    assert answer["meta"]["error_data"] == {"field": "task"}
    assert answer["meta"]["error_stack"] is None
    assert answer["meta"]["endpoint"] == {"name": "", "requested_version": None, "actual_version": None}


def test_ids_are_32_hex_digits_and_unique() -> None:
    first, second = Meta().id, Meta().id
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert first != second


def test_encoded_data_is_passed_on_untouched() -> None:
    assert _whole(success(Meta(), b'{"y":  [1.50]}')).endswith(b',"data":{"y":  [1.50]}}')
    meta = Meta()
    assert _whole(success(meta, [b'{"y":', b"  [1.5", b"0]}"])) == success(meta, b'{"y":  [1.50]}')


def _whole(json: Json) -> bytes:
    return json if isinstance(json, bytes) else b"".join(json)
