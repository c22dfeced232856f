"""How much a body may hold, and that what is too much costs itself alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.events.columns import MAX_SAMPLES, MAX_SERIES
from apiserver.events.figures import MOST_VALUES
from apiserver.events.ingest import ingest_lines
from apiserver.events.model import Owner
from tests.events.incoming import NOW, read, scalar

pytestmark = pytest.mark.usefixtures("way_of_reading")


@pytest.mark.test
def test_any_number_of_owners_is_refused_as_quickly_as_one() -> None:
    ingest = read(*(scalar(task=f"t{n}") for n in range(MAX_SERIES)))  # half a minute, if each looked at all points
    kept = Owner("acme", "t7")
    ingest.refuse({owner: f"Invalid task id {owner.id}" for owner in ingest.locked_allowed if owner != kept})
    assert (ingest.accepted, ingest.rejects.total, ingest.batch.scalars.owners) == (1, MAX_SERIES - 1, [kept])


@pytest.mark.test
@pytest.mark.parametrize("fields", ["", '"ts":5,', '"value":NaN,', '"iter":"5",'])
def test_a_line_with_too_many_values_costs_itself_alone(fields: str) -> None:
    crowded = '{"type":"training_stats_vector","task":"t1",' + fields + '"values":[' + "1," * MOST_VALUES + "1]}"
    ingest = read(scalar(), crowded, scalar(iter=9))
    assert ingest.accepted == 2
    assert dict(ingest.rejects.reasons) == {"A line holds more than 500,000 values": 1}
    assert ingest.rejects.lines == [2]


@pytest.mark.test
def test_many_values_are_fine_in_many_lines_and_in_a_text() -> None:
    text = json.dumps({"type": "log", "task": "t1", "msg": "[,{" * MOST_VALUES})
    vector = '{"type":"training_stats_vector","task":"t1","values":[' + "1," * (MOST_VALUES - 20) + "1]}"
    ingest = read(text, vector, vector)
    assert (ingest.accepted, ingest.rejects.total) == (3, 0)


@pytest.mark.parametrize("fields", ['"ts":5,', '"value":NaN,', '"iter":"5",'])
def test_a_line_that_is_nested_too_deeply_costs_itself_alone(fields: str) -> None:
    ingest = read(scalar(), "{" + fields + '"a":' + "[" * 900 + "]" * 900 + "}")
    assert ingest.accepted == 1
    assert dict(ingest.rejects.reasons) == {"A line is nested deeper than 64 levels": 1}


@pytest.mark.test
def test_a_figure_that_holds_too_much_is_not_parsed_for_its_images() -> None:
    layout = '"layout": {"images": [{"source": "http://a/b.png"}]}'
    many = '{"data": [' + "0," * MOST_VALUES + "0], " + layout + "}"
    plots = ["{" + layout + "}", many, "[" + "0," * MOST_VALUES + "0]"]
    ingest = read(
        *({"type": "plot", "task": "t1", "metric": f"m{n}", "plot_str": text} for n, text in enumerate(plots))
    )
    facts = [json.loads(sample.document) for sample in ingest.batch.samples]
    assert [fact.get("source_urls") for fact in facts] == [["http://a/b.png"], None, None]
    assert [fact["plot_len"] for fact in facts] == [len(text) for text in plots]


@pytest.mark.test
@pytest.mark.parametrize("odd", [{}, {"iter": "1"}, {"ts": NOW}], ids=["plain", "odd", "old"])
def test_a_batch_has_a_bound_of_series_and_further_ones_cost_themselves_alone(odd: dict[str, Any]) -> None:
    many = [scalar(variant=f"v{n}", **odd) for n in range(MAX_SERIES + 3)]
    ingest = read(*many, many[-1], many[0])
    assert ingest.accepted == MAX_SERIES + 1
    assert ingest.batch.scalars.variants == [f"v{n}" for n in range(MAX_SERIES)]
    assert dict(ingest.rejects.reasons) == {"A batch has at most 10,000 scalar series, of each worker": 4}


@pytest.mark.test
def test_what_no_client_sends_may_have_any_number_of_series() -> None:
    lines = [json.dumps(scalar(variant=f"v{n}")) for n in range(MAX_SERIES + 3)]
    body = "\n".join(lines).encode()
    ingest = ingest_lines(body, company="acme", received=NOW, worker="w", bounded=False)
    assert (ingest.accepted, ingest.rejects.total) == (MAX_SERIES + 3, 0)


@pytest.mark.test
def test_a_batch_has_a_bound_of_samples() -> None:
    image = {"type": "training_debug_image", "task": "t1", "variant": "v", "url": "http://files/a.png"}
    ingest = read(scalar(), *({**image, "metric": f"m{n}"} for n in range(MAX_SAMPLES + 3)))
    assert ingest.accepted == MAX_SAMPLES + 1
    assert dict(ingest.rejects.reasons) == {"A batch has at most 10,000 plots, images and vectors": 3}
