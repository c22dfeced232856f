"""`make bench-engines FLAGS=--quick` measures every figure on the engines of the tests, and with a replica."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.distributed.figures import FIGURES, ONE_SERVER, scaled
from benchmarks.figures import Bar, least
from tests.benchmarks.tables import verdicts
from tests.engines import elasticsearch, mongodb


@pytest.mark.longer
def test_the_table_has_every_figure_and_nothing_stays(elasticsearch_url: str, mongodb_url: str, tmp_path: Path) -> None:
    found = verdicts(
        "benchmarks.distributed", tmp_path, {elasticsearch.VARIABLE: elasticsearch_url, mongodb.VARIABLE: mongodb_url}
    )
    for figure in FIGURES:
        assert found[figure.name] in (("ok", "misses") if figure.bars else ("",)), figure
    assert not [name for name in elasticsearch.call(elasticsearch_url, "GET", "/_all") if name.startswith("bench-")]


def test_with_a_replica_bars_for_writing_are_for_the_work_of_two_copies() -> None:
    bars = {figure.key: figure.bars for figure in scaled(2)}
    assert bars["write.rate"] == (least(100_000),)
    assert bars["write.servers"] == (least(100_000), Bar(1, ONE_SERVER, at_least=True))
    assert bars["write.node"] == (Bar(6_000),)
    assert bars["delete"] == (Bar(800),)
    assert bars["copy.points.there"] == (least(500_000),)
    assert {key for key, some in bars.items() if some != {one.key: one.bars for one in FIGURES}[key]} == {
        *("write.rate", "write.node", "write.four", "write.servers", "write.short", "write.small"),
        *("log.rate", "copy.points.there", "delete"),
    }


@pytest.mark.longer
def test_all_is_measured_with_a_replica_too(elasticsearch_url: str, mongodb_url: str, tmp_path: Path) -> None:
    """The URL of Elasticsearch only says that there can be one: two nodes of their own are started."""
    found = verdicts("benchmarks.distributed", tmp_path, {mongodb.VARIABLE: mongodb_url}, "--replica")
    assert {figure.name for figure in FIGURES} <= found.keys()
