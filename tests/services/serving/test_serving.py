"""serving.*, through the whole server."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.common.times import now_ms, seconds_since, utc_now
from apiserver.services.history.store import Subject
from apiserver.services.serving.quantities import QUANTITIES, values_of
from apiserver.stores.documents.query import Update
from tests.harness import Api

pytestmark = pytest.mark.anyio

URL = "http://a/endpoint"
MODEL = {"endpoint_name": "e", "model_name": "m"}
REFERENCE = [{"type": "model", "value": "1"}, {"type": "model", "value": "2"}]
#: Epoch seconds at which a step of 40 s begins.
START = now_ms() // 40_000 * 40 - 400


async def register(api: Api, container: str, **fields: Any) -> None:
    await api.call("serving.register_container", {"container_id": container, **MODEL, **fields})


async def report(api: Api, container: str, url: str = URL, **fields: Any) -> None:
    request = {"container_id": container, **MODEL, "endpoint_url": url, **fields}
    await api.call("serving.container_status_report", request)


async def details(api: Api, url: str = URL) -> dict[str, Any]:
    return await api.call("serving.get_endpoint_details", {"endpoint_url": url})


async def endpoints(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.call("serving.get_endpoints"))["endpoints"]
    return found


async def test_containers_of_a_url_are_one_endpoint(api: Api) -> None:
    await register(api, "a", endpoint_url=URL, input_size=9000, model_version="3", reference=REFERENCE)
    await report(api, "a", uptime_sec=10, requests_num=100, requests_min=1, latency_ms=10)
    machine = {"cpu_usage": [1, 2], "gpu_usage": [5]}
    await report(api, "b", uptime_sec=30, requests_num=50, requests_min=2.5, latency_ms=21, machine_stats=machine)
    await report(api, "c", url="http://a/", requests_num=7)

    other, found = await endpoints(api)
    assert (other["url"], other["instances"], other["requests"], other["uptime_sec"]) == ("http://a/", 1, 7, None)
    assert (other["requests_min"], other["latency_ms"]) == (None, None)
    last_update = found.pop("last_update")
    sums = {"instances": 2, "uptime_sec": 30, "requests": 150, "requests_min": 1.75, "latency_ms": 16}
    assert found == {"endpoint": "e", "model": "m", "url": URL, **sums}

    told = await details(api)
    instances = told.pop("instances")
    assert told == {
        **{"endpoint": "e", "model": "m", "url": URL, "input_size": 9000, "model_version": "3", "uptime_sec": 30},
        **{"model_source": None, "preprocess_artifact": None, "input_type": None, "last_update": last_update},
    }
    assert instances[1].pop("last_update") == last_update > instances[0].pop("last_update")
    assert instances == [
        {"id": "a", "uptime_sec": 10, "requests": 100, "requests_min": 1, "latency_ms": 10}
        | {"cpu_count": 0, "gpu_count": 0, "reference": REFERENCE},
        {"id": "b", "uptime_sec": 30, "requests": 50, "requests_min": 2.5, "latency_ms": 21}
        | {"cpu_count": 2, "gpu_count": 1, "reference": []},
    ]


async def test_requests_of_all_containers_stay_a_number_of_the_wire(api: Api) -> None:
    for container in ("a", "b", "c"):
        await report(api, container, requests_num=2**63 - 1)
    assert [found["requests"] for found in await endpoints(api)] == [2**63 - 1]


async def test_containers_without_a_url_are_loading(api: Api) -> None:
    before = utc_now()
    await register(api, "a", model_source="s3://models")
    [loading] = (await api.call("serving.get_loading_instances"))["instances"]
    assert (loading["id"], loading["url"], loading["model_source"]) == ("a", None, "s3://models")
    assert 0 <= loading["age_sec"] <= seconds_since(before, utc_now())
    assert await endpoints(api) == []
    answer = await api.call("serving.container_status_report", {"container_id": "a", **MODEL}, expect=400)
    assert answer["meta"]["error_data"] == {"field": "endpoint_url"}

    await report(api, "a")
    assert (await api.call("serving.get_loading_instances"))["instances"] == []
    assert (await details(api))["model_source"] == "s3://models"


async def test_containers_are_forgotten(api: Api) -> None:
    for container in ("a", "b"):
        await register(api, container, endpoint_url=URL, timeout=100)
    await api.backend.documents.update(
        "containers", {"company": api.company, "name": "a"}, Update(set={"expires": "2020"})
    )
    assert [one["id"] for one in (await details(api))["instances"]] == ["b"]
    await register(api, "c")
    assert await api.backend.documents.count("containers", {"company": api.company, "name": "a"}) == 0
    for _ in range(2):
        await api.call("serving.unregister_container", {"container_id": "b"})
    assert await endpoints(api) == []
    answer = await api.call("serving.get_endpoint_details", {"endpoint_url": URL}, expect=400)
    assert answer["meta"]["result_subcode"] == 1052


async def test_containers_belong_to_a_company(api: Api) -> None:
    document = {"id": "other/a", "name": "a", "company": "other", "endpoint_url": URL, "expires": "9999"}
    await api.backend.documents.insert("containers", [document])
    assert await endpoints(api) == []


# --- charts ------------------------------------------------------------------------------------------


async def was(api: Api, container: str, at: int, **report: Any) -> None:
    """Have a container reported at START + `at` seconds."""
    subject = Subject(api.company, "container", container, URL)
    await api.backend.history.record(subject, (START + at) * 1000, values_of(report))


async def chart(api: Api, quantity: str | None = None, **request: Any) -> dict[str, Any]:
    dates = {"from_date": START, "to_date": START + 130, "interval": 1}
    chosen = {"metric_type": quantity} if quantity else {}
    return await api.call("serving.get_endpoint_metrics_history", {"endpoint_url": URL, **dates, **chosen, **request})


async def test_charts_are_of_each_container_and_of_all(api: Api) -> None:
    machine = {"cpu_usage": [10, 30], "memory_used": 1024, "gpu_memory_free": [512, 512], "network_rx": 1.234}
    await was(api, "a", 5, requests_num=100, requests_min=3, latency_ms=10, machine_stats=machine)
    await was(api, "a", 35, requests_num=110, requests_min=5, latency_ms=20, machine_stats=machine)
    await was(api, "b", 39, requests_num=7, requests_min=10, latency_ms=40, machine_stats={"cpu_usage": [80]})
    await was(api, "b", 85, requests_num=9, requests_min=2)
    await was(api, "b", 121, requests_num=99, requests_min=99)  # the last step is not over

    expected = {
        "requests_min": ("Requests per Minute", [4, 0, 0], [10, 0, 2], [14, 0, 2]),
        "latency_ms": ("Average Latency (ms)", [15, 0, 0], [40, 0, 0], [27.5, 0, 0]),
        "cpu_count": ("CPU Count", [2, 0, 0], [1, 0, 0], [3, 0, 0]),
        "cpu_util": ("Average CPU Load (%)", [20, 0, 0], [80, 0, 0], [50, 0, 0]),
        "ram_used": ("RAM Used (GB)", [1, 0, 0], None, [1, 0, 0]),
        "ram_total": ("RAM Total (GB)", [1, 0, 0], None, [1, 0, 0]),
        "gpu_ram_free": ("GPU RAM Free (GB)", [1, 0, 0], None, [1, 0, 0]),
        "network_rx": ("Network Throughput RX (MBps)", [1.23, 0, 0], None, [1.23, 0, 0]),
    }
    dates = [1000 * (START + at) for at in (0, 40, 80)]
    for quantity, (title, first, second, total) in expected.items():
        answer = await chart(api, quantity)
        assert answer["computed_interval"] == 40
        assert answer["total"] == {"title": title, "dates": dates, "values": total}
        values = {"a": first, "b": second}
        assert answer["instances"] == {
            name: {"title": name, "dates": dates, "values": values[name]} for name in values if values[name]
        }

    requests = await chart(api)
    assert requests["total"] == {"title": "Number of Requests", "dates": dates[::2], "values": [117, 9]}
    assert {name: one["values"] for name, one in requests["instances"].items()} == {"a": [110, 0], "b": [7, 9]}
    assert (await chart(api, instance_charts=False))["instances"] == {}


async def test_a_chart_of_nothing_has_a_title(api: Api) -> None:
    for quantity, expected in QUANTITIES.items():
        answer = await chart(api, quantity)
        assert answer["total"] == {"title": expected.title, "dates": [], "values": []}
        assert answer["instances"] == {}
    await report(api, "a", requests_num=1)
    assert (await chart(api, "gpu_util"))["total"]["dates"] == []
