"""`POST /v1/metrics`: what is stored, what is answered, and who may send."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.common.protobuf_wire import fields
from apiserver.common.times import epoch_millis, now_ms
from apiserver.events.columns import MAX_SERIES
from apiserver.otlp.series import described_by
from apiserver.services.access.credentials import create_credential, create_user
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api, running_api
from tests.otlp import written
from tests.otlp.written import gauge as gauge_bytes

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}
PROTOBUF = {"content-type": "application/x-protobuf"}


def attributes(named: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in named.items()]


def request(task: str | None, *metrics: dict[str, Any], **resource: str) -> dict[str, Any]:
    """A request with metrics of one resource."""
    named = {"clearml.task.id": task} if task else {}
    of_resource = {"attributes": attributes({**named, **resource})}
    return {"resourceMetrics": [{"resource": of_resource, "scopeMetrics": [{"metrics": list(metrics)}]}]}


def gauge(name: str, *values: float, step: int | None = None, at: int = 1_700_000_000_000, **more: str) -> Any:
    named = attributes(more)
    if step is not None:
        named.append({"key": "step", "value": {"intValue": str(step)}})
    points = [
        {"asDouble": value, "timeUnixNano": str((at + 1000 * n) * 10**6), "attributes": named}
        for n, value in enumerate(values)
    ]
    return {"name": name, "gauge": {"dataPoints": points}}


async def send(api: Api, body: Any, expect: int = 200, **options: Any) -> dict[str, Any]:
    answer = await api.raw("POST", "/v1/metrics", content=json.dumps(body), headers=JSON, **options)
    assert answer.status_code == expect, answer.text
    assert answer.headers["content-type"] == "application/json"
    said: dict[str, Any] = answer.json()
    return said


async def new_task(api: Api) -> str:
    id: str = (await api.call("tasks.create", {"name": "train", "type": "training"}))["id"]
    return id


async def points(api: Api, task: str) -> list[list[Any]]:
    """The points of a task, as rows: metric, variant, iteration, timestamp, value."""
    answer = await api.raw("GET", f"/data/tasks/{task}/scalars.ndjson")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    return [[row[name] for name in ("metric", "variant", "iter", "timestamp", "value")] for row in rows]


async def test_points_with_a_step_are_a_curve(api: Api) -> None:
    task = await new_task(api)
    body = request(task, gauge("loss", 0.5, step=7), gauge("loss", 0.25, step=8, split="val"))
    for _ in range(2):  # the same again changes nothing
        assert await send(api, body) == {}
        assert await points(api, task) == [
            ["loss", "split=val", 8, 1_700_000_000_000, 0.25],
            ["loss", "value", 7, 1_700_000_000_000, 0.5],
        ]
    assert await last_iteration(api, task) == 8


async def last_iteration(api: Api, task: str) -> int:
    await api.backend.last_metrics.settle(api.company, models=False, ids=[task])
    (found,) = (await api.call("tasks.get_all", {"id": [task]}))["tasks"]
    number: int = found["last_iteration"]
    return number


async def test_points_of_a_machine_count_the_seconds_of_the_task(api: Api) -> None:
    task = await new_task(api)
    (made,) = (await api.call("tasks.get_all", {"id": [task]}))["tasks"]
    began = epoch_millis(made["created"]) or 0
    body = request(task, gauge("hw.gpu.utilization", 40, 50, at=began + 60_000, gpu="0"), **{"host.name": "n1"})
    assert await send(api, body) == {}
    metric, variant = ":monitor:otel:hw.gpu.utilization", "gpu=0, host.name=n1"
    assert await points(api, task) == [
        [metric, variant, 60, began + 60_000, 40],
        [metric, variant, 61, began + 61_000, 50],
    ]
    assert await last_iteration(api, task) == 0


async def test_points_without_a_task_are_counted(api: Api) -> None:
    task = await new_task(api)
    body = request(None, gauge("loss", 1, 2, step=1))
    body["resourceMetrics"] += request(task, gauge("loss", 3, step=1))["resourceMetrics"]
    body["resourceMetrics"] += request("nobody", gauge("loss", 4, step=1))["resourceMetrics"]
    said = (await send(api, body))["partialSuccess"]
    assert said["rejectedDataPoints"] == "3"
    assert "clearml.task.id" in said["errorMessage"]
    assert "Invalid task id nobody" in said["errorMessage"]
    assert [row[4] for row in await points(api, task)] == [3]


@pytest.mark.test
async def test_it_goes_with_gzip_and_without_credentials_not_at_all(api: Api) -> None:
    task = await new_task(api)
    content = gzip.compress(json.dumps(request(task, gauge("loss", 1, step=1))).encode())
    headers = {**JSON, "content-encoding": "gzip"}
    answer = await api.raw("POST", "/v1/metrics", content=content, headers=headers, auth=None)
    assert answer.status_code == 401
    assert await points(api, task) == []
    answer = await api.raw("POST", "/v1/metrics", content=content, headers=headers)
    assert (answer.status_code, answer.content) == (200, b"{}")
    assert [row[4] for row in await points(api, task)] == [1]
    bomb = gzip.compress(b" " * 17 * 2**20)
    answer = await api.raw("POST", "/v1/metrics", content=bomb, headers=headers)
    assert answer.status_code == 413


def contents(message: bytes) -> dict[int, bytes]:
    """The contents of a message's fields, by their numbers."""
    return {field.number: message[field.start : field.stop] for field in fields(message)}


