"""`make bench FLAGS=--quick` runs every section, but for the peers, whose environment is not installed for tests."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.figures import FIGURES, Figure
from benchmarks.server import SCANNER
from tests.benchmarks.tables import verdicts

#: Sections that `make check` runs. All of them take a minute.
SOME = ("writing", "reading", "data")


def measured(folder: Path, *flags: str) -> dict[str, str]:
    """The verdicts of a run, by the names of figures."""
    return verdicts("benchmarks", folder, {"PEERS_ENVIRONMENT": str(folder)}, *flags)


def assert_judged(figure: Figure, found: dict[str, str]) -> None:
    """The figure is there, with what its bars compare with."""
    assert found[figure.name] in (("ok", "misses") if figure.bars else ("",)), figure


def test_some_sections_fill_their_part_of_the_table(tmp_path: Path) -> None:
    found = measured(tmp_path, "--only", ",".join(SOME))
    figures = [figure for figure in FIGURES if figure.name in found]
    assert {"write", "histogram", "data"} <= {figure.key.partition(".")[0] for figure in figures}
    for figure in figures:
        assert_judged(figure, found)


@pytest.mark.longer
def test_the_table_has_every_figure_with_what_its_bar_compares_with(tmp_path: Path) -> None:
    found = measured(tmp_path)
    for figure in FIGURES:
        if find_spec(SCANNER) or not figure.key.startswith("scanner."):
            assert_judged(figure, found)
