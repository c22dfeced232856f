"""A task's statistics, log, plots, images, configuration and artifacts as tables."""

from __future__ import annotations

import json
from math import inf, nan
from typing import Any

import pytest

from apiserver.data.versions import Version
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.data.conftest import ON_EACH, Data, scalar
from tests.data.test_scalars import cells

pytestmark = pytest.mark.anyio


def line(n: int, level: str = "info", message: str | None = None, worker: str = "w") -> dict[str, Any]:
    text = message or f"line {n}"
    return {"type": "log", "timestamp": 1000 + n, "level": level, "worker": worker, "msg": text}


@ON_EACH
async def test_statistics(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(*(scalar("loss", "train", 10 * n, value) for n, value in enumerate([4, 2, "NaN", 3])))
    await data.add(scalar("loss", "odd", 5, "NaN"))
    found = {row["variant"]: row for row in (await data.get("stats")).json()}
    assert found["train"] == {
        **{"metric": "loss", "variant": "train", "count": 4, "not_finite": 1, "first_not_finite_iter": 20},
        **{"first_iter": 0, "first_timestamp": 1_700_000_000_000, "first_value": 4.0},
        **{"last_iter": 30, "last_timestamp": 1_700_000_003_000, "last_value": 3.0},
        **{"min_iter": 10, "min_value": 2.0, "iters_since_min": 20},
        **{"max_iter": 0, "max_value": 4.0, "iters_since_max": 30},
        **{"mean": 3.0, "std": pytest.approx((2 / 3) ** 0.5)},
    }
    assert (found["odd"]["mean"], found["odd"]["min_iter"], found["odd"]["last_value"]) == (None, None, "NaN")
    assert [row["variant"] for row in (await data.get("stats?variant=t*")).json()] == ["train"]
    assert (await data.get("stats?variant=nothing*")).json() == []


@pytest.mark.test
@ON_EACH
@pytest.mark.bounds(Bounds(calls=CallBounds(log_lines=7)))
async def test_log(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(*(line(n, "error" if n % 10 == 0 else "info") for n in range(50)), line(50, message="Ünder =1"))

    async def lines(query: str) -> list[str]:
        return (await data.get(f"log.txt?{query}")).text.splitlines()

    assert await lines("") == [*(f"line {n}" for n in range(50)), "Ünder =1"]
    assert await lines("level=error&from=1010&to=1020") == ["line 10", "line 20"]
    assert await lines("tail=2") == ["line 49", "Ünder =1"]
    assert await lines("tail=2&level=error&to=1030") == ["line 20", "line 30"]
    assert await lines("search=ÜNDER") == ["Ünder =1"]
    assert await lines("regex=^line .9$") == [f"line {n}9" for n in range(1, 5)]
    assert await lines("regex=^line 4&without=[1-8]$") == ["line 40", "line 49"]
    assert await lines("worker=v") == []
    assert (await data.get("log?tail=1")).json() == [
        {"timestamp": 1050, "worker": "w", "level": "info", "iter": None, "msg": "Ünder =1"}
    ]
    assert (await data.error("log?regex=("))["parameter"] == "regex"
    assert (await data.error("log?regex=a&search=b"))["parameter"] == "regex"
    assert (await data.error("log?tail=0"))["parameter"] == "tail"


@pytest.mark.test
async def test_times_of_a_log(data_anywhere: Data) -> None:
    data = data_anywhere
    noon = 1_795_348_800_000  # 2026-11-22T12:00:00Z
    await data.add(*({**line(0, message=f"line {n}"), "timestamp": noon + 1000 * n} for n in range(60)))

    async def lines(query: str) -> list[str]:
        return (await data.get(f"log.txt?{query}")).text.splitlines()

    last = ["line 58", "line 59"]
    assert await lines(f"from={noon + 58_000}") == last
    for since in (
        *("2026-11-22T12:00:58", "2026-11-22T12:00:58Z", "2026-11-22 12:00:57.001", "2026-11-22T13:00:58%2B01:00"),
        "2026-11-22T13:00:58+01:00",  # the + arrives as a space
    ):
        assert await lines(f"from={since}") == last, since
    assert await lines("from=2026-11-22&to=2026-11-22T12:00:01Z") == ["line 0", "line 1"]
    assert await lines("to=2026-11-22") == []
    assert await lines("tail=2&to=2026-11-22T06:30:03-05:30") == ["line 2", "line 3"]
    assert (await data.get("log/line?time=2026-11-22T12:00:30Z")).json() == {"line": 30, "total": 60}
    for query, parameter in (("log?from=noon", "from"), ("log?to=2026-13-01", "to"), ("log/line?time=soon", "time")):
        error = await data.error(query)
        assert error["parameter"] == parameter
        assert "ISO-8601 time, such as" in error["message"]
    assert (await data.error("log?from=2026-11-22&to=2026-11-21"))["parameter"] == "from"


@pytest.mark.test
async def test_the_tail_of_messages_of_several_lines(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(*({**line(n), "msg": text} for n, text in enumerate(["a", "b\nc\nd", "e\n", "", "f\n\ng"])))
    whole = (await data.get("log.txt")).text
    assert whole == "a\nb\nc\nd\ne\n\nf\n\ng\n"
    for count in range(1, 11):
        last = whole.splitlines(keepends=True)[-count:]
        assert (await data.get(f"log.txt?tail={count}")).text == "".join(last)
    assert (await data.get("log?tail=1", headers={"accept": "text/plain"})).text == "g\n"
    assert (await data.get("log.txt?tail=2&search=c")).text == "c\nd\n"
    assert [row["msg"] for row in (await data.get("log?tail=2")).json()] == ["", "f\n\ng"]


@pytest.mark.test
async def test_windows_of_a_log(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(*(line(n // 3, message=f"line {n}") for n in range(50)))

    async def numbers(query: str) -> list[int]:
        rows = (await data.get(f"log?{query}")).json()
        assert all(row["msg"] == f"line {row['line']}" for row in rows)
        return [row["line"] for row in rows]

    assert await numbers("limit=3") == [0, 1, 2]
    assert await numbers("offset=48") == [48, 49]
    assert await numbers("offset=20&limit=5") == [20, 21, 22, 23, 24]
    assert await numbers("offset=50") == await numbers("line=51") == []
    assert await numbers("line=30&line=7&line=30&line=99") == [7, 30]
    answer = await data.get("log?offset=49")
    assert answer.headers["x-total-count"] == "50"
    position = answer.json()[0]["position"]
    assert (await data.get(f"log/line?position={position}")).json() == {"line": 49, "total": 50}
    assert (await data.get("log/line?time=1005")).json() == {"line": 15, "total": 50}
    assert (await data.get("log/line?time=5000")).json() == {"line": 50, "total": 50}
    await data.add(line(-5, message="late"))
    assert (await data.get(f"log/line?position={position}")).json() == {"line": 50, "total": 51}
    cut = (await data.get("log?line=12&longest=4")).json()[0]
    assert (cut["msg"], cut["length"]) == ("line", 7)
    assert (await data.get("log.txt?offset=10&limit=2&longest=6")).text == "line 9\nline 1\n"
    assert (await data.get("log/workers")).json() == ["w"]
    assert (await data.error("log?line=-1"))["parameter"] == "line"
    assert (await data.error("log?longest=4"))["parameter"] == "longest"
    assert (await data.error("log?offset=1&search=a"))["parameter"] == "offset"
    assert (await data.error("log?offset=1&line=3"))["parameter"] == "line"
    assert (await data.error("log/line"))["parameter"] == "time"
    assert (await data.error("log/line?position=1.9223372036854775807"))["parameter"] == "position"
    assert (await data.error(f"log/line?position={'9' * 19}.1"))["parameter"] == "position"


@pytest.mark.test
@pytest.mark.bounds(Bounds(calls=CallBounds(hits=2)))
async def test_hits_of_a_search(data_anywhere: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    store = data_anywhere.api.backend.events
    if isinstance(store, EmbeddedEventStore):
        monkeypatch.setattr(store, "bounds", EmbeddedBounds(searched_lines=7))
    elif isinstance(store, ElasticsearchEventStore):
        monkeypatch.setattr(store._log, "bounds", ColumnarBounds(searched_lines=7))
    data = data_anywhere
    await data.add(
        *(line(n // 3, "error" if n % 10 == 0 else "info", f"line {n}", "ab"[n % 2]) for n in range(50)),
    )

    async def hits(query: str) -> list[int]:
        """All hits, asked for answer by answer."""
        found, end, after = [], 0, ""
        while True:
            answer = (await data.get(f"log/hits?{query}{after}")).json()
            assert end < answer["end"] or answer["ended"]
            found += answer["lines"]
            end, after = answer["end"], f"&after={answer['last']}"
            if answer["ended"]:
                assert end == 50
                return found

    assert await hits("level=error") == [0, 10, 20, 30, 40]
    assert await hits("level=ERROR&search=LINE 3") == [30]
    assert await hits("regex=[05]$&worker=b") == [5, 15, 25, 35, 45]
    assert await hits("level=error&without=[24]0") == [0, 10, 30]
    assert await hits("without=[0-8]$") == [9, 19, 29, 39, 49]
    assert await hits("search=nothing") == []
    assert await hits("") == [*range(50)]
    assert (await data.error("log/hits?regex=("))["parameter"] == "regex"
    assert (await data.error("log/hits?without=("))["parameter"] == "without"
    assert (await data.error("log/hits?after=x"))["parameter"] == "after"


@pytest.mark.test
@ON_EACH
async def test_plots_and_images(data_anywhere: Data) -> None:
    data = data_anywhere
    plot = {"type": "plot", "metric": "roc", "variant": "v"}
    await data.add(
        *({**plot, "iter": n, "plot_str": f'{{"data": [{n}]}}'} for n in range(3)),
        {**plot, "iter": 9, "variant": "odd", "plot_str": "no JSON"},
        {"type": "training_debug_image", "metric": "im", "variant": "v", "iter": 2, "url": "http://127.0.0.1/x.png"},
    )
    found = (await data.get("plots")).json()
    assert [(row["iter"], row["plot"]) for row in found] == [
        *((n, {"data": [n]}) for n in range(3)),
        (9, "no JSON"),
    ]
    assert [row["iter"] for row in (await data.get("plots?latest=1&variant=v")).json()] == [2]
    assert [row["iter"] for row in (await data.get("plots?from=1&to=2")).json()] == [1, 2]
    assert cells((await data.get("plots.csv?from=0&to=0")).text)[1][4] == '{"data": [0]}'
    assert [row["url"] for row in (await data.get("images")).json()] == ["http://127.0.0.1/x.png"]


async def test_figures_with_nan_are_figures(data: Data) -> None:
    of = {"type": "plot", "metric": "matrix", "iter": 0}
    await data.add(
        {
            **of,
            "variant": "v",
            "plot_str": json.dumps({"z": [[nan, -inf, 1.5], [inf, 0]], "text": 'NaN "-Infinity" \\'}),
        },
        {**of, "variant": "w", "plot_str": '{"z": NaN, "cut'},
    )
    right = {"z": [[None, None, 1.5], [None, 0]], "text": 'NaN "-Infinity" \\'}
    for ending in (".json", ".ndjson"):
        rows = (await data.get(f"plots{ending}?variant=v")).text
        assert json.loads(rows.strip().strip("[]"))["plot"] == right
    assert json.loads(cells((await data.get("plots.csv?variant=v")).text)[1][4]) == right
    assert [row["plot"] for row in (await data.get("plots?variant=w")).json()] == ['{"z": NaN, "cut']


async def test_configuration_and_artifacts(data: Data) -> None:
    parameter = {"section": "Args", "name": "lr.max", "value": "=1+1", "type": "float"}
    artifact = {"key": "weights", "type": "custom", "uri": "http://127.0.0.1/w", "content_size": 5, "timestamp": 7}
    odd = {"key": "odd", "type": "custom", "timestamp": 2**62}
    await data.api.call(
        "tasks.edit",
        {
            "task": data.task,
            "hyperparams": {"Args": {"lr.max": parameter}},
            "configuration": {"model": {"name": "model", "value": "layers: 3", "type": "yaml"}},
            "execution": {"artifacts": [artifact, odd]},
        },
    )
    model = {"name": "net", "uri": "http://127.0.0.1/net", "framework": "x"}
    made = (await data.api.call("models.create", model))["id"]
    used = {"task": data.task, "name": "best", "type": "output", "model": made}
    await data.api.call("tasks.add_or_update_model", used)
    rows = (await data.get("config")).json()
    assert [(row["kind"], row["section"], row["name"], row["value"]) for row in rows] == [
        ("hyperparams", "Args", "lr.max", "=1+1"),
        ("configuration", None, "model", "layers: 3"),
    ]
    assert cells((await data.get("config.csv")).text)[1][3] == "'=1+1"
    assert cells((await data.get("config.csv?csv=plain")).text)[1][3] == "=1+1"
    found = (await data.get("artifacts")).json()
    assert [(row["kind"], row["name"], row["uri"], row["size"], row["timestamp"], row["model"]) for row in found] == [
        ("output", "odd", None, None, None, None),
        ("output", "weights", "http://127.0.0.1/w", 5, 7000, None),
        ("output model", "best", "http://127.0.0.1/net", None, None, made),
    ]


async def test_a_small_table_is_known_again_by_its_content(data: Data) -> None:
    tag = (await data.get("config")).headers["etag"]
    await data.get("config", headers={"if-none-match": tag}, expect=304)
    await data.api.call("tasks.edit", {"task": data.task, "runtime": {"cpu_cores": "8"}})
    assert (await data.get("config", headers={"if-none-match": tag})).json()[0]["value"] == "8"


@pytest.mark.test
@pytest.mark.own_api
async def test_what_comes_while_an_answer_begins_is_in_it_or_changes_its_version(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    await data.add(line(0))
    now, coming = Version.now, list[dict[str, Any]]()

    async def first_more_comes(version: Version) -> str:
        await data.add(*coming)
        return await now(version)

    monkeypatch.setattr(Version, "now", first_more_comes)
    for address, event in (
        ("log?offset=0", line(1)),
        ("log.parquet?offset=0", line(2)),
        ("stats?metric=a*", scalar("a", "v", 1, 1)),
        ("plots?metric=a*", {"type": "plot", "metric": "a", "variant": "v", "iter": 1, "plot_str": "{}"}),
        ("images?metric=a*", {"type": "training_debug_image", "metric": "a", "variant": "v", "iter": 1, "url": "x"}),
    ):
        coming[:] = [event]
        told = await data.get(address)
        coming.clear()
        again = await data.get(address, headers={"if-none-match": told.headers["etag"]}, expect=304)
        assert (await data.get(address)).content == told.content, address
        assert again.headers.get("x-total-count") == told.headers.get("x-total-count")
