"""Quotas are read from the settings. The error of a wrong one says what is wrong with it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from apiserver.settings.settings import SettingsError, masked
from apiserver.settings.sources import load
from apiserver.settings.values import Quota
from tests.harness import running_api

pytestmark = pytest.mark.anyio


def test_settings_say_quotas_in_toml_and_json(tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text(
        'quotas = [{of = "task", series = 100_000}, {of = "company", bytes = "500 GB"},\n'
        '          {of = "user", id = "u", events_per_second = 20000, bytes = "1.5 GiB"}]\n'
    )
    quotas = load(config=config).quotas
    assert quotas == (
        Quota("task", series=100_000),
        Quota("company", bytes=500 * 10**9),
        Quota("user", "u", bytes=3 * 2**29, events_per_second=20_000),
    )
    assert load(environ={"APISERVER_QUOTAS": masked(load(config=config))["quotas"]}).quotas == quotas


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            [{"of": "task", "bytes": 1}, {"of": "tasks", "bytes": 1}],
            "quota 2: of: 'tasks' is none of task, project, user",
        ),
        ([{"bytes": 1}], "quota 1: of: it is missing; give one of task, project, user, company"),
        ([{"of": ["task"], "bytes": 1}], "quota 1: of: "),
        ([{"of": "task"}], "quota 1: the quota of a task bounds nothing"),
        ([{"of": "task", "bytes": 0}], "bounds nothing: give bytes, series or events_per_second, of 1 or more"),
        ([{"of": "task", "bytes": "many"}], "'many' is neither a whole number nor a size"),
        ([{"of": "task", "bytes": -1}], "bytes: -1 is less than 0"),
        ([{"of": "task", "bytes": "200"}], "bytes: '200' has no unit: give a size such as '200 GB', or a number"),
        ([{"of": "task", "bytes": 1.5}], "bytes: 1.5 is not a whole number"),
        ([{"of": "task", "series": "5 GB"}], "series: '5 GB' is not a whole number"),
        ([{"of": "task", "serie": 5}], "a quota has no field serie, only of, id, bytes, series, events_per_second"),
        ([{"of": "task", "points": 1}], "no field points"),
        ([{"of": "task", "bytes": 1}, {"of": "task", "series": 1}], "quota 2: one before it is for the same"),
        (["task"], "is a table"),
        ({"of": "task", "bytes": 1}, r"not a list of quotas: put them into \[ and \]"),
    ],
)
def test_a_wrong_quota_is_named(given: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load(environ={"APISERVER_QUOTAS": json.dumps(given)})


async def test_a_quota_for_nobody_is_said_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_api(tmp_path / "data") as api:
        project = (await api.call("projects.create", {"name": "lab/vision"}))["id"]
    quotas = (
        Quota("project", "lab/vision", series=9),
        Quota("project", project, series=9),
        Quota("task", "t", series=9),
    )
    with caplog.at_level(logging.WARNING):
        async with running_api(tmp_path / "data", quotas=quotas):
            pass
    assert [text for text in caplog.messages if "quotas" in text] == [
        f"quotas: there is no project with the id 'lab/vision'; of this name there is {project}: a quota is for an id",
        "quotas: there is no task with the id 't'",
    ]
