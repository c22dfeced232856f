"""Points and buckets of curves, in every format."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import arro3.io
import pytest

from apiserver.events.model import Owner
from apiserver.reading import whole_series
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from tests.data.conftest import ON_EACH, Data, scalar

pytestmark = pytest.mark.anyio

HEAD = ["metric", "variant", "iter", "timestamp", "value"]


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def columns(reader: Any) -> dict[str, list[Any]]:
    """The columns of an Arrow stream or a Parquet file."""
    table = reader.read_all()
    return {name: table.column(name).to_pylist() for name in table.column_names}


@ON_EACH
async def test_points_in_every_format(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(scalar("loss", "val", 2, 0.1), scalar("loss", "train", 2, 1e300), scalar("loss", "train", 1, "NaN"))
    rows = [("train", 1, math.nan), ("train", 2, 1e300), ("val", 2, 0.1)]
    shown = [["loss", variant, iter, 1_700_000_000_000 + 100 * iter, value] for variant, iter, value in rows]

    answer = await data.get("scalars")
    assert answer.headers["content-type"] == "application/json"
    expected = [dict(zip(HEAD, row, strict=True)) for row in shown]
    expected[0]["value"] = "NaN"
    assert answer.json() == expected
    assert (await data.get("scalars.ndjson")).text.splitlines() == [
        line.rstrip(",").strip("[]") for line in answer.text.strip().splitlines()
    ]
    assert cells((await data.get("scalars.csv")).text) == [
        HEAD,
        *[["NaN" if cell != cell else str(cell) for cell in row] for row in shown],
    ]
    for ending, read in (("arrow", arro3.io.read_ipc_stream), ("parquet", arro3.io.read_parquet)):
        found = columns(read(io.BytesIO((await data.get(f"scalars.{ending}")).content)))
        assert found["variant"] == ["train", "train", "val"]
        assert found["iter"] == [1, 2, 2]
        assert [time.timestamp() * 1000 for time in found["timestamp"]] == [row[3] for row in shown]
        assert math.isnan(found["value"][0])
        assert found["value"][1:] == [1e300, 0.1]


@pytest.mark.test
async def test_some_series_and_a_range(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(*(scalar("loss", variant, n, n) for n in range(10) for variant in ("train", "val")))
    await data.add(*(scalar("acc.top1", "train", n, n) for n in range(3)))

    async def series(query: str) -> list[tuple[str, str, int]]:
        found = (await data.get(f"scalars?{query}")).json()
        return [(row["metric"], row["variant"], row["iter"]) for row in found]

    assert await series("metric=loss&variant=val&from=3&to=4") == [("loss", "val", 3), ("loss", "val", 4)]
    assert {name[:2] for name in await series("metric=l*s&variant=*")} == {("loss", "train"), ("loss", "val")}
    assert {name[:2] for name in await series("variant=train")} == {("loss", "train"), ("acc.top1", "train")}
    assert await series("metric=acc?top1") == await series("metric=none") == await series("metric=x*") == []
    assert len(await series("axis=timestamp&from=1700000000100&to=1700000000200")) == 6
    assert len(await series("axis=timestamp&from=2023-11-14T22:13:20.1&to=2023-11-14T22:13:20.200Z")) == 6
    relative = (await data.get("scalars?axis=relative&metric=loss&variant=val&from=800")).json()
    assert [(row["relative"], row["iter"]) for row in relative] == [(800, 8), (900, 9)]


@pytest.mark.test
@ON_EACH
async def test_buckets(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(*(scalar("loss", "train", n, 9 if n == 500 else n / 1000) for n in range(1000)))
    found = (await data.get("scalars?points=10")).json()
    assert [row["count"] for row in found] == [100] * 10
    assert [row["x"] for row in found] == [*range(0, 1000, 100)]
    assert (found[5]["max"], found[5]["first"], found[5]["last"], found[5]["min"]) == (9, 9, 0.599, 0.501)
    some = (await data.get("scalars?points=10&columns=max,mean")).json()
    assert some[5] == {**{name: found[5][name] for name in ("metric", "variant", "x", "mean")}, "max": 9}
    odd = (await data.get("scalars?points=10&columns=not_finite")).json()
    assert [row["not_finite"] for row in odd] == [0] * 10
    smooth = (await data.get("scalars?points=10&smooth=mean:1000")).json()
    assert max(row["max"] for row in smooth) < 1
    whole = (await data.get("scalars?smooth=derivative&from=1&to=3")).json()
    assert [round(row["mean"], 9) for row in whole] == [0.001] * 3


@pytest.mark.bounds(Bounds(calls=CallBounds(points=50)))
async def test_many_points_of_many_series(data_anywhere: Data) -> None:
    data = data_anywhere
    sizes = {"a": 10, "b": 30, "c": 120, "d": 100, "e": 1}
    await data.add(*(scalar("m", variant, n, n) for variant, size in sizes.items() for n in range(size)))
    found = (await data.get("scalars")).json()
    assert [(row["variant"], row["iter"]) for row in found] == [
        (v, n) for v, size in sizes.items() for n in range(size)
    ]


@pytest.mark.bounds(Bounds(calls=CallBounds(points=20)))
async def test_a_range_of_time_of_many_points_a_millisecond(data: Data) -> None:
    start = 1_700_000_000_000
    await data.add(*(scalar("m", "v", n, n, start + n // 10) for n in range(500)))
    found = (await data.get("scalars?axis=relative&to=30")).json()
    assert [row["iter"] for row in found] == list(range(310))


async def test_files_say_where_they_are_from(data: Data) -> None:
    await data.add(scalar("loss", "train", 1, 1))
    answer = await data.get("scalars.arrow")
    about = arro3.io.read_ipc_stream(io.BytesIO(answer.content)).schema.metadata_str
    assert about["task"] == data.task
    assert about["server"].startswith("events-apiserver ")
    assert answer.headers["last-modified"].endswith(" GMT")


@ON_EACH
async def test_a_run_that_writes_meanwhile(data_anywhere: Data) -> None:
    """What was acknowledged before is in the answer, once; what comes meanwhile may be."""
    data = data_anywhere
    names = ["a", "b", "c", "d"]
    before = {(name, n) for name in names for n in range(0, 100, 2)} - {("d", n) for n in range(8, 100)}
    await data.add(*(scalar("m", name, n, n) for name, n in sorted(before)))
    me = (await data.api.call("users.get_current_user"))["user"]["company"]["id"]
    found: list[tuple[str, int]] = []
    walk = whole_series.walk(data.api.backend.events, whole_series.PointsQuery(Owner(me, data.task)), at_once=20)
    odd = iter(range(1, 100, 2))
    async for points in walk:
        found += [(points.names[k][1], n) for k, n in zip(points.series.tolist(), points.iters.tolist(), strict=True)]
        some = [next(odd, 1) for _ in range(5)]
        await data.add(*(scalar("m", name, n, n) for name in names for n in some))
    assert len(found) == len(set(found))
    assert before <= set(found)


async def test_workers_of_points(data_anywhere: Data) -> None:
    data = data_anywhere
    points = [{**scalar("loss", name, n, n), "worker": f"gpu-{n % 3}"} for n in range(9) for name in ("a", "b")]
    await data.add(*points)
    rows = (await data.get("scalars?workers=1")).json()
    assert [(row["variant"], row["iter"], row["worker"]) for row in rows] == [
        (name, n, f"gpu-{n % 3}") for name in ("a", "b") for n in range(9)
    ]
    rows = (await data.get("scalars?workers=1&variant=b&axis=timestamp&from=1700000000300&to=1700000000400")).json()
    assert [(row["iter"], row["worker"]) for row in rows] == [(3, "gpu-0"), (4, "gpu-1")]
    assert "worker" not in (await data.get("scalars")).json()[0]
    for wrong in ("scalars?workers=1&points=9", "scalars.bin?workers=1"):
        assert (await data.error(wrong))["parameter"] == "workers"


async def test_bits_of_floats(data: Data) -> None:
    await data.add(*(scalar("loss", "train", n, 0.1) for n in range(4)))
    sizes = {bits: len((await data.get(f"scalars.bin?points=2&bits={bits}")).content) for bits in (32, 64)}
    assert sizes[64] == sizes[32] + 6 * 8  # six columns of two numbers
    assert len((await data.get("scalars.bin?points=2")).content) == sizes[32]


async def test_wrong_parameters(data: Data) -> None:
    for query, parameter in (
        ("points=-1", "points"),
        ("points=x", "points"),
        ("from=3&to=2", "from"),
        ("from=x", "from"),
        ("to=9223372036854775808", "to"),
        ("to=2026-11-21", "to"),
        ("axis=relative&to=2026-11-21", "to"),
        ("axis=timestamp&from=yesterday", "from"),
        ("axis=y", "axis"),
        ("smooth=foo", "smooth"),
        ("smooth=ema:1", "smooth"),
        ("smooth=median:33", "smooth"),
        ("smooth=mean:10001", "smooth"),
        ("csv=x", "csv"),
        ("points=9&columns=mean,media", "columns"),
        ("columns=mean", "columns"),
        ("points=9&bits=16", "bits"),
        ("metrics=loss", "metrics"),
    ):
        assert (await data.error(f"scalars?{query}"))["parameter"] == parameter
    for query, words in (
        ("points=x", "points: it must be a whole number of at most 64 bits"),
        ("points=-1", "points: it must be at least 0"),
        ("axis=y", "axis: it must be 'iter', 'timestamp' or 'relative'"),
        ("smooth=" + "x" * 41, "smooth: it must have at most 40 characters"),
    ):
        assert (await data.error(f"scalars?{query}"))["message"] == words
    await data.error("scalars.xls", expect=404)
    await data.error("nothing", expect=404)
    await data.error("scalars", headers={"accept": "image/png"}, expect=406)
    await data.error("/tasks/none/scalars", expect=404)
    await data.error("scalars", auth=None, expect=401)


@pytest.mark.test
async def test_a_version_is_known_again(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(scalar("loss", "train", 1, 1))
    for ending in ("", ".csv", ".parquet", ".csv?points=10"):
        tag = (await data.get(f"scalars{ending}")).headers["etag"]
        await data.get(f"scalars{ending}", headers={"if-none-match": tag}, expect=304)
        await data.add(scalar("loss", "train", 2, len(ending)))
        assert (await data.get(f"scalars{ending}", headers={"if-none-match": tag})).headers["etag"] != tag