async def test_protobuf_is_answered_in_protobuf(api: Api) -> None:
    task = await new_task(api)
    body = written.request({"clearml.task.id": task}, gauge_bytes("loss", 1, {"step": 3}), gauge_bytes("lr", 2, {}))
    answer = await api.raw("POST", "/v1/metrics", content=body, headers=PROTOBUF)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == PROTOBUF["content-type"]
    assert [row[:2] for row in await points(api, task)] == [[":monitor:otel:lr", "value"], ["loss", "value"]]
    body = written.request({}, gauge_bytes("loss", 1, {"step": 3}), gauge_bytes("lr", 2, {}))
    answer = await api.raw("POST", "/v1/metrics", content=body, headers=PROTOBUF)
    assert answer.status_code == 200
    partial = contents(contents(answer.content)[1])
    assert partial[1] == b"\x02"
    assert b"clearml.task.id" in partial[2]
    for content, auth, status in ((b"\xff", ("nobody", "nothing"), 401), (b"\xff", None, 401)):
        answer = await api.raw("POST", "/v1/metrics", content=content, headers=PROTOBUF, auth=auth)
        assert answer.status_code == status
        assert contents(answer.content)[2]
    answer = await api.raw("POST", "/v1/metrics", content=b"\xff", headers=PROTOBUF)
    assert answer.status_code == 400
    assert b"Protocol Buffers" in contents(answer.content)[2]


@pytest.mark.test
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", JSON, 405),
        ("PUT", JSON, 405),
        ("POST", {"content-type": "text/plain"}, 415),
        ("POST", {}, 415),
        ("POST", {**JSON, "content-encoding": "br"}, 415),
        ("POST", {**JSON, "content-encoding": "gzip"}, 400),
    ],
)
async def test_other_requests_are_refused(api: Api, method: str, headers: dict[str, str], status: int) -> None:
    answer = await api.raw(method, "/v1/metrics", content=b"{}", headers=headers)
    assert answer.status_code == status
    assert answer.json()["message"]
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


