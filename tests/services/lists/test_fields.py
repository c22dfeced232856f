"""From requests to the fields that are read and answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.services.lists.fields import fields_of, outermost


def test_projections_have_no_field_inside_another() -> None:
    assert fields_of({}).answered is None
    assert fields_of({"only_fields": []}).read is None
    fields = fields_of({"only_fields": ["name", "execution.queue", "execution", "name"]})
    assert fields.answered == fields.read == ["execution", "name"]


def test_a_field_of_another_document_is_read_as_the_reference_to_it() -> None:
    fields = fields_of({"only_fields": ["project.name", "project.tags", "name"]}, ["project"])
    assert (fields.answered, fields.read) == (["name", "project.name", "project.tags"], ["name", "project"])


@pytest.mark.test
@given(st.lists(st.text("ab.", min_size=1, max_size=6)))
def test_the_outermost_fields_are_those_inside_no_other(fields: list[str]) -> None:
    asked = set(fields)
    inside = {field for field in asked if any(field.startswith(f"{other}.") for other in asked)}
    assert outermost(fields) == sorted(asked - inside)


def test_fields_that_are_left_out() -> None:
    task = {"id": "1", "name": "n", "tags": [], "script": {"diff": "d", "tag": "t"}, "models": [{"a": 1, "b": 2}, 3]}
    some = ["-", "-id", "-tags", "-script.diff", "-models.a", "-name.x", "-no.such"]
    fields_of({"only_fields": some}).leave_out([task])
    assert task == {"id": "1", "name": "n", "script": {"tag": "t"}, "models": [{"b": 2}, 3]}
    fields_of({"only_fields": ["-script.tag", "-script"]}).leave_out([task])
    assert "script" not in task
