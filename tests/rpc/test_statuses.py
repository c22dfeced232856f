"""Each reason to refuse a call has a status and a subcode."""

from __future__ import annotations

from apiserver.common.errors import Refusal, Why, overloaded, validation_error
from apiserver.rpc.statuses import STATUSES, answer_to


def test_each_reason_has_an_error_of_http() -> None:
    assert [why for why in Why if answer_to(Refusal(why, "")).code < 400] == []
    assert [*STATUSES] == [*Why], "the table is in the order of the reasons"


def test_an_answer_says_what_the_refusal_says() -> None:
    invalid = answer_to(validation_error("it is long", field="name"))
    assert (invalid.code, invalid.subcode, invalid.data) == (400, 12, {"field": "name"})
    assert (invalid.message, invalid.reason) == ("Validation error (field 'name': it is long)", "name: it is long")
    assert answer_to(overloaded("wait", 7)).retry_after == 7