async def test_who_may_not_write_is_refused(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", guest=True) as api:
        task = await new_task(api)
        body = request(task, gauge("loss", 1, step=1))
        documents = api.backend.documents
        guest = await documents.find_one("users", {"role": "guest"})
        assert guest is not None
        credential = await create_credential(documents, guest)
        await send(api, body, 403, auth=(credential.key, credential.secret))
        await documents.insert("companies", [{"id": "c2", "name": "other"}])
        _, credential = await create_user(documents, "c2", "other", "admin")
        said = await send(api, body, auth=(credential.key, credential.secret))
        assert said["partialSuccess"]["rejectedDataPoints"] == "1"
        await api.call("tasks.started", {"task": task})
        await api.call("tasks.completed", {"task": task})
        await api.call("tasks.publish", {"task": task})
        assert (await send(api, body))["partialSuccess"]["rejectedDataPoints"] == "1"
        assert await points(api, task) == []


async def test_a_distribution_counts_as_one_point(api: Api) -> None:
    task = await new_task(api)
    values = {"count": "2", "sum": 3, "min": 1, "max": 2, "attributes": [*attributes({"step": "7"})]}
    histogram = {"name": "latency", "histogram": {"dataPoints": [values]}}
    assert await send(api, request(task, histogram)) == {}
    found = {row[1]: (row[2], row[4]) for row in await points(api, task)}
    assert found == {"count": (7, 2), "sum": (7, 3), "min": (7, 1), "max": (7, 2), "mean": (7, 1.5)}
    assert (await send(api, request("nobody", histogram)))["partialSuccess"]["rejectedDataPoints"] == "1"


async def test_series_and_names_are_bounded(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", max_series_per_task=3) as api:
        task = await new_task(api)
        metrics = [gauge(f"m{n}", n, step=1) for n in range(5)]
        assert (await send(api, request(task, *metrics)))["partialSuccess"]["rejectedDataPoints"] == "2"
        long = "x" * 1100
        metrics = [gauge("m0", 9, step=2), gauge("m1", 9, step=2, text=long), gauge(long, 9, step=2)]
        said = await send(api, request(task, *metrics, **{"host.name": "n1"}))
        assert said["partialSuccess"]["rejectedDataPoints"] == "2"
        said = await send(api, request(task, *metrics, **{"host.name": long}))
        assert said["partialSuccess"]["rejectedDataPoints"] == "3"
        assert (await send(api, request(long, *metrics)))["partialSuccess"]["rejectedDataPoints"] == "3"
        assert sorted(row[4] for row in await points(api, task)) == [0, 1, 2, 9]


@pytest.mark.test
async def test_more_series_than_a_request_may_have(api: Api) -> None:
    task = await new_task(api)
    metrics = [gauge_bytes(f"m{n}", 1, {"step": 1}) for n in range(MAX_SERIES + 5)]
    answer = await api.raw(
        "POST", "/v1/metrics", content=written.request({"clearml.task.id": task}, *metrics), headers=PROTOBUF
    )
    assert answer.status_code == 200
    assert contents(contents(answer.content)[1])[1] == b"\x05"


@pytest.mark.own_api
async def test_overload_says_when_to_come_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await new_task(api)
    for overloaded, status in ((True, 429), (False, 503)):

        async def busy(batch: Any, overloaded: bool = overloaded) -> Any:
            raise EventStoreBusy("busy", retry_after=3, overloaded=overloaded)

        monkeypatch.setattr(api.backend.events, "add", busy)
        answer = await api.raw("POST", "/v1/metrics", json=request(task, gauge("loss", 1, step=1)))
        assert (answer.status_code, answer.headers["retry-after"], answer.json()["message"]) == (status, "3", "busy")


async def test_a_point_may_name_its_task_time_and_host(api: Api) -> None:
    task = await new_task(api)
    point = gauge("loss", 1, step=1)
    point["gauge"]["dataPoints"][0]["attributes"] += attributes({"clearml.task.id": task})
    del point["gauge"]["dataPoints"][0]["timeUnixNano"]
    before = now_ms()
    assert await send(api, request("nobody", point, **{"host.name": "n1"})) == {}
    ((metric, variant, iteration, timestamp, _),) = await points(api, task)
    assert (metric, variant, iteration) == ("loss", "value", 1)
    assert before <= timestamp <= now_ms()


def test_attributes_never_look_the_same() -> None:
    different: list[dict[str, Any]] = [
        *({"a": "1, b=2"}, {"a": "1", "b": "2"}, {"a": '"1, b=2"'}, {"a=1, b": "2"}, {"a": ["1", "b=2"]}),
        *({"a": {"b": "2"}}, {"a": b"\x01"}, {"a": None}, {"a": True}, {"a": 0.5}, {"a": ""}, {"": "a"}, {}),
    ]
    assert len({described_by(one) for one in different}) == len(different)
    assert described_by({"gpu": 0, "b": "x y", "a": "1,2"}) == 'a="1,2", b=x y, gpu=0'


async def test_it_is_the_same_on_other_engines(tmp_path: Path, shared_engines: dict[str, Any]) -> None:
    async with running_api(tmp_path / "data", **shared_engines) as api:
        task = await new_task(api)
        body = request(task, gauge("loss", 0.5, step=7), gauge("hw.gpu.utilization", 40, gpu="0"))
        body["resourceMetrics"] += request("nobody", gauge("loss", 4, step=1))["resourceMetrics"]
        for _ in range(2):
            assert (await send(api, body))["partialSuccess"]["rejectedDataPoints"] == "1"
        machine, curve = await points(api, task)
        assert machine[:2] == [":monitor:otel:hw.gpu.utilization", "gpu=0"]
        assert curve == ["loss", "value", 7, 1_700_000_000_000, 0.5]
        assert await last_iteration(api, task) == 7


@pytest.mark.own_api
async def test_requests_and_points_are_counted(api: Api) -> None:
    await send(api, request(await new_task(api), gauge("loss", 1, 2, step=1)))
    numbers = (await api.raw("GET", "/metrics")).text.splitlines()
    assert 'apiserver_events_added_total{type="scalars"} 2' in numbers
    assert 'apiserver_requests_total{endpoint="/v1/metrics",code="200"} 1' in numbers


async def test_pages_of_other_origins_may_not_send(api: Api) -> None:
    task = await new_task(api)
    token = (await api.call("auth.login"))["token"]
    headers = {**JSON, "cookie": f"clearml_token_basic={token}"}
    body = json.dumps(request(task, gauge("loss", 1, step=1)))
    for origin, status in (("http://elsewhere.example", 403), ("http://testserver", 200)):
        more = {"origin": origin, "sec-fetch-site": "cross-site" if status == 403 else "same-origin"}
        answer = await api.raw("POST", "/v1/metrics", content=body, headers={**headers, **more}, auth=None)
        assert answer.status_code == status
