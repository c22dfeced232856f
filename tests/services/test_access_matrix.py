"""Every endpoint and address, asked with keys of every scope and role, in every form in which a key is presented.

What is expected is said here once more, in other words than the server's. Calls of endpoints have a broken body: who
may call is answered 400, who may not 403, so nothing is changed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from apiserver.common.times import from_now
from apiserver.rpc.call import FULL, Grant
from apiserver.rpc.schema import EndpointVersion
from apiserver.services.access import credentials, identities
from apiserver.services.access.roles import ADMINS_ONLY
from apiserver.services.access.scopes import SCOPES, grant_of
from apiserver.stores.documents.query import Document, Update
from tests.harness import ADMIN_KEY, Api, basic, bearer, running_api
from tests.services.generated import ENDPOINTS, ask

pytestmark = pytest.mark.anyio

ROLES = ("admin", "user", "guest")
#: None: a key without scopes.
SCOPE_SETS: tuple[tuple[str, ...] | None, ...] = (None, *((scope,) for scope in SCOPES), ("read", "events"))

#: What everybody may call, whatever their key.
OPEN = {
    *("auth.fixed_users_mode", "auth.login", "auth.login_by_link", "auth.logout"),
    *("auth.begin_provider_login", "auth.finish_provider_login"),
    *("debug.ping", "login.logout", "login.supported_modes"),
}
#: They want a link or what a provider says, not a caller.
SIGN_INS = {"auth.login_by_link", "auth.begin_provider_login", "auth.finish_provider_login"}
#: Services in which runs and their pages live.
OF_RUNS = {
    *("events", "models", "organization", "pipelines", "projects", "queues", "reports", "serving", "tasks", "workers"),
}
#: Services that tell secrets: no key that only reads opens them.
OF_SECRETS = {"auth", "storage"}


def allowed(endpoint: EndpointVersion, scopes: tuple[str, ...] | None, role: str) -> bool:
    """Whether a key with these scopes, of a user of this role, may call an endpoint."""
    name, service = endpoint.name, endpoint.name.partition(".")[0]
    if name in OPEN:
        return True
    if role != "admin" and name in ADMINS_ONLY:
        return False
    if role == "guest" and not endpoint.reads:
        return False
    if scopes is None or "all" in scopes:
        return True
    if "write" in scopes and service in OF_RUNS and not name.endswith(".make_public"):
        return True
    if "events" in scopes and name in ("events.add", "events.add_batch"):
        return True
    return endpoint.reads and service not in OF_SECRETS and not {"read", "write"}.isdisjoint(scopes)


@dataclass(frozen=True)
class World:
    """A server, and a user of each role."""

    api: Api
    users: dict[str, Document]

    async def key(self, role: str, grant: Grant = FULL) -> tuple[str, str]:
        """A new access key of the user with this role."""
        made = await credentials.create_credential(self.api.backend.documents, self.users[role], grant=grant)
        return made.key, made.secret

    async def token(self, key: tuple[str, str]) -> str:
        token = str((await self.api.call("auth.login", auth=key))["token"])
        self.api.client.cookies.clear()
        return token


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    data: Path = tmp_path_factory.mktemp("matrix") / "data"
    async with running_api(data, guest=True) as api:
        documents, company = api.backend.documents, api.company
        await credentials.add_user(documents, company, "plain user")
        found = {role: await documents.find_one("users", {"company": company, "role": role}) for role in ROLES}
        yield World(api, {role: user for role, user in found.items() if user is not None})


def by_cookie(token: str) -> dict[str, str]:
    """Headers of a script on a page of the server."""
    own = {"host": "testserver", "origin": "http://testserver", "content-type": "application/json"}
    return {"cookie": f"clearml_token_basic={token}", **own}


async def refused(api: Api, endpoint: EndpointVersion, headers: dict[str, str]) -> bool:
    status, text = await ask(api, endpoint, {}, None, headers=headers, body=b"[")
    assert status in (400, 403), (endpoint.name, status, text)
    if status == 403:
        assert '"result_subcode":20' in text, (endpoint.name, text)
    return status == 403


@pytest.mark.test
@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=lambda scopes: "+".join(scopes or ("unlimited",)))
@pytest.mark.parametrize("role", ROLES)
async def test_every_endpoint_by_scope_and_role(world: World, role: str, scopes: tuple[str, ...] | None) -> None:
    key = await world.key(role, Grant(scopes))
    token = await world.token(key)
    renewed = (await world.api.call("auth.login", auth=None, headers=bearer(token)))["token"]
    world.api.client.cookies.clear()
    forms = [{"authorization": basic(*key)}, bearer(token), bearer(renewed), by_cookie(token)]
    for endpoint in ENDPOINTS:
        if endpoint.name in SIGN_INS:
            continue
        for headers in forms:
            is_refused = await refused(world.api, endpoint, headers)
            assert is_refused is not allowed(endpoint, scopes, role), (endpoint.name, scopes, role, list(headers))


#: What a key that is limited to a project may ask for at all.
OF_A_PROJECT = {"debug", "events", "models", "projects", "reports", "tasks"}
SINGLE_OF_A_PROJECT = {
    *("server.endpoints", "server.info", "server.report_stats_option"),
    *("users.get_current_user", "users.get_preferences"),
}


@pytest.mark.test
@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=lambda scopes: "+".join(scopes or ("unlimited",)))
async def test_every_endpoint_by_keys_of_a_project(world: World, scopes: tuple[str, ...] | None) -> None:
    project = (await world.api.call("projects.create", {"name": f"{scopes}", "description": ""}))["id"]
    key = await world.key("admin", Grant(scopes, project))
    token = await world.token(key)
    for endpoint in ENDPOINTS:
        if endpoint.name in SIGN_INS:
            continue
        known = endpoint.name.partition(".")[0] in OF_A_PROJECT or endpoint.name in SINGLE_OF_A_PROJECT
        may = endpoint.name in OPEN or (known and not endpoint.name.endswith(".make_public"))
        for headers in ({"authorization": basic(*key)}, bearer(token), by_cookie(token)):
            is_refused = await refused(world.api, endpoint, headers)
            assert is_refused is not (may and allowed(endpoint, scopes, "admin")), (endpoint.name, scopes)


@pytest.mark.test
async def test_acting_for_another_user_keeps_the_scopes(world: World) -> None:
    key, other = await world.key("admin", Grant(("read",))), world.users["user"]["id"]
    token = (await world.api.call("auth.login", auth=key, headers={"x-clearml-impersonate-as": other}))["token"]
    world.api.client.cookies.clear()
    for endpoint in ENDPOINTS:
        for headers in ({"authorization": basic(*key), "x-clearml-impersonate-as": other}, bearer(token)):
            if endpoint.name not in SIGN_INS:
                is_refused = await refused(world.api, endpoint, headers)
                assert is_refused is not allowed(endpoint, ("read",), "user"), endpoint.name


async def ended(world: World) -> dict[str, dict[str, str]]:
    """Credentials that were good, by what has become of them."""
    api, documents = world.api, world.api.backend.documents
    grant = Grant(("all",), expires=time.time() + 3600)
    expired, revoked, logged_out, ended_elsewhere = [await world.key("admin", grant) for _ in range(4)]
    user, made = await credentials.create_user(documents, api.company, uuid4().hex, "admin")
    of_deleted = made.key, made.secret
    keys = (expired, revoked, logged_out, ended_elsewhere, of_deleted)
    tokens = [await world.token(key) for key in keys]
    good = (await api.call("auth.login"))["token"]
    brief = api.backend.auth.issue(await api.backend.auth.authenticate(bearer(good)), -1)
    api.client.cookies.clear()
    await documents.update("credentials", {"key": expired[0]}, Update(set={"expires": from_now(-1)}))
    identities.forget(documents)
    await api.call("auth.revoke_credentials", {"access_key": revoked[0]})
    await api.call("auth.logout", auth=None, headers=bearer(tokens[2]))
    api.client.cookies.clear()
    listed = (await api.call("users.get_sessions", auth=None, headers=bearer(tokens[3])))["sessions"]
    [session] = [one["id"] for one in listed if one["current"]]
    await api.call("users.end_sessions", {"sessions": [session]})
    await credentials.delete_user(documents, api.company, user["id"])
    ends = ("an expired key", "a revoked key", "a sign-out", "a session that was ended elsewhere", "a deleted user")
    found = {
        f"{ends[n]}: its key": {"authorization": basic(*keys[n])}
        for n in (0, 1, 4)  # the others' keys go on
    }
    for name, token in (*zip(ends, tokens, strict=True), ("a token that has expired", brief)):
        found |= {f"{name}: a token": bearer(token), f"{name}: a cookie": by_cookie(token)}
    return {"nobody at all": {}, **found}


@pytest.mark.test
async def test_what_has_ended_opens_nothing(world: World) -> None:
    anonymous = {"auth.fixed_users_mode", "debug.ping", "login.logout", "login.supported_modes"}
    for name, headers in (await ended(world)).items():
        for endpoint in ENDPOINTS:
            if endpoint.name not in SIGN_INS | {"auth.login"}:
                status, text = await ask(world.api, endpoint, {}, None, headers=headers, body=b"[")
                assert status == (400 if endpoint.name in anonymous else 401), (endpoint.name, name, text)
        status, text = await ask(world.api, LOGIN, {}, None, headers=headers)
        assert status == 401, name
    found = await ended(world)
    for address in ADDRESSES:
        for name, headers in found.items():
            assert (await asked(world.api, address, headers)) == (address.unknown if headers else 401), (address, name)


LOGIN = next(endpoint for endpoint in ENDPOINTS if endpoint.name == "auth.login")


class Address(NamedTuple):
    """An address that is no endpoint, and the scopes with which it is answered.

    `only`: by users of these roles. `unknown`: what callers get who say who they are, and are not known.
    """

    method: str
    path: str
    scopes: set[str]
    content: bytes = b""
    only: tuple[str, ...] = ROLES
    unknown: int = 401


READ, WRITE = {"read", "write", "all"}, {"write", "all"}
USERS = ("admin", "user")
ADDRESSES = [
    Address("GET", "/data/projects", READ),
    Address("GET", "/data/projects/*/tasks.csv", READ),
    Address("GET", "/data/tasks/none/scalars", READ),
    Address("GET", "/data/tasks/none/log", READ),
    Address("GET", "/data/live?task=none&wait=0", READ),
    Address("GET", "/data/tasks/none/live?wait=0", READ),
    Address("GET", "/data/file?url=http://testserver/files/x", READ),
    Address("GET", "/data/views?project=none", READ),
    Address("GET", "/data/metrics", READ),
    Address("GET", "/data/audit", {"all"}, only=("admin",)),
    Address("GET", "/data/usage", READ),
    Address("GET", "/data/retention", READ, only=("admin",)),
    Address("POST", "/data/links", WRITE, b"{}", only=USERS),
    Address("POST", "/data/views", WRITE, b"{}", only=USERS),
    Address("POST", "/data/views/none/delete", WRITE, b"{}", only=USERS),
    Address("GET", "/files/none", READ | {"files"}),
    Address("PUT", "/files/", WRITE | {"files"}, b"x", only=USERS),
    Address("DELETE", "/files/none", WRITE | {"files"}, only=USERS),
    Address("POST", "/v1/metrics", {"events", "write", "all"}, b"[", only=USERS),
    Address("GET", "/metrics", READ, only=("admin",)),
    Address("GET", "/api/v1/jobs/none/metrics", READ, unknown=403),
    Address("GET", "/v2/p/training-jobs/none/metrics/worker-0", READ),
    Address("POST", "/v1/training_projects/p/jobs/none/metrics", READ, b"{}"),
]


async def asked(api: Api, address: Address, headers: dict[str, str]) -> int:
    own = {**headers, "content-type": "application/json"}
    response = await api.raw(address.method, address.path, content=address.content, headers=own, auth=None)
    return response.status_code


def presented(key: tuple[str, str], token: str) -> Iterator[dict[str, str]]:
    yield {"authorization": basic(*key)}
    yield bearer(token)
    yield by_cookie(token)


@pytest.mark.test
@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=lambda scopes: "+".join(scopes or ("unlimited",)))
@pytest.mark.parametrize("role", ROLES)
async def test_every_address_by_scope_and_role(world: World, role: str, scopes: tuple[str, ...] | None) -> None:
    key = await world.key(role, Grant(scopes))
    token = await world.token(key)
    for address in ADDRESSES:
        may = role in address.only and not address.scopes.isdisjoint(scopes or ("all",))
        for headers in presented(key, token):
            if address.path == "/v1/metrics" and "cookie" in headers:
                continue  # collectors have no cookie
            status = await asked(world.api, address, headers)
            assert (status == 403) is not may, (address, role, scopes, list(headers), status)
            assert status not in (401, 500), (address, status)


@pytest.mark.test
async def test_every_address_by_an_admin_of_another_company(world: World) -> None:
    """What is the server's own is closed, and all else is empty or not there."""
    _, made = await credentials.create_user(world.api.backend.documents, "another company", "eve", "admin")
    key = (made.key, made.secret)
    token = await world.token(key)
    for address in ADDRESSES:
        for headers in presented(key, token):
            if address.path == "/v1/metrics" and "cookie" in headers:
                continue  # collectors have no cookie
            status = await asked(world.api, address, headers)
            assert (status == 403) is (address.path == "/metrics"), (address, list(headers), status)
            assert status not in (401, 500), (address, status)
    for setting in ("data", "documents", None):
        await world.api.call("server.config", {} if setting is None else {"path": setting}, auth=key, expect=403)
    assert (await world.api.call("server.get_stats", auth=key))["server"]["resources"] == {}
    assert (await world.api.call("server.get_stats"))["server"]["resources"]["num_cores"] > 0


