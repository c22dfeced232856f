"""`make bench-engines FLAGS=--quick` measures every figure on the engines of the tests."""

from __future__ import annotations

from pathlib import Path

from benchmarks.distributed.figures import FIGURES
from tests.benchmarks.tables import verdicts
from tests.engines import elasticsearch, mongodb


def test_the_table_has_every_figure_and_nothing_stays(elasticsearch_url: str, mongodb_url: str, tmp_path: Path) -> None:
    found = verdicts(
        "benchmarks.distributed", tmp_path, {elasticsearch.VARIABLE: elasticsearch_url, mongodb.VARIABLE: mongodb_url}
    )
    for figure in FIGURES:
        assert found[figure.name] in (("ok", "misses") if figure.bars else ("",)), figure
    assert not [name for name in elasticsearch.call(elasticsearch_url, "GET", "/_all") if name.startswith("bench-")]
