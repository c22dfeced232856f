"""Fields of events that their type does not have."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from apiserver.events import documents
from apiserver.events.ingest import Ingest
from apiserver.events.model import LogLine, LogPosition
from tests.events.incoming import NOW, log, read, scalar

pytestmark = pytest.mark.usefixtures("way_of_reading")


SAMPLES: dict[str, dict[str, Any]] = {
    "plot": {"plot_str": "{}"},
    "training_debug_image": {"url": "http://f/k"},
    "training_stats_vector": {"values": [1.0]},
}
EXTRA = {
    "rank": 3,
    "tags": ["a", {"b": None}],
    "_id": "x",
    "company_id": "y",
    "extra": "e",
    "value": {"x": 1},
    "no": None,
}
"""Fields that lines of no type have, but vectors, which have a value."""


def events_of(ingest: Ingest) -> list[dict[str, Any]]:
    """Log lines and samples as readers get them."""
    of_logs = [
        documents.log(
            one.owner,
            LogLine(LogPosition(0, 0), one.levels[n], "", one.messages[n], None, "", "", NOW, one.extras.get(n)),
        )
        for one in ingest.batch.logs
        for n in range(len(one.messages))
    ]
    return of_logs + [json.loads(sample.document) for sample in ingest.batch.samples]


@pytest.mark.parametrize("type", ["log", *SAMPLES])
def test_fields_that_a_type_does_not_have_are_kept(type: str) -> None:
    extra = {name: value for name, value in EXTRA.items() if (type, name) != ("training_stats_vector", "value")}
    own = {"type": type, "task": "t1", **SAMPLES.get(type, {"msg": "hello"})}
    servers = {"@timestamp": "then", "plot_len": -1, "source_urls": ["x"], "valid_plot": 5, "method": "get", "ts": 5}
    plain, odd = events_of(read(own, {**own, **servers, **extra}))
    assert {name: odd[name] for name in extra} == extra
    of_the_server = {"timestamp", "@timestamp"}
    assert {name: value for name, value in odd.items() if name not in extra.keys() | of_the_server} == {
        name: value for name, value in plain.items() if name not in of_the_server
    }
    assert odd["@timestamp"] == "2023-11-14T22:13:20.000Z"


@pytest.mark.test
@pytest.mark.parametrize("type", ["log", *SAMPLES])
@pytest.mark.parametrize("value", [{"json": "AAAA"}, {"json": "e30="}, "AAAA", "e30=", None])
def test_a_client_may_have_a_field_with_the_name_of_these(type: str, value: Any) -> None:
    (event,) = events_of(read({"type": type, "task": "t1", "other": 1, "extra": value}))
    assert (event["extra"], event["other"]) == (value, 1)
    (event,) = events_of(read({"type": type, "task": "t1", "extra": value}))
    assert event.get("extra") == value


def test_fields_of_other_types_stay_what_they_are() -> None:
    (event,) = events_of(read({**log(), "key": 5, "plot_str": None, "x_axis_label": ["x"], "skip_validation": "no"}))
    assert (event["key"], event["plot_str"], event["x_axis_label"], event["skip_validation"]) == (5, None, ["x"], "no")


def test_nothing_is_made_up_that_was_not_sent() -> None:
    line, *samples = events_of(
        read(*({"type": type, "task": "t1"} for type in ("log", "plot", "training_debug_image")))
    )
    assert "level" not in line
    assert [sample["type"] for sample in samples] == ["plot", "training_debug_image"]
    for sample in samples:
        assert sample.keys().isdisjoint({"plot_str", "plot_len", "valid_plot", "url", "key"})
    sent = {"level": "", "plot_str": "", "url": "", "key": ""}
    for event in events_of(
        read(*({"type": type, "task": "t1", **sent} for type in ("log", "plot", "training_debug_image")))
    ):
        assert sent.items() <= event.items()


def test_scalars_are_columns() -> None:
    ingest = read(scalar(color="red"))
    assert (ingest.accepted, ingest.rejects.total) == (1, 0)


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 1


@pytest.mark.test
@pytest.mark.parametrize("type", ["log", *SAMPLES])
@pytest.mark.parametrize(
    ("most", "more", "reason"),
    [
        ({f"f{n}": n for n in range(100)}, {f"f{n}": n for n in range(101)}, "at most 100 fields"),
        ({"text": "x" * (64 * 1024 - 11)}, {"text": "x" * (64 * 1024 - 10)}, "longer than 65536 bytes"),
        ({"deep": nested(20)}, {"deep": nested(21)}, "'deep' is nested deeper than 20 levels"),
        ({"x": 1e308}, {"x": math.inf}, "'x': NaN and Infinity"),
        ({"url": "http://h/a"}, {"url": " javascript:x"}, "'url'"),
    ],
)
def test_further_fields_are_bounded_and_cost_their_event_alone(
    type: str, most: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    own = {"type": type, "task": "t1", **SAMPLES.get(type, {"msg": "hello"})}
    ingest = read({**own, **most, "iter": 1}, {**own, **more, "iter": 2}, {**own, "iter": 3})
    assert (ingest.accepted, ingest.rejects.total) == (2, 1)
    assert reason in str(ingest.rejects)
