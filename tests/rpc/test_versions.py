"""Paths and versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from apiserver.rpc.errors import ApiError
from apiserver.rpc.routes import Route, newest_at_most
from apiserver.rpc.versions import NEWEST, Version, not_found, split_path


@dataclass(frozen=True)
class Answerer:
    since: Version


@pytest.mark.parametrize(
    ("path", "version", "name"),
    [
        ("/v2.9/events.get_task_log", Version(2, 9), "events.get_task_log"),
        ("/v999.0/events.add", Version(999, 0), "events.add"),
        ("/events.add_batch", NEWEST, "events.add_batch"),
    ],
)
def test_a_path_names_version_and_endpoint(path: str, version: Version, name: str) -> None:
    assert split_path(path) == (version, name)


@pytest.mark.parametrize(
    "path",
    [
        "/vabc/events.add",
        "/v2/events.add",
        "/v2.1.3/events.add",
        "/v2.1/events",
        "/events",
        "/",
        "",
        "/v2.1/",
        "/v2.1/events.add/",
        "/v2.1/events.add.more",
        "/v-2.1/events.add",
        "/v2.1/.add",
        "/v2.1/events.",
        "/v٢.1/events.add",
        "/v2.1/events.add\n",
        "/v" + "9" * 5000 + ".1/events.add",
        "//v2.1/events.add",
        "/v2.1/../events.add",
    ],
)
def test_a_malformed_path_is_refused_with_its_text(path: str) -> None:
    with pytest.raises(ApiError) as refused:
        split_path(path)
    assert (refused.value.code, refused.value.subcode) == (400, 0)
    assert refused.value.message == f"Invalid request path {path[:200]}"


def test_versions_are_ordered_by_number_not_text() -> None:
    assert Version.parse("2.9") < Version.parse("2.12") < Version.parse("10.0")
    assert str(Version.parse("2.10")) == "2.10"


@pytest.mark.parametrize(
    ("requested", "answered"), [("1.5", "1.5"), ("1.6", "1.5"), ("1.7", "1.7"), ("2.8", "1.7"), ("2.9", "2.9"),
                                ("2.34", "2.9"), ("999.0", "2.9"), ("1.0", "1.5"), ("1.4", "1.5"), ("0.9", None)],
)  # fmt: skip
def test_the_newest_up_to_the_requested_version_answers_or_else_the_first(requested: str, answered: str | None) -> None:
    floors = [Answerer(Version.parse(floor)) for floor in ("1.5", "1.7", "2.9")]
    found = newest_at_most(cast(list[Route], floors), Version.parse(requested))
    assert (str(found.since) if found else None) == answered


def test_what_nothing_answers_is_not_found() -> None:
    error = not_found("events.nope", Version(2, 1))
    assert (error.code, error.subcode) == (404, 0)
    assert error.message == "Unable to find endpoint for name events.nope and version 2.1"
