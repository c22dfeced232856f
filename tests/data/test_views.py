"""Short addresses and named views: who sees them, and how many there may be."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.common.answers import AnswerBounds
from apiserver.server.bounds import Bounds
from apiserver.services.access.credentials import create_credential, create_user
from apiserver.services.bounds import CallBounds
from tests.data.conftest import ON_EACH, Data, make_data
from tests.data.test_access import company
from tests.harness import running_api

pytestmark = pytest.mark.anyio

LONG = "/projects/p/compare?tasks=" + ",".join(f"{n:032x}" for n in range(1000))


#: Addresses that lead to another one, so perhaps to themselves.
LEADING = ["/s/abc", "/s", "/%73/abc", "/.//s/abc", "/p/../s/abc", "/p/%2e%2e/s/abc", "/sign-in?to=/s/abc", "/sign-in/"]


async def save(data: Data, view: dict[str, Any], *, expect: int = 200, **options: Any) -> Any:
    answer = await data.api.raw("POST", "/data/views", json=view, **options)
    assert answer.status_code == expect, answer.text
    return answer.json()


async def colleague(data: Data) -> tuple[str, tuple[str, str]]:
    """The id and the access key of another user of the company."""
    company = data.api.company
    user, credential = await create_user(data.api.backend.documents, company, "colleague")
    return user["id"], (credential.key, credential.secret)


async def test_the_same_address_has_the_same_short_one(data_anywhere: Data) -> None:
    data = data_anywhere
    _, other = await colleague(data)
    first = await save(data, {"address": LONG})
    assert first["short"] == f"/s/{first['id']}"
    assert len(first["id"]) == 12
    assert (await save(data, {"address": LONG}, auth=other))["id"] == first["id"]
    assert (await save(data, {"address": f"{LONG},x"}))["id"] != first["id"]
    assert (await data.get(f"/views/{first['id']}", auth=other)).json()["address"] == LONG
    assert (await data.get("/views?project=*")).json() == []


@pytest.mark.test
@ON_EACH
async def test_named_views(data_anywhere: Data) -> None:
    data = data_anywhere
    user, other = await colleague(data)
    mine = await save(data, {"address": "/projects/p?sort=name", "name": "best", "project": "*"})
    shared = await save(data, {"address": "/projects/p", "name": "all", "project": "*", "shared": True}, auth=other)
    await save(data, {"address": "/projects/q", "name": "else", "project": data.project}, auth=other)
    assert [one["name"] for one in (await data.get("/views?project=*")).json()] == ["best", "all"]
    assert [one["name"] for one in (await data.get("/views?project=*", auth=other)).json()] == ["all"]
    await data.error(f"/views/{mine['id']}", auth=other, expect=404)

    again = await save(data, {"address": "/projects/p?sort=-name", "name": "best", "project": "*"})
    assert (again["id"], again["address"]) == (mine["id"], "/projects/p?sort=-name")
    assert (await data.get(f"/views/{mine['id']}")).json()["address"] == "/projects/p?sort=-name"

    hers = await save(data, {"address": "/projects/p", "name": "hers", "project": "*"}, auth=other)
    await data.api.call("users.delete", {"user": user})
    kept = await data.api.backend.documents.find("views", {"user": user}, projection=["name"])
    assert [one["name"] for one in kept] == ["all"]
    await data.error(f"/views/{hers['id']}", expect=404)
    assert (await data.get(f"/views/{shared['id']}")).json()["user"] == user


async def test_views_are_deleted_by_their_makers_and_admins(data_anywhere: Data) -> None:
    data = data_anywhere
    _, other = await colleague(data)
    view = {"address": "/projects/p", "name": "all", "project": "*", "shared": True}
    mine, hers = await save(data, view), await save(data, {**view, "name": "hers"}, auth=other)
    refused = await data.api.raw("POST", f"/data/views/{mine['id']}/delete", auth=other)
    assert refused.status_code == 403
    for id in (mine["id"], hers["id"]):
        assert (await data.api.raw("POST", f"/data/views/{id}/delete")).status_code == 200
    assert (await data.get("/views?project=*")).json() == []


@pytest.mark.bounds(Bounds(calls=CallBounds(short_views=2, named_views=1)))
async def test_a_user_has_a_bounded_number_of_views(data_anywhere: Data) -> None:
    data = data_anywhere
    made = [(await save(data, {"address": f"/projects/{n}"}))["id"] for n in range(3)]
    await data.error(f"/views/{made[0]}", expect=404)
    for id in made[1:]:
        await data.get(f"/views/{id}")
    view = {"address": "/projects", "name": "a", "project": "*"}
    await save(data, view)
    await save(data, view)
    assert (await save(data, {**view, "name": "b"}, expect=400))["error"]["parameter"] == "name"


@pytest.mark.bounds(Bounds(calls=CallBounds(short_bytes=10_000)))
async def test_short_addresses_have_a_bounded_size(data_anywhere: Data) -> None:
    data = data_anywhere
    made = [(await save(data, {"address": f"/projects/{n}?{'ä' * 2000}"}))["id"] for n in range(3)]
    await data.error(f"/views/{made[0]}", expect=404)
    for id in made[1:]:
        await data.get(f"/views/{id}")


@pytest.mark.bounds(Bounds(calls=CallBounds(listed_views=2)))
async def test_own_views_are_listed_first(data: Data) -> None:
    _, other = await colleague(data)
    for name in ("a", "b"):
        await save(data, {"address": "/p", "name": name, "project": "*", "shared": True}, auth=other)
    await save(data, {"address": "/p", "name": "z", "project": "*"})
    assert [one["name"] for one in (await data.get("/views?project=*")).json()] == ["z", "a"]


@pytest.mark.test
@pytest.mark.bounds(Bounds(answers=AnswerBounds(largest=100_000)))
async def test_a_list_of_views_counts_as_an_answer(data: Data) -> None:
    for n in range(20):
        await save(data, {"address": f"/projects?{'x' * 8000}", "name": f"{n}", "project": "*"})
    refused = await data.api.raw("GET", "/data/views?project=*")
    assert refused.status_code >= 400


async def test_views_belong_to_a_project(data_anywhere: Data) -> None:
    data = data_anywhere
    await save(data, {"address": "/p", "name": "a", "project": "none"}, expect=404)
    await data.error("/views?project=none", expect=404)
    assert (await save(data, {"address": "/p", "name": "a", "project": "ex/amples"}))["project"] == data.project


@pytest.mark.test
@pytest.mark.parametrize(
    "address", ["//evil.example/", "/\\evil.example", "https://evil.example", "p", "/a\nb", "", *LEADING]
)
async def test_only_paths_of_this_server(data: Data, address: str) -> None:
    for named in ({}, {"name": "a", "project": "*"}):
        assert (await save(data, {"address": address, **named}, expect=400))["error"]["parameter"] == "address"


async def test_wrong_views(data: Data) -> None:
    for view, parameter in (
        ({"address": "/p", "name": "a"}, "project"),
        ({"address": "/p", "name": "", "project": "*"}, "name"),
        ({"address": "/" + "p" * 60_000}, "address"),
        ({"address": "/" + "p" * 8192, "name": "a", "project": "*"}, "address"),
        ({"name": "a"}, "address"),
        ({"address": "/p", "other": 1}, "other"),
    ):
        assert (await save(data, view, expect=400))["error"]["parameter"] == parameter
    await data.error("/views/none", expect=404)
    await data.error("/views")


@pytest.mark.test
async def test_who_may(tmp_path: Any) -> None:
    async with running_api(tmp_path / "data", guest=True) as api:
        data = await make_data(api)
        view = await save(data, {"address": "/projects"})
        for auth in (None, ("nobody", "nothing")):
            await save(data, {"address": "/projects"}, auth=auth, expect=401)
            await data.error(f"/views/{view['id']}", auth=auth, expect=401)
        stranger = await company(data, "admin")
        await data.error(f"/views/{view['id']}", auth=stranger, expect=404)
        named = await save(data, {"address": "/p", "name": "a", "project": data.project, "shared": True})
        for project, expect in ((data.project, 404), ("*", 200)):
            answer = await data.get(f"/views?project={project}", auth=stranger, expect=expect)
            assert expect == 404 or answer.json() == []
        await save(data, {"address": "/p", "name": "a", "project": data.project}, auth=stranger, expect=404)
        await data.error(f"/views/{named['id']}", auth=stranger, expect=404)
        refused = await data.api.raw("POST", f"/data/views/{named['id']}/delete", auth=stranger)
        assert refused.status_code == 404
        assert (await save(data, {"address": "/projects"}, auth=stranger))["id"] != view["id"]
        documents = data.api.backend.documents
        guest = await documents.find_one("users", {"role": "guest"})
        assert guest is not None
        credential = await create_credential(documents, guest)
        by_guest = (credential.key, credential.secret)
        assert (await data.get(f"/views/{view['id']}", auth=by_guest)).json()["address"] == "/projects"
        await save(data, {"address": "/projects"}, auth=by_guest, expect=403)
        refused = await data.api.raw("POST", f"/data/views/{named['id']}/delete", auth=by_guest)
        assert refused.status_code == 403
        link = await data.api.raw("POST", "/data/links", json={"address": f"/data/tasks/{data.task}/log"})
        token = link.json()["token"]
        await data.error(f"/views/{view['id']}?token={token}", auth=None, expect=403)
        await data.error(f"/views?project={data.project}&token={token}", auth=None, expect=403)