async def test_a_key_whose_user_is_of_another_company_opens_nothing(world: World) -> None:
    """As when a key was made while its user was deleted, and another company then took the id."""
    documents, id = world.api.backend.documents, uuid4().hex
    user = await credentials.add_user(documents, world.api.company, "leaves", id=id)
    made = await credentials.create_credential(documents, user)
    await documents.delete("users", {"id": id})
    await credentials.add_user(documents, "another company", "comes", "admin", id=id)
    identities.forget(documents)
    await world.api.call("users.get_current_user", auth=(made.key, made.secret), expect=401)


async def test_a_key_makes_no_wider_one(world: World) -> None:
    api = world.api
    for scopes in SCOPE_SETS:
        key = await world.key("user", Grant(scopes))
        wide = scopes is None or "all" in scopes
        for endpoint, request in (
            ("auth.create_credentials", {}),
            ("auth.get_token_for_user", {"user": world.users["user"]["id"]}),
            ("auth.revoke_credentials", {"access_key": key[0]}),
        ):
            await api.call(endpoint, request, auth=key, expect=200 if wide else 403)
    ends = time.time() + 3600
    brief = await world.key("user", Grant(("all",), expires=ends))
    asked_for: list[dict[str, Any]] = [{}, {"expiration_sec": 10**8}]
    for request in asked_for:
        made = (await api.call("auth.create_credentials", request, auth=brief))["credentials"]
        kept = await api.backend.documents.find_one("credentials", {"key": made["access_key"]})
        assert kept is not None
        assert abs(grant_of(kept).expires - ends) < 1


