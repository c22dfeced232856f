"""`/data/retention`: what would be deleted, by the settings or by other rules."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from apiserver.common.times import utc_now
from apiserver.events.model import Owner
from apiserver.services.access.credentials import create_user
from apiserver.settings.retention_rules import RetentionRule
from apiserver.stores.documents.query import Update
from tests.contract.event_stores import batch, lines, scalars
from tests.harness import Api, new_user, running_api

pytestmark = pytest.mark.anyio

DAY = 86_400_000


async def filled(api: Api) -> str:
    """A task with two lines of 100 days ago, and one of now."""
    task = (await api.call("tasks.create", {"name": "old", "type": "training"}))["id"]
    made = Update(set={"created": "2020-01-01T00:00:00+00:00", "status": "completed"})
    await api.backend.documents.update("tasks", {"id": task}, made)
    now, owner = int(time.time() * 1000), Owner(api.company, task)
    times = [now - 100 * DAY, now - 99 * DAY, now]
    await api.backend.events.add(batch(lines(["one", "two", "new"], timestamps=times, owner=owner)))
    return str(task)


async def rows(api: Api, rules: object = None, **how: Any) -> list[dict[str, Any]]:
    params = {} if rules is None else {"rules": json.dumps(rules)}
    response = await api.raw("GET", "/data/retention.json", params=params, **how)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


async def test_it_says_what_the_settings_or_other_rules_would_delete(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", retention=(RetentionRule(("logs",), "90 d"),)) as api:
        task = await filled(api)
        (row,) = await rows(api)
        assert row["newest"] - row["oldest"] == DAY
        assert {name: row[name] for name in ("project", "task", "name", "type", "keep", "events", "bytes")} == {
            **{"project": None, "task": task, "name": "old", "type": "logs"},
            **{"keep": "90 d", "events": 2, "bytes": 6},
        }
        assert await rows(api, [{"types": ["logs"], "keep": "1 y"}]) == []
        assert await rows(api, []) == []
        owner, times = Owner(api.company, task), [row["oldest"] - n for n in range(100)]
        await api.backend.events.add(batch(scalars([float(n % 9) for n in range(100)], timestamps=times, owner=owner)))
        (row,) = await rows(api, [{"types": ["scalars"], "keep": "90 d", "then": "12 points"}])
        assert (row["type"], row["keep"], row["bytes"]) == ("scalars", "90 d, then 12 points", 0)
        assert 88 <= row["events"] < 95
        assert await api.backend.events.events_count(Owner(api.company, task)) == 103
        await api.backend.documents.update("tasks", {"id": task}, Update(set={"imported": utc_now()}))
        assert await rows(api) == [], "it is as old as its import"


@pytest.mark.test
@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ('[{"types": ["logs"], "keep": "90 dd"}]', "rule 1: keep: '90 dd'"),
        ('[{"types": ["scalars"], "keep": "1 y", "then": "2 points"}]', "rule 1: then: '2 points'"),
        ("nonsense", "rules: not a list of rules in JSON: Expecting value"),
        ("7", "rules: not a list of rules"),
        ("[" * 9000, "rules: not a list of rules in JSON"),
        ('[{"types": ' + "[" * 900 + "]" * 900 + "}]", "rule 1: types: "),
    ],
)
async def test_wrong_rules_are_refused(api: Api, rules: str, said: str) -> None:
    response = await api.raw("GET", "/data/retention.json", params={"rules": rules})
    assert response.status_code == 400
    assert said in response.text


@pytest.mark.own_api
async def test_only_admins_see_it_and_only_of_their_company(api: Api) -> None:
    await filled(api)
    rules = [{"types": ["logs"], "keep": "90 d"}]
    assert len(await rows(api, rules)) == 1
    _, user = await new_user(api, "somebody")
    assert (await api.raw("GET", "/data/retention", auth=user)).status_code == 403
    await api.backend.documents.insert("companies", [{"id": "other", "name": "other"}])
    _, credential = await create_user(api.backend.documents, "other", "their admin", "admin")
    assert await rows(api, rules, auth=(credential.key, credential.secret)) == []
