"""`make bench FLAGS=--quick` runs every section, but for the peers, whose environment is not installed for tests."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from benchmarks.figures import FIGURES
from benchmarks.server import SCANNER
from tests.benchmarks.tables import verdicts


def test_the_table_has_every_figure_with_what_its_bar_compares_with(tmp_path: Path) -> None:
    found = verdicts("benchmarks", tmp_path, {"PEERS_ENVIRONMENT": str(tmp_path)})
    for figure in FIGURES:
        if figure.key.startswith("scanner.") and not find_spec(SCANNER):
            continue
        assert found[figure.name] in (("ok", "misses") if figure.bars else ("",)), figure
