"""Random batches of events, and of what is asked of them: few names and numbers, so that they meet."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from apiserver.events.model import (
    SAMPLE_TYPES,
    SINGLE_VALUE_ITERATION,
    EventBatch,
    EventType,
    LogColumns,
    MetricSelection,
    Owner,
    Sample,
    ScalarColumns,
    Scalars,
)
from apiserver.events.queries import Range, SeriesQuery

OWNERS = (Owner("company", "task"), Owner("company", "task", is_model=True))

owners = st.sampled_from(OWNERS)
metrics = st.sampled_from(["a", "b"])
variants = st.sampled_from(["x", "y"])
extremes = st.sampled_from([-(2**63), -(2**63) + 3, 2**63 - 4, 2**63 - 1])
iterations = st.one_of(
    st.integers(-3, 20), st.integers(-3, 20), st.just(SINGLE_VALUE_ITERATION), st.just(2**40), extremes
)
times = st.one_of(st.integers(-5, 30), st.integers(-5, 30), extremes)
# No sum of these depends much on the order of its terms.
values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e300, 5e-324, -2.5, math.nan, math.inf, -math.inf]) | st.floats(
    -1000, 1000
)
texts = st.sampled_from(["", "one", "two\0", "three ÿ"])


@st.composite
def scalars(draw: st.DrawFn) -> ScalarColumns:
    """Points in any order, or a run of increasing iterations."""
    if draw(st.booleans()):
        start, length = draw(st.integers(-3, 40)), draw(st.integers(1, 25))
        rows = [(start + n, start + n, draw(values)) for n in range(length)]
    else:
        rows = draw(st.lists(st.tuples(iterations, times, values), min_size=1, max_size=6))
    columns = list(zip(*rows, strict=True))
    return ScalarColumns(
        draw(owners),
        draw(metrics),
        draw(variants),
        draw(texts),
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.float64),
    )


@st.composite
def logs(draw: st.DrawFn) -> LogColumns:
    row = st.tuples(times, st.none() | texts, texts, texts, st.none() | st.integers(0, 3), metrics, variants)
    rows = draw(st.lists(row, min_size=1, max_size=8))
    timestamps, levels, workers, messages, iters, names, kinds = (list(column) for column in zip(*rows, strict=True))
    return LogColumns(
        owner=draw(owners),
        timestamps=np.array(timestamps, np.int64),
        levels=levels,
        workers=workers,
        messages=messages,
        iters=iters,
        metrics=names,
        variants=kinds,
        digest=draw(st.none() | st.binary(min_size=8, max_size=8)),
        extras=draw(
            st.dictionaries(st.integers(0, len(rows) - 1), st.sampled_from([b'{"a":1}', b'{"b":[]}']), max_size=2)
        ),
    )


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    return Sample(
        draw(owners),
        draw(st.sampled_from(SAMPLE_TYPES)),
        draw(metrics),
        draw(variants),
        draw(st.integers(-1, 5)),
        draw(st.sampled_from(["", "k"])),
        draw(times),
        draw(st.sampled_from([b"{}", b'{"x":1}', b'{"x":2}'])),
    )


batches = st.builds(
    EventBatch,
    received=st.integers(0, 3),
    scalars=st.lists(scalars(), max_size=4).map(Scalars.of),
    logs=st.lists(logs(), max_size=2),
    samples=st.lists(samples(), max_size=4),
)
types = st.none() | st.lists(st.sampled_from(EventType), min_size=1, max_size=2)
selections = st.lists(st.sampled_from([MetricSelection("a"), MetricSelection("b", ("x",))]), max_size=1)
sample_series = st.builds(SeriesQuery, owners, st.sampled_from(SAMPLE_TYPES), selections)
ranges = st.builds(Range.of, st.none() | st.integers(-1, 5), st.none() | st.integers(-1, 5))
scalar_series = st.builds(SeriesQuery, owners, st.just(EventType.SCALAR), selections)
log_series = st.builds(SeriesQuery, owners, st.just(EventType.LOG), selections)
