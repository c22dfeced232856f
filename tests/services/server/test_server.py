"""server.* and debug.*, through the whole server."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver import __version__
from apiserver.common.commit import commit
from apiserver.common.passwords import nobodys_hash
from apiserver.common.times import now_ms
from apiserver.settings.values import FixedUser
from apiserver.stores.documents.query import Update
from tests.harness import Api, new_user, running_api

pytestmark = pytest.mark.anyio


async def test_info_has_what_clients_read(api: Api) -> None:
    info = await api.call("server.info")
    assert (info["version"], info["api_version"], info["build"]) == ("2.3.0", "2.34", __version__)
    assert len(info["uid"]) == 32
    assert info["commit"] == commit()
    assert await api.call("server.info", version="2.1") == info


@pytest.mark.test
async def test_the_uid_stays_after_a_restart_and_is_each_servers_own(tmp_path: Path) -> None:
    uids = []
    for folder in ("one", "one", "two"):
        async with running_api(tmp_path / folder) as api:
            uids.append((await api.call("server.info"))["uid"])
    assert uids[0] == uids[1] != uids[2]


@pytest.mark.own_api
async def test_config_masks_secrets(api: Api) -> None:
    config = await api.call("server.config")
    assert config["admin_secret"] == config["token_secret"] == "********"
    assert api.auth[1] not in str(config)
    assert config["port"] == 8008
    assert await api.call("server.config", {"path": "port"}) == {"port": 8008}
    await api.call("server.config", {"path": "nothing"}, expect=400)


async def test_config_names_users_without_their_passwords(tmp_path: Path) -> None:
    alice = FixedUser("alice", nobodys_hash())
    async with running_api(tmp_path, users=(alice,)) as api:
        config = await api.call("server.config")
        assert config["users"] == ["alice"]
        assert "scrypt" not in str(config)


async def test_config_is_for_admins(api: Api) -> None:
    _, key = await new_user(api, "eve")
    await api.call("server.config", auth=key, expect=403)


async def test_endpoints_are_told_with_their_versions(api: Api) -> None:
    answer = await api.call("server.endpoints")
    assert answer["endpoints"]["server.endpoints"] == [{"min_version": "2.1"}]
    versions = [endpoint["min_version"] for endpoint in answer["endpoints"]["events.get_task_log"]]
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")])
    assert len(versions) > 1


@pytest.mark.own_api
async def test_statistics_tell_what_is_used(api: Api) -> None:
    for n in range(2):
        task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
        times = {"started": "2026-01-01T00:00:00+00:00", "last_update": f"2026-01-01T00:0{n}:30+00:00"}
        fields = {"status": "completed", "last_iteration": 10 * n, "last_worker": "w", **times}
        await api.backend.documents.update("tasks", {"id": task}, Update(set=fields))
    await api.call("tasks.create", {"name": "t", "type": "training"})
    for n, cpu in enumerate(([10, 20], [0, 90])):
        machine = {"cpu_usage": cpu, "memory_used": 1024 * sum(cpu)}
        report = {"worker": "w", "timestamp": now_ms() - 1000 * n, "machine_stats": machine}
        await api.call("workers.status_report", report)

    stats = await api.call("server.get_stats")
    ran = {"count": 2, "avg_run_time_sec": 60, "avg_iterations": 5}
    assert stats["company_id"] == api.company
    assert stats["server"]["experiments"] == ran
    assert (stats["server"]["queues"], stats["server"]["users"]) == ({"count": 1}, {"count": 1})
    assert stats["server"]["resources"]["num_cores"] >= 1
    assert stats["server"]["resources"]["mem_used_gb"]["avg"] > 0
    resources = {
        "cpu_usage": {"min": 0, "max": 90, "avg": 30},
        "mem_used_gb": {"min": 30, "max": 90, "avg": 60},
        "interval_sec": 86400,
        "num_cores": 2,
    }
    assert stats["agents"] == [{"uuid": "w", "resources": resources, "experiments": ran}]


async def test_statistics_are_for_admins(api: Api) -> None:
    _, key = await new_user(api, "eve")
    await api.call("server.get_stats", auth=key, expect=403)


async def test_no_statistics_are_reported(api: Api) -> None:
    for request in ({}, {"enabled": True}):
        answer = await api.call("server.report_stats_option", request)
        assert answer == {"supported": False, "enabled": False, "current_version": "2.3.0"}


async def test_ping_answers_anybody(api: Api) -> None:
    assert await api.call("debug.ping", auth=None) == {"msg": "events-apiserver"}
