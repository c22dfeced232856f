"""Numbers for Prometheus: read as its own package reads them, by those who may."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from apiserver import __version__
from apiserver.common.commit import commit
from apiserver.common.counters import Counters, together
from apiserver.operating.metrics.exposition import OPENMETRICS, Family, text
from apiserver.operating.metrics.sharing import SharedCounters
from apiserver.services.access.credentials import create_user
from apiserver.settings.retention_rules import RetentionRule
from apiserver.settings.values import Quota
from tests.data.conftest import Data, scalar
from tests.harness import Api, running_api

pytestmark = pytest.mark.anyio

TOKEN = "a token that only Prometheus has"


def samples(content: str, read: Any = openmetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in read(content)
        for sample in family.samples
    }


async def scraped(api: Api, **options: Any) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = await api.raw("GET", "/metrics", headers={"accept": "application/openmetrics-text"}, **options)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == OPENMETRICS
    return samples(answer.text)


@pytest.mark.test
async def test_what_is_counted(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(scalar("m", "v", 1, 1), scalar("m", "v", 2, 1), {"type": "log", "msg": "x"})
    await data.api.raw("POST", "/no.such_endpoint", json={})
    await data.get("scalars.csv")
    await data.error("/tasks/none/scalars", expect=404)
    found = await scraped(data.api)
    assert found["apiserver_requests_total", (("code", "200"), ("endpoint", "events.add_batch"))] == 1
    assert found["apiserver_request_seconds_count", (("endpoint", "events.add_batch"),)] == 1
    assert found["apiserver_requests_total", (("code", "404"), ("endpoint", "unknown"))] == 1
    assert found["apiserver_events_added_total", (("type", "scalars"),)] == 2
    assert found["apiserver_events_added_total", (("type", "logs"),)] == 1
    assert found["apiserver_event_bytes_total", ()] > 100
    assert found["apiserver_tasks", (("status", "created"),)] == 1
    assert found["apiserver_info", (("commit", commit()), ("version", __version__))] == 1
    assert found["apiserver_store_bytes", (("store", "documents"),)] >= 0
    paths = {dict(labels)["endpoint"] for name, labels in found if name == "apiserver_requests_total"}
    assert "/data/tasks/{task:path}/scalars.{ending}" in paths
    assert not [path for path in paths if data.task in path or "none" in path or "no.such" in path]
    answer = await data.api.raw("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert samples(answer.text, plain)["apiserver_events_added_total", (("type", "scalars"),)] == 2


@pytest.mark.own_api
async def test_the_embedded_store_tells_what_is_unmerged(data: Data) -> None:
    await data.add(scalar("m", "v", 1, 1))
    found = await scraped(data.api)
    assert found["apiserver_events_merging_works", ()] == 1
    assert ("apiserver_events_unmerged_bytes", ()) in found


async def test_who_may_read_them(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", metrics_token=TOKEN) as api:
        await scraped(api)
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await api.raw("GET", "/metrics", headers=bearer, auth=None)).status_code == 200
        for wrong in ({}, {"authorization": "Bearer x"}, {"authorization": f"Basic {TOKEN}"}):
            refused = await api.raw("GET", "/metrics", headers=wrong, auth=None)
            assert refused.status_code == 401
            assert "www-authenticate" in refused.headers
            is_bearer = wrong.get("authorization", "").startswith("Bearer")
            assert ("it is not the metrics_token of the settings" in refused.text) == is_bearer
        assert (await api.raw("POST", "/tasks.get_all", headers=bearer, json={}, auth=None)).status_code == 401
        assert (await api.raw("GET", "/data/projects", headers=bearer, auth=None)).status_code == 401
        _, credential = await create_user(api.backend.documents, api.company, "user")
        assert (await api.raw("GET", "/metrics", auth=(credential.key, credential.secret))).status_code == 403
        _, theirs = await create_user(api.backend.documents, "another company", "eve", "admin")
        assert (await api.raw("GET", "/metrics", auth=(theirs.key, theirs.secret))).status_code == 403
        for path in ("/livez", "/readyz"):
            assert (await api.raw("GET", path, auth=None)).status_code == 200
    async with running_api(tmp_path / "other") as api:
        for given in ("", "x"):
            refused = await api.raw("GET", "/metrics", headers={"authorization": f"Bearer {given}"}, auth=None)
            assert refused.status_code == 401
            assert "and the setting metrics_token is empty" in refused.text


@pytest.mark.test
async def test_runs_that_are_under_way(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.api.call("tasks.started", {"task": data.task})
    await data.add(scalar("loss", "train", 1, 0.5), scalar("loss", "train", 2, "NaN"), scalar("acc", 'v"\\\n', 2, 0.25))
    other = (await data.api.call("tasks.create", {"name": "waits", "type": "training"}))["id"]
    await data.add(scalar("loss", "train", 1, 7), task=other)

    async def values(query: str = "") -> dict[tuple[str, str], float]:
        answer = await data.get(f"/metrics{query}", headers={"accept": "application/openmetrics-text"})
        return {
            (dict(labels)["metric"], dict(labels)["variant"]): value
            for (name, labels), value in samples(answer.text).items()
            if name == "apiserver_run_value" and dict(labels)["project"] == "ex/amples"
        }

    found = await values()
    assert math.isnan(found["loss", "train"])
    assert found["acc", 'v"\\\n'] == 0.25
    assert (await values("?project=ex/amples&metric=a*")).keys() == {("acc", 'v"\\\n')}
    assert (await values("?metric=loss")).keys() == {("loss", "train")}
    assert await values("?project=ex") == {}
    await data.error("/metrics", auth=None, expect=401)
    await data.error("/metrics?project=none", expect=404)


async def test_sums_over_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = [Counters(), Counters()]
    shared = [SharedCounters(one, tmp_path, workers=2) for one in each]
    for pid, one in enumerate(shared):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: 1000 + pid)
        one.open()
        each[pid].request("a", 200, 0.02)
        each[pid].batch(100, 5, 0, 0)
        await one.write()
    assert shared[1].sums()["counts"]["events.scalars"] == 10
    assert shared[1].sums()["requests"] == [["a", 200, 2]]
    each[1].batch(100, 1, 0, 0)
    assert shared[1].sums()["counts"]["events.scalars"] == 11  # its own are those of now
    (tmp_path / str(os.getppid()) / "1002").write_bytes(b"torn")
    assert shared[1].sums()["counts"]["events.scalars"] == 11
    (tmp_path / "999999999").mkdir()
    shared[1].open()
    assert os.listdir(tmp_path) == [str(os.getppid())]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats())
def test_any_text_and_number(label: str, value: float) -> None:
    family = Family("a", "gauge", f"What {label} means")
    family.add(value, b=label)
    for read, is_new in ((openmetrics, True), (plain, False)):
        ((_, labels), found), *_ = samples(text([family], openmetrics=is_new).decode(), read).items()
        assert labels == (("b", label),)
        assert found == value or (math.isnan(found) and math.isnan(value))


def test_together_adds_up() -> None:
    one, other = Counters(), Counters()
    one.request("a", 200, 0.002)
    other.request("a", 500, 20)
    sums = together([one.snapshot(), orjson.loads(orjson.dumps(other.snapshot()))])
    assert sorted(sums["requests"]) == [["a", 200, 1], ["a", 500, 1]]
    assert sum(sums["durations"]["a"][:-1]) == 2
    assert sums["durations"]["a"][-1] == pytest.approx(20.002)


@pytest.mark.test
async def test_the_dashboard_and_the_guide_name_numbers_that_there_are(tmp_path: Path) -> None:
    told: dict[str, Any] = {
        "backup_to": str(tmp_path / "backups"),
        "retention": (RetentionRule(("logs",), "90 d"),),
        "retention_every": 24,
        "quotas": (Quota("task", bytes=10_000_000),),
    }
    async with running_api(tmp_path / "data", **told) as api:
        task = (await api.call("tasks.create", {"name": "a run", "type": "training"}))["id"]
        await api.call("events.add", {**scalar("m", "v", 1, 1), "task": task})
        for name in ("connections", "connections_limit"):
            api.app.metrics.gauges[name] = ("as in serve.py", lambda: 1)
        names = {name for name, _ in await scraped(api)}
    root = Path(__file__).parents[3]
    for page in ("docker/grafana.json", "docs/operations/monitoring.md"):
        used = set(re.findall(r"apiserver_(?!run_)[a-z_]+", (root / page).read_text("utf-8")))
        assert used
        # Some are told by servers on Elasticsearch (`tests/stores/events/elasticsearch/test_store.py`), or with a
        # certificate (`tests/server/test_serve.py`).
        used -= {"apiserver_request_seconds", "apiserver_events_owners_to_compact"}
        assert {name for name in used if not name.startswith("apiserver_tls_")} <= names
