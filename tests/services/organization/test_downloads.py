"""Tables of tasks and models as files."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apiserver.common.answers import AnswerBounds
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.services.lists.expiring_ids import oldest_id
from apiserver.services.organization import downloads
from tests.harness import Api

pytestmark = pytest.mark.anyio


async def prepared(api: Api, columns: list[dict[str, Any]], **request: Any) -> str:
    query = {"entity_type": "task", "only_fields": [], "field_mappings": columns, **request}
    prepare_id: str = (await api.call("organization.prepare_download_for_get_all", query))["prepare_id"]
    return prepare_id


async def downloaded(api: Api, prepare_id: str) -> tuple[str, str]:
    """The name of a prepared file, and what is in it."""
    response = await api.raw("GET", f"/v2.34/organization.download_for_get_all?prepare_id={prepare_id}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.content.startswith("\ufeff".encode())
    return response.headers["content-disposition"], response.content.decode("utf-8-sig")


async def test_a_table_of_tasks_is_a_file(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "a/my ü project"}))["id"]
    for name, lr in (("=first", "1e-3"), ('sec"ond', "2")):
        task = {"name": name, "type": "training", "project": project, "tags": ["a", "b"]}
        await api.call("tasks.create", {**task, "hyperparams": {"Args": {"l.r": {"value": lr}}}})
    await api.call("tasks.create", {"name": "elsewhere", "type": "training"})
    columns: list[dict[str, Any]] = [
        {"field": "name", "name": "NAME"},
        {"field": "type", "values": [{"key": "training", "value": "Training"}]},
        *({"field": field} for field in ("tags", "project.name", "user", "hyperparams.Args.l%2Er.value", "started")),
        {"field": "last_iteration", "name": "ITER"},
    ]
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    name, text = await downloaded(api, await prepared(api, columns, project=[project], order_by=["name"]))

    assert name == "attachment; filename=my___project-tasks.csv"
    assert text == (
        "NAME,type,tags,project.name,user,hyperparams.Args.l%2Er.value,started,ITER\r\n"
        f'\'=first,Training,"a, b",a/my ü project,{admin},1e-3,,0\r\n'
        f'"sec""ond",Training,"a, b",a/my ü project,{admin},2,,0\r\n'
    )
    others = await prepared(api, columns[:1], only_fields=["last_iteration"], order_by=["-name"])
    name, text = await downloaded(api, others)
    assert name == "attachment; filename=tasks.csv"
    assert text.splitlines() == ["NAME", '"sec""ond"', "elsewhere", "'=first"]


@pytest.mark.bounds(Bounds(calls=CallBounds(downloaded=2)))
async def test_a_table_has_all_its_pages(api: Api) -> None:
    for number in range(5):
        await api.call("models.create", {"name": f"m{number}", "uri": "u", "metadata": {"k": {"value": "v"}}})
    columns = [{"field": "name"}, {"field": "metadata.k.value", "name": "k"}]
    name, text = await downloaded(
        api, await prepared(api, columns, entity_type="model", order_by=["name"], page=7, scroll_id="x", size=1)
    )
    assert name == "attachment; filename=models.csv"
    assert text.split() == ["name,k", *(f"m{number},v" for number in range(5))]
    nothing = await prepared(api, columns, entity_type="model", name="^x$")
    assert (await downloaded(api, nothing))[1] == "name,k\r\n"


@pytest.mark.test
@pytest.mark.bounds(Bounds(answers=AnswerBounds(largest=700_000), calls=CallBounds(downloaded=4)))
async def test_pages_of_large_tasks_are_halved(api: Api) -> None:
    for number in range(7):
        task = {"name": f"t{number}", "type": "training", "comment": "x" * (300_000 if number < 5 else 1)}
        await api.call("tasks.create", task)
    columns = [{"field": "name"}, {"field": "comment"}]
    wanted = await prepared(api, columns, order_by=["name"])
    rows = (await downloaded(api, wanted))[1].splitlines()
    assert [len(row) for row in rows] == [len("name,comment"), *[300_003] * 5, 4, 4]


@pytest.mark.own_api
async def test_what_cannot_be_downloaded_is_refused(api: Api) -> None:
    columns = [{"field": "name"}]
    query = {"entity_type": "task", "field_mappings": columns}
    for request in (
        {**query, "entity_type": "queue"},
        {**query, "field_mappings": [*columns, {"field": "x", "name": "name"}]},
        {**query, "field_mappings": []},
        {**query, "name": "("},
    ):
        await api.call("organization.prepare_download_for_get_all", request, expect=400)
    meta = (await api.call("organization.download_for_get_all", {"prepare_id": "x"}, expect=400))["meta"]
    assert meta["result_subcode"] == 10

    documents, late = api.backend.documents, f"{oldest_id(downloads.KEPT_SECONDS + 1)}{uuid4().hex}"
    await prepared(api, columns)
    [kept] = await documents.find(downloads.DOWNLOADS, {})
    await documents.delete(downloads.DOWNLOADS, {"id": kept["id"]})
    await documents.insert(downloads.DOWNLOADS, [{**kept, "id": late}])
    await api.call("organization.download_for_get_all", {"prepare_id": late}, expect=400)
    await prepared(api, columns)
    assert await api.backend.documents.count("downloads", {}) == 1
