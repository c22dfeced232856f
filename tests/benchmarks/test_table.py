"""What the table says of a figure."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.distributed import __main__ as distributed
from benchmarks.figures import Bar, Figure, least
from benchmarks.table import Table, median_range, number, ratio


def rows_of(*figures: tuple[Figure, float, dict[str, float]]) -> list[list[str]]:
    table = Table(figure for figure, _, _ in figures)
    for figure, value, beside in figures:
        table.put(figure.key, value, beside)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.markdown().splitlines()[2:]]


def test_a_figure_stands_beside_each_thing_it_is_compared_with() -> None:
    figure = Figure("a", "writing", "ns", (Bar(2, "decode"),))
    assert rows_of((figure, 150, {"decode": 100, "peer": 15_000})) == [
        ["writing", "150 ns", "decode", "100", "1.50 ×", "≤ 2 × decode", "ok"],
        ["", "", "peer", "15,000", "1/100", "", ""],
    ]


def test_a_ratio_has_its_range_if_that_is_known() -> None:
    table = Table([Figure("a", "writing", "ns")])
    table.put("a", 103, {"without": 100, "peer": 200}, {"without": (1.0212, 1.04)})
    assert "| 1.03 × (1.021–1.040) |" in table.markdown()
    assert "| 1/1.94 |" in table.markdown()


@pytest.mark.parametrize(
    ("bars", "value", "beside", "verdict"),
    [
        ((Bar(5),), 5, {}, "ok"),
        ((Bar(5),), 5.1, {}, "misses"),
        ((least(5),), 4.9, {}, "misses"),
        ((Bar(1 / 6, "rows"),), 10, {"rows": 61}, "ok"),
        ((Bar(100), Bar(1 / 6, "rows")), 10, {"rows": 59}, "misses"),
        ((Bar(5, "rows"),), 10, {}, ""),
        ((), 10, {}, ""),
    ],
)
def test_a_figure_is_held_against_all_its_bars(
    bars: tuple[Bar, ...], value: float, beside: dict[str, float], verdict: str
) -> None:
    assert rows_of((Figure("a", "a", "ms", bars), value, beside))[0][-1] == verdict


def test_what_was_not_measured_is_left_out() -> None:
    table = Table([Figure("a", "one", "ms"), Figure("b", "other", "ms")])
    table.put("b", 1)
    assert "one" not in table.text()
    assert "other" in table.text()


def test_numbers_have_the_digits_that_count() -> None:
    assert [number(value) for value in (0.0142, 1.234, 12.34, 123.4, 1234.5)] == [
        "0.014",
        "1.23",
        "12.3",
        "123",
        "1,234",
    ]
    assert [ratio(*pair) for pair in ((3.0, 2.0), (2.0, 3.0), (1.0, 0.0))] == ["1.50 ×", "1/1.50", ""]


@pytest.mark.parametrize("section", ["figures", "other figures"])
def test_figures_are_put_between_the_markers_of_their_section(tmp_path: Path, section: str) -> None:
    path = tmp_path / "performance.md"
    (begin, end), (other, others_end) = report.markers(section), report.markers("figures of others")
    around = f"before\n{other}\nkept\n{others_end}\n{begin}{{}}{end}\nafter\n"
    path.write_text(around.format("\nold\n"))
    assert report.has_markers(path, section)
    report.insert(path, "Measured today.", "| a |\n", section)
    assert path.read_text() == around.format("\nMeasured today.\n\n| a |\n")


def test_a_file_without_markers_takes_no_figures(tmp_path: Path) -> None:
    path = tmp_path / "other.md"
    path.write_text("nothing")
    assert not report.has_markers(path)
    assert not report.has_markers(tmp_path / "none.md")


@pytest.mark.parametrize("section", [report.FIGURES, distributed.SECTION, distributed.WITH_REPLICA])
def test_the_documentation_has_its_markers(section: str) -> None:
    assert report.has_markers(Path(__file__).parents[2] / "docs" / "operations" / "figures.md", section)


def test_the_median_is_in_its_range_nearly_always() -> None:
    draw = random.Random(0)
    ranges = [median_range([draw.gauss(1, 0.1) for _ in range(100)]) for _ in range(2000)]
    held = sum(low <= 1 <= high for low, high in ranges)
    assert 0.93 < held / len(ranges) < 0.98
    assert all(high - low < 0.1 for low, high in ranges)


def test_few_values_have_a_range_too() -> None:
    assert median_range([2.0]) == (2.0, 2.0)
    assert median_range([3.0, 1.0, 2.0]) == (1.0, 3.0)