async def test_new_fields_of_keys_are_answered_and_kept(world: World) -> None:
    api = world.api
    request = {"label": "CI", "scopes": ["events", "read"], "expiration_sec": 3600}
    earliest = from_now(3599)
    made = (await api.call("auth.create_credentials", request))["credentials"]
    assert made["scopes"] == ["read", "events"]
    listed = {key["access_key"]: key for key in (await api.call("auth.get_credentials"))["credentials"]}
    shown = listed[made["access_key"]]
    assert (shown["label"], shown["scopes"], shown["expires"]) == ("CI", ["read", "events"], made["expires"])
    assert earliest < shown["expires"] <= from_now(3600)
    assert listed[ADMIN_KEY]["scopes"] is None
    assert listed[ADMIN_KEY]["expires"] is None
    plain = (await api.call("auth.create_credentials"))["credentials"]
    assert plain.keys() == {"access_key", "secret_key", "label"}
    refused_keys: list[dict[str, Any]] = [{"scopes": []}, {"scopes": ["everything"]}, {"expiration_sec": 0}]
    for wrong in refused_keys:
        await api.call("auth.create_credentials", wrong, expect=400)
    rotated = await credentials.rotate(api.backend.documents, api.company, made["access_key"])
    kept = await api.backend.documents.find_one("credentials", {"key": rotated.key})
    assert kept is not None
    assert (kept["scopes"], kept["expires"]) == (["read", "events"], made["expires"])
