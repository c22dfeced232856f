"""Who may read what: each address for strangers, guests, other companies, links, and pages of other origins."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import arro3.io
import jwt
import pytest

from apiserver.data.addresses import ROUTERS
from apiserver.data.links import DataLinks
from apiserver.rpc.call import Identity
from apiserver.services.access.credentials import create_credential, create_user
from tests.data.conftest import Data, make_data, scalar
from tests.data.test_scalars import columns
from tests.harness import running_api

pytestmark = pytest.mark.anyio

SECRET = "the secret with which tokens are signed in these tests"
TASK = ("scalars", "stats", "log", "plots", "images", "config", "artifacts")
PROJECT = ("tasks", "groups", "scalars")
#: Parts of a project's tables.
PARTS = ("tasks?offset=0&limit=1", "groups?by=tags", "groups?by=name&recursive=true")
#: They answer JSON only.
OF_LOGS = {"line": "time=0", "hits": "search=x", "workers": ""}


@pytest.fixture
async def data(tmp_path: Path) -> Any:
    async with running_api(tmp_path / "data", token_secret=SECRET, guest=True) as api:
        made = await make_data(api)
        await made.add(scalar("loss", "train", 1, 1))
        yield made


def test_every_address_is_tried_here() -> None:
    paths = {str(getattr(route, "path", "")) for router in ROUTERS for route in router.routes}
    assert {path for path in paths if "ending" not in path} == {
        *(f"/data/tasks/{{task:path}}/{name}" for name in TASK),
        *(f"/data/tasks/{{task:path}}/log/{name}" for name in OF_LOGS),
        *(f"/data/projects/{{project:path}}/{name}" for name in PROJECT),
        *("/data/projects", "/data/links", "/data/usage"),
        "/data/file",  # in test_files.py
        *("/data/live", "/data/tasks/{task:path}/live"),  # in test_live.py
        "/data/metrics",  # in tests/operating/metrics
        "/data/audit",  # in tests/operating/audit
        "/data/retention",  # in test_retention.py
        *("/data/views", "/data/views/{id}", "/data/views/{id}/delete"),  # in test_views.py
    }


def addresses(data: Data) -> list[str]:
    of_tasks = [f"/tasks/{data.task}/{name}" for name in TASK]
    by_name = [f"/tasks/ex/amples/first try/{name}" for name in TASK]
    return [*of_tasks, *by_name, *(f"/projects/{data.project}/{name}" for name in PROJECT), "/projects", "/usage"]


async def company(data: Data, role: str = "user") -> tuple[str, str]:
    """The access key of a user of another company."""
    documents = data.api.backend.documents
    id = uuid4().hex
    await documents.insert("companies", [{"id": id, "name": "other"}])
    _, credential = await create_user(documents, id, "other", role)
    return credential.key, credential.secret


@pytest.mark.test
async def test_strangers_read_nothing(data: Data) -> None:
    for address in addresses(data):
        for ending in ("", ".csv", ".parquet"):
            await data.error(address + ending, auth=None, expect=401)
            await data.error(address + ending, auth=("nobody", "nothing"), expect=401)
            for token in ("", "x", "x" * 60_000, jwt.encode({"aud": "data"}, SECRET, algorithm="HS256")):
                await data.error(f"{address}{ending}?token={token}", auth=None, expect=401)
    answer = await data.api.raw("POST", "/data/links", json={"address": f"/data/tasks/{data.task}/log"}, auth=None)
    assert answer.status_code == 401


@pytest.mark.test
@pytest.mark.parametrize(
    ("headers", "asks"),
    [
        ({}, True),
        ({"sec-fetch-dest": "document", "accept": "text/html,*/*"}, True),
        ({"cookie": "clearml_token_basic=old", "accept": "text/html,*/*"}, True),
        ({"sec-fetch-dest": "empty"}, False),
        ({"cookie": "clearml_token_basic=old", "accept": "*/*"}, False),
    ],
    ids=["a program", "a tab", "a tab without TLS", "a script", "a script without TLS"],
)
async def test_a_browser_asks_for_a_password_in_tabs_and_not_over_pages(
    data: Data, headers: dict[str, str], asks: bool
) -> None:
    answer = await data.api.raw("GET", f"/data/tasks/{data.task}/log.json", auth=None, headers=headers)
    assert (answer.status_code, "www-authenticate" in answer.headers) == (401, asks)


@pytest.mark.test
async def test_other_companies_find_nothing(data: Data) -> None:
    other = await company(data, "admin")
    for address in addresses(data):
        if address in ("/projects", "/usage"):
            assert (await data.get(address, auth=other)).json() == []
        else:
            await data.error(address, auth=other, expect=404)
            await data.error(f"{address}.parquet", auth=other, expect=404)
    # A file that was made for one company is not answered to another one.
    await data.get("scalars.parquet")
    await data.error("scalars.parquet", auth=other, headers={"range": "bytes=0-9"}, expect=404)


@pytest.mark.test
@pytest.mark.parametrize(("name", "query"), OF_LOGS.items())
async def test_who_reads_what_is_found_in_logs(data: Data, name: str, query: str) -> None:
    address = f"/tasks/{data.task}/log/{name}"
    await data.error(f"{address}?{query}", auth=None, expect=401)
    await data.error(f"{address}?{query}", auth=await company(data, "admin"), expect=404)
    await data.get(f"{address}?{query}")
    other = (await data.api.call("tasks.create", {"name": "other", "type": "training", "project": data.project}))["id"]
    token = (await link(data, f"/data/tasks/{data.task}/log")).rpartition("token=")[2]
    await data.get(f"{address}?token={token}&{query}", auth=None)
    await data.error(f"/tasks/{other}/log/{name}?token={token}&{query}", auth=None, expect=404)


@pytest.mark.test
@pytest.mark.parametrize("part", PARTS)
async def test_who_reads_parts_of_tables(data: Data, part: str) -> None:
    address, other = f"/projects/{data.project}/{part}", await company(data, "admin")
    await data.error(address, auth=None, expect=401)
    await data.error(address, auth=other, expect=404)
    everything = await data.get(f"/projects/*/{part}", auth=other)
    assert everything.json() == []
    assert everything.headers.get("x-total-count", "0") == "0"
    assert (await data.get(address)).json()
    token = (await link(data, f"/data/tasks/{data.task}/log")).rpartition("token=")[2]
    for project in (data.project, "*"):
        await data.error(f"/projects/{project}/{part}&token={token}", auth=None, expect=404)


async def test_guests_read_and_make_no_links(data: Data) -> None:
    documents = data.api.backend.documents
    guest = await documents.find_one("users", {"role": "guest"})
    assert guest is not None
    credential = await create_credential(documents, guest)
    auth = (credential.key, credential.secret)
    await data.get("scalars", auth=auth)
    answer = await data.api.raw("POST", "/data/links", json={"address": f"/data/tasks/{data.task}/log"}, auth=auth)
    assert answer.status_code == 403


async def link(data: Data, address: str, seconds: int = 60) -> str:
    answer = await data.api.raw("POST", "/data/links", json={"address": address, "seconds": seconds})
    assert answer.status_code == 200, answer.text
    made: str = answer.json()["address"]
    assert answer.json()["url"] == f"http://testserver{made}"
    return made.removeprefix("/data")


@pytest.mark.test
async def test_a_link_opens_what_it_names_and_nothing_else(data: Data) -> None:
    other = (await data.api.call("tasks.create", {"name": "other", "type": "training", "project": data.project}))["id"]
    opened = await link(data, "/data/tasks/ex/amples/first try/scalars.csv?metric=loss")
    assert (await data.get(opened, auth=None)).text.count("\n") == 2
    assert "first" not in opened
    token = opened.rpartition("token=")[2]
    for name in TASK:
        await data.get(f"/tasks/{data.task}/{name}?token={token}", auth=None)
        await data.error(f"/tasks/{other}/{name}?token={token}", auth=None, expect=404)
    for name in PROJECT:
        await data.error(f"/projects/{data.project}/{name}?token={token}", auth=None, expect=404)
    await data.error(f"/projects?token={token}", auth=None, expect=403)
    whole = (await link(data, f"/data/projects/{data.project}/tasks")).rpartition("token=")[2]
    await data.get(f"/tasks/{other}/scalars?token={whole}", auth=None)
    for name in PROJECT:
        await data.get(f"/projects/{data.project}/{name}?token={whole}", auth=None)
        await data.get(f"/projects/{data.project}/{name}?recursive=1")
        await data.error(f"/projects/{data.project}/{name}?recursive=1&token={whole}", auth=None, expect=403)


async def test_a_link_is_for_an_address_of_one_task_or_project(data: Data) -> None:
    for part in ("log/hits?search=a", "log/line?time=0", "log/workers"):
        await data.get(await link(data, f"/data/tasks/{data.task}/{part}"), auth=None)
    for address in ("http://[", "/data/projects/*/tasks", f"/data/tasks/{data.task}", "/data/tasks/log/hits"):
        answer = await data.api.raw("POST", "/data/links", json={"address": address})
        assert (answer.status_code, answer.json()["error"]["parameter"]) == (400, "address"), address


async def test_a_link_writes_nothing(data: Data) -> None:
    opened = await link(data, f"/data/tasks/{data.task}/scalars")
    token = opened.rpartition("token=")[2]
    for path in (f"/data{opened}", f"/data/links?token={token}"):
        body = {"address": f"/data/tasks/{data.task}/scalars"}
        assert (await data.api.raw("POST", path, json=body, auth=None)).status_code in (403, 405)
    for headers in ({"authorization": f"Bearer {token}"}, {"cookie": f"clearml_token_basic={token}"}):
        answer = await data.api.raw("POST", "/tasks.get_all", headers=headers, json={}, auth=None)
        assert answer.status_code == 401
    await data.error("/projects", headers={"authorization": f"Bearer {token}"}, auth=None, expect=401)


async def test_a_link_ends(data: Data) -> None:
    documents = data.api.backend.documents
    admin = await documents.find_one("users", {"role": "admin"})
    assert admin is not None
    links, maker = DataLinks(SECRET), Identity(admin["id"], admin["company"])
    ended = links.token(maker, f"tasks/{data.task}", -1)
    assert "ended" in (await data.error(f"scalars?token={ended}", auth=None, expect=401))["message"]
    gone = links.token(Identity("nobody", admin["company"]), f"tasks/{data.task}", 60)
    await data.error(f"scalars?token={gone}", auth=None, expect=401)
    forged = DataLinks("another secret, as long as the right one is").token(maker, f"tasks/{data.task}", 60)
    await data.error(f"scalars?token={forged}", auth=None, expect=401)
    # A token of a login or of a file opens no data.
    claims = {"exp": time.time() + 60, "user": maker.user, "company": maker.company, "covers": f"tasks/{data.task}"}
    for audience in ("file", None):
        token = jwt.encode({**claims, **({"aud": audience} if audience else {})}, SECRET, algorithm="HS256")
        await data.error(f"scalars?token={token}", auth=None, expect=401)
    answer = await data.api.raw("POST", "/data/links", json={"address": f"/data/tasks/{data.task}/log", "seconds": 0})
    assert answer.json()["error"]["parameter"] == "seconds"


async def test_a_link_ends_with_the_key_that_made_it(data: Data) -> None:
    documents = data.api.backend.documents
    _, credential = await create_user(documents, data.api.company, "maker")
    body = {"address": f"/data/tasks/{data.task}/scalars"}
    auth = (credential.key, credential.secret)
    opened = (await data.api.raw("POST", "/data/links", json=body, auth=auth)).json()["address"].removeprefix("/data")
    await data.get(opened, auth=None)
    await data.api.call("auth.revoke_credentials", {"access_key": credential.key}, auth=auth)
    await data.error(opened, auth=None, expect=401)


@pytest.mark.test
async def test_a_link_gets_no_file_of_another_task(data: Data) -> None:
    """A name means the newest task; the file of the one before must not be answered."""
    named = "/tasks/ex/amples/first try/scalars.parquet"
    await data.get(named)
    other = {"name": "first try", "type": "training", "project": data.project}
    newer = (await data.api.call("tasks.create", other))["id"]
    token = (await link(data, f"/data/tasks/{newer}/scalars")).rpartition("token=")[2]
    for headers in ({}, {"range": "bytes=0-"}):
        expected = 206 if headers else 200
        answer = await data.get(f"{named}?token={token}", auth=None, headers=headers, expect=expected)
        assert columns(arro3.io.read_parquet(io.BytesIO(answer.content)))["iter"] == []


async def test_a_link_is_in_no_log(data: Data, caplog: pytest.LogCaptureFixture) -> None:
    opened = await link(data, f"/data/tasks/{data.task}/scalars")
    with caplog.at_level(logging.DEBUG, "apiserver"):
        await data.get(opened, auth=None)
        await data.error(f"{opened}&points=-1", auth=None)
    assert opened.rpartition("token=")[2] not in caplog.text


async def test_pages_of_other_origins_get_nothing_by_the_cookie(data: Data) -> None:
    token = (await data.api.call("auth.login"))["token"]
    own = {"cookie": f"clearml_token_basic={token}", "sec-fetch-site": "same-origin", "host": "testserver"}
    await data.get("scalars", headers=own, auth=None)
    foreign = {**own, "sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    body = {"address": f"/data/tasks/{data.task}/log"}
    assert (await data.api.raw("POST", "/data/links", json=body, headers=foreign, auth=None)).status_code == 403
    form = {**own, "content-type": "text/plain"}
    answer = await data.api.raw("POST", "/data/links", content=b"{}", headers=form, auth=None)
    assert answer.status_code == 403
