"""Which series a selection means, and how much memory it takes to tell."""

from __future__ import annotations

import tracemalloc

from apiserver.events.model import MetricSelection
from apiserver.stores.events.codec.names import matcher


def test_what_a_selection_means() -> None:
    everything = matcher([])
    matches = matcher([MetricSelection("a", ("x",)), MetricSelection("b"), MetricSelection("a", ("y",))])
    names = [(metric, variant) for metric in "abc" for variant in "xyz"]
    assert all(everything(*name) for name in names)
    assert [name for name in names if matches(*name)] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("b", "z")]


def test_a_thousand_metrics_with_the_same_variants_take_little_memory() -> None:
    variants = tuple(f"variant {n}" for n in range(1000))
    selection = [MetricSelection(f"metric {n}", variants) for n in range(1000)]
    tracemalloc.start()
    try:
        matches = matcher(selection)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert matches("metric 999", "variant 0")
    assert not matches("metric 999", "variant 1000")
    assert peak < 2**20
