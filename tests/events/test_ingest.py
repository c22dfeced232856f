"""From the bytes of a request to columns."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events import scan
from apiserver.events.columns import MAX_NAME_BYTES
from apiserver.events.ingest import ingest_lines, ingest_object
from apiserver.events.lines import MAX_MALFORMED, Stopped
from apiserver.events.model import EventType, Owner, ScalarColumns
from apiserver.events.rejects import MAX_REASONS, OTHER_REASONS, Contradiction
from tests.events.incoming import NOW, TASK, log, read, scalar

pytestmark = pytest.mark.usefixtures("way_of_reading")


def test_points_are_grouped_by_series_in_the_order_they_came() -> None:
    ingest = read(scalar(iter=2, value=1), scalar(variant="w", iter=5, value=9), scalar(iter=1, value=3))
    (v, w) = ingest.batch.scalars
    assert (v.variant, v.iters.tolist(), v.values.tolist()) == ("v", [2, 1], [1.0, 3.0])
    assert (w.variant, w.iters.tolist(), w.values.tolist()) == ("w", [5], [9.0])
    assert v.owner == TASK
    assert ingest.accepted == 3


@pytest.mark.parametrize("field", ["worker", "x_axis_label"])
def test_points_of_a_series_stay_in_order_whoever_sent_them(field: str) -> None:
    sent = [scalar(iter=1, value=n, **{field: name}) for n, name in enumerate("abacca")]
    groups = list(read(*sent, scalar(variant="w")).batch.scalars)
    assert [value for group in groups if group.variant == "v" for value in group.values.tolist()] == [0, 1, 2, 3, 4, 5]
    assert [getattr(group, field) for group in groups if group.variant == "v"] == ["a", "b", "a", "c", "a"]


def test_a_missing_timestamp_is_now_and_a_missing_worker_the_clients() -> None:
    (group,) = read(scalar(), scalar(timestamp=5)).batch.scalars
    assert group.timestamps.tolist() == [NOW, 5]
    assert group.worker == "header-worker"


def test_the_junk_that_the_sdk_adds_is_ignored() -> None:
    ingest = read(scalar(method="get", whatever={"a": [1]}, allow_locked=False, model_event=False))
    assert ingest.accepted == 1
    assert not ingest.rejects.total


def test_timestamps_have_an_old_name_that_may_come_beside_the_new_one() -> None:
    spelled: list[Any] = [None, 5, "what?", {}]
    for old in spelled:
        (group,) = read(scalar(timestamp=NOW, ts=old)).batch.scalars
        assert group.timestamps.tolist() == [NOW]


@pytest.mark.test
@pytest.mark.parametrize(
    ("given_fields", "iter", "timestamp", "value"),
    [
        ({"iter": "7"}, 7, NOW, 2.0),
        ({"iter": 8.9}, 8, NOW, 2.0),
        ({"iter": None}, 0, NOW, 2.0),
        ({"value": None}, 1, NOW, math.nan),
        ({"value": "12.5"}, 1, NOW, 12.5),
        ({"value": "NaN"}, 1, NOW, math.nan),
        ({"value": "-Infinity"}, 1, NOW, -math.inf),
        ({"value": math.nan}, 1, NOW, math.nan),
        ({"value": math.inf, "iter": "7"}, 7, NOW, math.inf),
        ({"value": -math.inf, "else": math.nan}, 1, NOW, -math.inf),
        ({"value": 3}, 1, NOW, 3.0),
        ({"timestamp": 5.7}, 1, 5, 2.0),
        ({"timestamp": "1970-01-01T00:00:01Z"}, 1, 1000, 2.0),
        ({"ts": 99}, 1, 99, 2.0),
        ({"ts": "1970-01-01T00:00:01Z"}, 1, 1000, 2.0),
        ({"ts": 1.0}, 1, 1, 2.0),
        ({"ts": 1, "metric": '"ts"'}, 1, 1, 2.0),
        ({"type": "training stats scalar"}, 1, NOW, 2.0),
        ({"iter": -(2**31)}, -(2**31), NOW, 2.0),
        ({"iter": 2**63 - 1}, 2**63 - 1, NOW, 2.0),
    ],
)
def test_odd_spellings_are_understood(given_fields: dict[str, Any], iter: int, timestamp: int, value: float) -> None:
    event = scalar(**given_fields)
    if "ts" in given_fields:
        event.pop("timestamp", None)
    ingest = read(event)
    assert not ingest.rejects.total
    (group,) = ingest.batch.scalars
    assert group.iters.tolist() == [iter]
    assert group.timestamps.tolist() == [timestamp]
    np.testing.assert_array_equal(group.values, [value])


@pytest.mark.test
@pytest.mark.parametrize(
    ("line", "field"),
    [
        (scalar(iter="abc"), "iter"),
        (scalar(iter=2**63), "iter"),
        (scalar(iter=-(2**63) - 1), "iter"),
        (scalar(iter="9" * 40), "iter"),
        (scalar(iter=[1]), "iter"),
        (scalar(value="abc"), "value"),
        (scalar(value={"a": 1}), "value"),
        (scalar(value=True), "value"),
        (scalar(value=-math.inf, iter=math.inf), "iter"),
        (scalar(timestamp=math.nan), "timestamp"),
        ('{"type":"training_stats_scalar","task":"t1","value":1e400}', "value"),
        ('{"type":"training_stats_scalar","task":"t1","value":-1e400,"x":NaN}', "value"),
        ('{"type":"training_stats_scalar","task":"t1","value":' + "9" * 400 + "}", "value"),
        (scalar(timestamp="yesterday"), "timestamp"),
        (scalar(timestamp=2**70), "timestamp"),
        (scalar(timestamp=-(2**62)), "timestamp"),
        (scalar(timestamp=2**62), "timestamp"),
        (scalar(timestamp="--5"), "timestamp"),
        (scalar(iter="--5"), "iter"),
        (scalar(iter="٣"), "iter"),
        (scalar(value="1_0"), "value"),
        (scalar(metric={"a": 1}), "metric"),
        (scalar(metric=math.nan), "metric"),
        ('{"type":"log","task":"t1","msg":NaN}', "msg"),
        ('{"type":"plot","task":"t1","plot_str":-Infinity}', "plot_str"),
        (scalar(metric="m" * (MAX_NAME_BYTES + 1)), "metric"),
        (scalar(x_axis_label="x" * (MAX_NAME_BYTES + 1)), "x_axis_label"),
        (scalar(task="t" * 200), "task"),
        (scalar(model_event="maybe"), "model_event"),
        ({"type": "plot", "task": "t1", "plot_str": {"data": []}}, "plot_str"),
        ({"type": "training_stats_vector", "task": "t1", "values": [1, "x"]}, "values[1]"),
        ({"type": "training_stats_vector", "task": "t1", "values": 3}, "values"),
    ],
)
def test_a_wrong_field_is_named_and_costs_only_its_line(line: dict[str, Any] | str, field: str) -> None:
    ingest = read(scalar(iter=1), line, scalar(iter=2))
    assert ingest.accepted == 2
    assert ingest.rejects.total == 1
    assert ingest.rejects.field == field
    assert field in next(iter(ingest.rejects.reasons))


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "log", "task": ',
        "[1,2]",
        "nonsense",
        '"text"',
        "[" * 100_000,
        '{"x":' + "[" * 1500 + "]" * 1500 + "}",
        "3",
        '{"a":1}}',
    ],
)
def test_a_malformed_line_costs_only_itself_and_is_told_by_number(line: str) -> None:
    ingest = read(scalar(iter=1), line, scalar(iter=2))
    assert ingest.accepted == 2
    assert ingest.rejects.total == 1
    assert ingest.rejects.lines == [2]


@pytest.mark.test
def test_a_body_without_end_of_malformed_lines_is_no_batch() -> None:
    with pytest.raises(Contradiction, match="malformed lines"):
        ingest_lines(b"x\n" * (MAX_MALFORMED + 1), company="acme", received=NOW, worker="")


def test_only_so_many_reasons_are_told() -> None:
    ingest = read(*({"type": f"nope {number}", "task": "t1"} for number in range(MAX_REASONS + 50)))
    assert len(ingest.rejects.reasons) == MAX_REASONS + 1
    assert ingest.rejects.reasons[OTHER_REASONS] == 50
    assert ingest.rejects.total == MAX_REASONS + 50


def test_reasons_are_those_that_clients_know() -> None:
    ingest = read(
        scalar(),
        {"type": "nope", "task": "t1"},
        {"type": "log"},
        {"task": "t1"},
        {"type": "log", "task": "m1", "model_event": True, "msg": "x"},
    )
    assert ingest.rejects.reasons == {
        "Invalid event type nope": 1,
        "Event must have a 'task' field": 1,
        "Event must have a 'type' field": 1,
        "Task log events are not supported for models": 1,
    }
    assert ingest.rejects.refused == 4


def test_line_feeds_of_any_kind_and_blank_lines_are_fine() -> None:
    body = (json.dumps(scalar()) + "\r\n\r\n" + json.dumps(log()) + "\n\n").encode()
    assert ingest_lines(body, company="acme", received=NOW, worker="").accepted == 2


def test_undecodable_console_output_is_kept_with_its_bad_characters_replaced() -> None:
    ingest = read('{"type":"log","task":"t1","msg":"bad \\udcff byte"}')
    assert ingest.batch.logs[0].messages == ["bad ? byte"]


def test_log_lines_have_an_identity_only_when_each_carries_its_time() -> None:
    assert read(log(), log()).batch.logs[0].digest is not None
    assert read(log(), log(timestamp=None)).batch.logs[0].digest is None
    assert read(log()).batch.logs[0].digest == read(log()).batch.logs[0].digest
    assert read(log()).batch.logs[0].digest != read(log(msg="other")).batch.logs[0].digest


def test_log_lines_keep_every_column() -> None:
    (logs,) = read(log(iter=3, metric="stdout", variant="x", worker="w1"), log(msg="two\nlines")).batch.logs
    assert logs.messages == ["hello", "two\nlines"]
    assert logs.workers == ["w1", "header-worker"]
    assert logs.iters == [3, None]
    assert logs.metrics == ["stdout", ""]
    assert logs.variants == ["x", ""]
    assert logs.levels == ["info", "info"]


def test_a_log_line_with_an_overlong_name_does_not_cost_its_neighbours() -> None:
    ingest = read(log(), log(worker="w" * 5000), log())
    assert ingest.accepted == 2
    assert ingest.rejects.field == "worker"


def test_model_events_belong_to_the_model() -> None:
    ingest = read(scalar(task="m1", model_event=True), {**scalar(task=None, model="m2")})
    assert [group.owner for group in ingest.batch.scalars] == [Owner("acme", "m1", True), Owner("acme", "m2", True)]


@pytest.mark.parametrize("other", [{"allow_locked": True}, {"model_event": True}])
def test_lines_that_contradict_each_other_about_a_task_are_refused_together(other: dict[str, Any]) -> None:
    with pytest.raises(Contradiction, match="t1"):
        read(scalar(), scalar(**other))


def test_plots_know_their_length_and_the_images_they_show() -> None:
    figure = json.dumps({"data": [], "layout": {"images": [{"source": "http://files/x.png"}, {"no": 1}, 5]}})
    (sample,) = read(
        {"type": "plot", "task": "t1", "metric": "p", "variant": "v", "iter": 4, "plot_str": figure}
    ).batch.samples
    document = json.loads(sample.document)
    assert sample.type is EventType.PLOT
    assert document["plot_str"] == figure
    assert document["plot_len"] == len(figure)
    assert document["source_urls"] == ["http://files/x.png"]
    assert document["@timestamp"] == "2023-11-14T22:13:20.000Z"
    assert document["model_event"] is False


def test_a_plot_that_is_no_figure_is_kept_and_marked() -> None:
    (sample,) = read({"type": "plot", "task": "t1", "plot_str": "no json"}).batch.samples
    assert json.loads(sample.document)["valid_plot"] is False
    (unchecked,) = read({"type": "plot", "task": "t1", "plot_str": "no json", "skip_validation": True}).batch.samples
    assert "valid_plot" not in json.loads(unchecked.document)


def test_an_image_is_identified_by_its_key() -> None:
    (sample,) = read(
        {"type": "training_debug_image", "task": "t1", "iter": 1, "key": "k", "url": "http://f/k"}
    ).batch.samples
    assert (sample.type, sample.key, sample.iter) == (EventType.IMAGE, "k", 1)


@pytest.mark.parametrize("field", ["value", "values"])
def test_a_vector_may_come_under_either_name(field: str) -> None:
    (sample,) = read({"type": "training_stats_vector", "task": "t1", field: [1, 2.5]}).batch.samples
    assert json.loads(sample.document)["value"] == [1, 2.5]


def test_plots_with_different_keys_are_different_ones() -> None:
    plots = read(*({"type": "plot", "task": "t1", "plot_str": "{}", "key": key} for key in ("a", "b"))).batch.samples
    assert [plot.key for plot in plots] == ["a", "b"]


def test_refused_owners_take_their_events_along() -> None:
    ingest = read(scalar(), scalar(task="t2"), log(task="t2"), {"type": "plot", "task": "t2", "plot_str": "{}"})
    ingest.refuse({Owner("acme", "t2"): "Invalid task id t2"})
    assert ingest.accepted == 1
    assert ingest.rejects.reasons == {"Invalid task id t2": 3}


_points = st.fixed_dictionaries(
    {"task": st.sampled_from(["t1", "t1", "t2", ""]), "iter": st.integers(0, 3)},
    optional={
        "metric": st.sampled_from(["m", "n" * 250, "o" * (MAX_NAME_BYTES + 1), "ä" * (MAX_NAME_BYTES // 2 + 1)]),
        "variant": st.sampled_from(["w", "v" * 100]),
        "worker": st.sampled_from(["a", "b" * 100]),
        "x_axis_label": st.sampled_from(["epoch", "c" * (MAX_NAME_BYTES + 1)]),
    },
)


@pytest.mark.test
@given(st.lists(_points, min_size=1, max_size=6))
def test_each_point_is_taken_or_refused_as_if_it_came_alone(points: list[dict[str, Any]]) -> None:
    alone = [read(scalar(**point)) for point in points]
    together = read(*(scalar(**point) for point in points))
    assert together.accepted == sum(each.accepted for each in alone)
    assert together.rejects.reasons == Counter(reason for each in alone for reason in each.rejects.reasons)
    points_of = Counter(name for group in together.batch.scalars for name in [_names_of(group)] * len(group.iters))
    assert points_of == Counter(_names_of(group) for each in alone for group in each.batch.scalars)


def _names_of(group: ScalarColumns) -> tuple[str, ...]:
    return group.owner.id, group.metric, group.variant, group.worker, group.x_axis_label or ""


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
_field_names = st.sampled_from(
    ["type", "task", "model", "iter", "timestamp", "value", "values", "metric", "variant", "msg", "key", "worker"]
)
_events = st.dictionaries(_field_names, _json).flatmap(
    lambda event: st.sampled_from([event, {**event, "type": "log"}, {**scalar(), **event}, {**event, "type": "plot"}])
)


@pytest.mark.test
@given(_events)
def test_any_object_is_taken_or_rejected_for_a_reason(event: dict[str, Any]) -> None:
    try:
        ingest = ingest_object(event, company="acme", received=NOW, worker="", body=b"")
    except Contradiction:
        return
    assert ingest.accepted + ingest.rejects.total == 1


@pytest.mark.test
@given(st.lists(st.one_of(st.binary(max_size=40), _events.map(lambda event: json.dumps(event).encode())), max_size=6))
def test_any_body_is_accounted_for_line_by_line(lines: list[bytes]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    expected = sum(bool(line.strip()) for line in lines)
    try:
        ingest = ingest_lines(b"\n".join(lines), company="acme", received=NOW, worker="")
    except Contradiction:
        return
    assert ingest.accepted + ingest.rejects.total == expected


@pytest.mark.test
@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)), min_size=1)
)
def test_numbers_arrive_unchanged(points: list[tuple[int, float]]) -> None:
    (group,) = read(*(scalar(iter=iter, value=value) for iter, value in points)).batch.scalars
    assert group.iters.tolist() == [iter for iter, _ in points]
    assert group.values.tolist() == [value for _, value in points]


@pytest.mark.test
@given(
    st.lists(st.sampled_from([math.nan, math.inf, -math.inf]) | st.floats(allow_nan=False), min_size=1),
    st.booleans(),
    st.booleans(),
)
def test_a_value_that_is_no_number_is_the_same_bare_and_as_text(
    values: list[float], odd: bool, with_scanner: bool
) -> None:
    words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    more = {"iter": "5"} if odd else {}
    texts = [words.get(repr(value), value) for value in values]
    with pytest.MonkeyPatch.context() as patch:
        if not with_scanner:
            patch.setattr(scan, "scanner", None)
        bare = read(*(scalar(value=value, **more) for value in values)).batch.scalars
        spelled = read(*(scalar(value=text, **more) for text in texts)).batch.scalars
    assert bare.values.tobytes() == spelled.values.tobytes() == np.array(values).tobytes()
    assert bare.iters.tolist() == spelled.iters.tolist()


def test_what_is_wrong_is_named_in_full() -> None:
    ingest = read('{"task" "t"}', scalar(model="m" * 200))
    assert list(ingest.rejects.reasons) == [
        "A line is not valid JSON (Expecting ':' delimiter)",
        "field 'model' is longer than 128 bytes",
    ]


def test_odd_lines_are_read_until_told_to_stop() -> None:
    body = b"\n".join([b'{"type":"log","task":"t1","ts":1}'] * 1000)
    looks = iter([False, False, True])
    with pytest.raises(Stopped):
        ingest_lines(body, company="acme", received=NOW, worker="", stop=lambda: next(looks))
    assert next(looks, "asked three times") == "asked three times"
    assert ingest_lines(body, company="acme", received=NOW, worker="").accepted == 1000
