"""server.* and debug.*, through the whole server."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver import __version__
from apiserver.services import credentials
from tests.harness import ADMIN_SECRET, Api, running_api

pytestmark = pytest.mark.anyio


async def test_info_has_what_clients_read(api: Api) -> None:
    info = await api.call("server.info")
    assert (info["version"], info["api_version"], info["build"]) == ("2.3.0", "2.34", __version__)
    assert len(info["uid"]) == 32


async def test_the_uid_stays_after_a_restart_and_is_each_servers_own(tmp_path: Path) -> None:
    uids = []
    for folder in ("one", "one", "two"):
        async with running_api(tmp_path / folder) as api:
            uids.append((await api.call("server.info"))["uid"])
    assert uids[0] == uids[1] != uids[2]


async def test_config_masks_secrets(api: Api) -> None:
    config = await api.call("server.config")
    assert config["admin_secret"] == config["token_secret"] == "****"
    assert ADMIN_SECRET not in str(config)
    assert config["port"] == 8008
    assert await api.call("server.config", {"path": "port"}) == {"port": 8008}
    await api.call("server.config", {"path": "nothing"}, expect=400)


async def test_config_is_for_admins(api: Api) -> None:
    _, made = await credentials.create_user(api.backend.documents, api.backend.settings.company, "eve")
    await api.call("server.config", auth=(made.key, made.secret), expect=403)


async def test_no_statistics_are_reported(api: Api) -> None:
    for request in ({}, {"enabled": True}):
        assert await api.call("server.report_stats_option", request) == {"supported": False, "enabled": False}


async def test_ping_answers_anybody(api: Api) -> None:
    assert await api.call("debug.ping", auth=None) == {"msg": "events-apiserver"}
