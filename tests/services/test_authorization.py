"""Every endpoint and version of the schema, asked by who may not: bad tokens, other companies, guests, pages."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import jwt
import pytest

from apiserver.common import resources
from apiserver.rpc.hocon import read_hocon
from apiserver.rpc.schema import SHARED_DEFINITIONS
from apiserver.services.access import credentials
from apiserver.services.access.roles import ADMINS_ONLY, FOR_ALL_ROLES
from apiserver.services.backend import registry
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Api, basic, bearer, running_api
from tests.services.generated import ENDPOINTS, Requests, ask, send

pytestmark = pytest.mark.anyio

ADMIN = (ADMIN_KEY, ADMIN_SECRET)
TOKEN_SECRET = "the secret that signs the tokens of these tests, long enough for any digest"
#: In all names and texts of the company that others must learn nothing of.
MARK = "onlyours"


@dataclass(frozen=True)
class World:
    """A server with two companies: `ids` name things of the first, `ours` and `theirs` are admins' access keys."""

    api: Api
    ids: dict[str, str]
    theirs: tuple[str, str]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    data: Path = tmp_path_factory.mktemp("authorization") / "data"
    settings = {"token_secret": TOKEN_SECRET, "guest": True}
    async with running_api(data, **settings) as api:
        ids = await populated(api)
    async with running_api(data, **settings) as api:  # with all that is written later written
        _, made = await credentials.create_user(api.backend.documents, "another company", "eve", "admin")
        yield World(api, ids, (made.key, made.secret))


async def populated(api: Api) -> dict[str, str]:
    """Make one thing of each kind; their ids."""

    async def made(endpoint: str, **request: Any) -> str:
        return str((await api.call(endpoint, request))["id"])

    project = await made("projects.create", name=f"{MARK} project", description=MARK, tags=[MARK])
    task = await made("tasks.create", name=f"{MARK} task", type="training", project=project, tags=[MARK], comment=MARK)
    hyperparams = [{"section": "Args", "name": MARK, "value": MARK}]
    await api.call("tasks.edit_hyper_params", {"task": task, "hyperparams": hyperparams})
    model = await made("models.create", name=f"{MARK} model", uri=f"file:///{MARK}", project=project, task=task)
    queue = await made("queues.create", name=f"{MARK} queue", tags=[MARK])
    waiting = await made("tasks.create", name=f"{MARK} waiting", type="training", project=project)
    await api.call("tasks.enqueue", {"task": waiting, "queue": queue})
    report = await made("reports.create", name=f"{MARK} report", project=project)
    user = await made("auth.create_user", name=f"{MARK} user")
    await api.call("workers.register", {"worker": f"{MARK} worker", "queues": [queue]})
    key = (await api.call("auth.create_credentials", {"label": MARK}))["credentials"]["access_key"]
    at = int(time.time() * 1000)
    events: list[dict[str, Any]] = [
        {"type": "training_stats_scalar", "metric": MARK, "variant": MARK, "value": 1},
        {"type": "log", "msg": MARK},
        {"type": "plot", "metric": MARK, "variant": MARK, "plot_str": "{}"},
        {"type": "training_debug_image", "metric": MARK, "variant": MARK, "url": f"http://{MARK}"},
    ]
    for event in events:
        await api.call("events.add", {"task": task, "iter": 1, "timestamp": at, "worker": f"{MARK} worker", **event})
    container = {"endpoint_name": MARK, "model_name": MARK, "container_id": f"{MARK} container"}
    await api.call("serving.register_container", {**container, "endpoint_url": f"http://{MARK}"})
    company = api.company
    return {
        **{
            "project": project,
            "task": task,
            "waiting task": waiting,
            "model": model,
            "queue": queue,
            "report": report,
            "user": user,
        },
        **{"worker": f"{MARK} worker", "company": company, "container": f"{MARK} container", "access_key": key},
    }


async def kept(api: Api, company: str | None = None) -> dict[tuple[str, str], Any]:
    """All documents (of a company), by collection and id; but for what is noted of downloads and of uses of keys."""
    documents = api.backend.documents
    own = {} if company is None else {"company": company}
    names = [name for name in await documents.collections() if name != "downloads"]
    found = {(name, item["id"]): item for name in names for item in await documents.find(name, own)}
    for item in found.values():
        item.pop("last_used", None)
        item.pop("last_used_from", None)
    return found


async def events_of(api: Api, task: str) -> list[Any]:
    types = ("training_stats_scalar", "log", "plot", "training_debug_image")
    asked = [{"task": task, "event_type": kind} for kind in types]
    return [(await api.call("events.get_task_events", request))["events"] for request in asked]


# --- who is not known -------------------------------------------------------------------------------


def forged(header: Mapping[str, Any], claims: Mapping[str, Any], signature: str) -> str:
    """A token whose header and claims are as given, whatever its signature."""
    parts = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims))
    return ".".join([*parts, signature])


async def bad_credentials(api: Api) -> dict[str, str | None]:
    """Authorization headers, by what is wrong with them; None is none."""
    documents, company = api.backend.documents, api.company
    good = (await api.call("auth.login"))["token"]
    claims = jwt.decode(good, options={"verify_signature": False})
    signature = good.rpartition(".")[2]
    renamed = {**claims, "identity": {**claims["identity"], "user": "somebody"}}
    past = int(time.time()) - 1

    deleted, deleteds_key = await credentials.create_user(documents, company, "deleted", "admin")
    of_deleted = (await api.call("auth.login", auth=(deleteds_key.key, deleteds_key.secret)))["token"]
    impersonated = (await api.call("auth.login", headers={"x-clearml-impersonate-as": deleted["id"]}))["token"]
    await api.call("users.delete", {"user": deleted["id"]})
    revoked = (await api.call("auth.create_credentials"))["credentials"]
    pair = (revoked["access_key"], revoked["secret_key"])
    of_revoked = (await api.call("auth.login", auth=pair))["token"]
    await api.call("auth.revoke_credentials", {"access_key": pair[0]})
    ended = (await api.call("auth.login"))["token"]
    api.client.cookies.clear()
    await api.call("auth.logout", auth=None, headers=bearer(ended))

    tokens = {
        "expired": jwt.encode({**claims, "exp": past}, TOKEN_SECRET, algorithm="HS256"),
        "without end": jwt.encode({k: v for k, v in claims.items() if k != "exp"}, TOKEN_SECRET, algorithm="HS256"),
        "unsigned": forged({"alg": "none", "typ": "JWT"}, claims, ""),
        "unsigned, but said to be": forged({"alg": "none", "typ": "JWT"}, claims, signature),
        "HS512": jwt.encode(claims, TOKEN_SECRET * 2, algorithm="HS512"),
        "HS384": jwt.encode(claims, TOKEN_SECRET, algorithm="HS384"),
        "RS256": forged({"alg": "RS256", "typ": "JWT"}, claims, signature),
        "another secret": jwt.encode(claims, TOKEN_SECRET[::-1], algorithm="HS256"),
        "tampered": forged({"alg": "HS256", "typ": "JWT"}, renamed, signature),
        "nobody's": jwt.encode(renamed, TOKEN_SECRET, algorithm="HS256"),
        "of a deleted user": of_deleted,
        "of a deleted user, got by an admin": impersonated,
        "of a revoked key": of_revoked,
        "of an ended session": ended,
        "none at all": "",
    }
    return {
        "none": None,
        "a deleted user's key": basic(deleteds_key.key, deleteds_key.secret),
        "a revoked key": basic(*pair),
        "a wrong secret": basic(ADMIN_KEY, "wrong"),
        "another scheme": "Digest x",
        **{name: f"Bearer {token}" for name, token in tokens.items()},
    }


#: Anybody may call them, but from a page of this server, with what only the owner of the machine or a provider knows.
ONLY_FOR_PAGES = {"auth.login_by_link", "auth.begin_provider_login", "auth.finish_provider_login"}


def anonymous() -> set[str]:
    """Those that anybody may call: they say no more than the login page needs."""
    return {handler.name for handler in registry if handler.anonymous} - {"auth.login", *ONLY_FOR_PAGES}


@pytest.mark.test
async def test_who_is_not_known_is_kept_out_everywhere(world: World) -> None:
    bad, requests = await bad_credentials(world.api), Requests(world.ids)
    before, open_to_all = await kept(world.api), anonymous()
    for endpoint in ENDPOINTS:
        for name, authorization in bad.items():
            status, text = await ask(world.api, endpoint, requests.least(endpoint), authorization)
            if name == "a wrong secret" and status == 429:
                continue
            refused = 403 if endpoint.name in ONLY_FOR_PAGES else 401
            assert status == (200 if endpoint.name in open_to_all else refused), (endpoint.name, name, text)
            assert MARK not in text
    assert await kept(world.api) == before


@pytest.mark.test
async def test_few_endpoints_are_for_anybody(world: World) -> None:
    assert anonymous() == {"auth.fixed_users_mode", "debug.ping", "login.logout", "login.supported_modes"}
    assert anonymous() | {"auth.login", "auth.logout", *ONLY_FOR_PAGES} == FOR_ALL_ROLES


# --- another company --------------------------------------------------------------------------------

#: It says that an id is in use, whoever has it.
TELLING = {"users.create"}
#: It ends the caller's own logins, and finds none when it is asked again.
ANSWERED_ONCE = {"users.end_sessions"}


@pytest.mark.test
async def test_another_company_finds_nothing_and_changes_nothing(world: World) -> None:
    api, company = world.api, world.ids["company"]
    before, events = await kept(api, company), await events_of(api, world.ids["task"])
    made_up = {kind: f"{uuid4().hex}{kind}" for kind in world.ids}
    for endpoint in ENDPOINTS:
        if endpoint.name in TELLING | ANSWERED_ONCE:
            continue
        of_ours, of_nothing = (
            Requests(world.ids, "first").naming(endpoint),
            Requests(made_up, "second").naming(endpoint),
        )
        for pair in zip(of_ours, of_nothing, strict=True):
            ours, nothing = [await send(api, endpoint, request, auth=world.theirs) for request in pair]
            assert ours.status_code in (200, 400, 401, 403), (endpoint.name, ours.request.content, ours.text)
            assert summary(ours) == summary(nothing), (endpoint.name, ours.request.content, ours.text, nothing.text)
            assert_no_word(ours, world.ids)
    assert await kept(api, company) == before
    assert await events_of(api, world.ids["task"]) == events
    for method in ("GET", "DELETE"):
        assert (await api.raw(method, "/files/x", auth=world.theirs)).status_code == 404


def summary(response: httpx.Response) -> Any:
    """What an answer says, but for names, ids and times: its codes, and how much there is of each thing."""
    if not response.headers.get("content-type", "").startswith("application/json"):
        return response.status_code, len(response.content)
    answer = response.json()
    codes = answer["meta"]["result_code"], answer["meta"]["result_subcode"]
    return codes, {name: size(value) for name, value in answer["data"].items()}


def size(value: Any) -> Any:
    return len(value) if isinstance(value, (list, dict)) else value if isinstance(value, (int, type(None))) else ""


def assert_no_word(response: httpx.Response, ids: Mapping[str, str]) -> None:
    """The answer has nothing of the company's, but for what was asked with."""
    text = response.text
    for id in ids.values():
        text = text.replace(id, "")
    assert MARK not in text, (response.request.url, response.request.content, response.text)


# --- roles ------------------------------------------------------------------------------------------


@pytest.mark.test
async def test_no_answer_to_another_company_shows_what_is_the_servers(world: World) -> None:
    data = str(world.api.backend.settings.data)
    for endpoint in ENDPOINTS:
        if endpoint.reads:
            response = await send(world.api, endpoint, Requests(world.ids).least(endpoint), auth=world.theirs)
            assert data not in response.text, endpoint.name


@pytest.mark.test
async def test_what_guests_may_do_changes_nothing(world: World) -> None:
    api, requests = world.api, Requests(world.ids)
    guest = await api.backend.documents.find_one("users", {"role": "guest"})
    assert guest is not None
    key = await credentials.create_credential(api.backend.documents, guest)
    before, events = await kept(api), await events_of(api, world.ids["task"])
    for endpoint in ENDPOINTS:
        if endpoint.name in FOR_ALL_ROLES:
            continue
        allowed = endpoint.reads and endpoint.name not in ADMINS_ONLY
        for request in requests.naming(endpoint):
            response = await send(api, endpoint, request, auth=(key.key, key.secret))
            refused = response.status_code == 403 and response.json()["meta"]["result_subcode"] == 20
            assert refused is not allowed, (endpoint.name, response.text)
    assert await kept(api) == before
    assert await events_of(api, world.ids["task"]) == events


async def test_what_admins_may_do_alone(world: World) -> None:
    api = world.api
    _, key = await credentials.create_user(api.backend.documents, world.ids["company"], "plain user")
    before = await kept(api)
    for endpoint in ENDPOINTS:
        if endpoint.name in ADMINS_ONLY:
            response = await send(api, endpoint, Requests(world.ids).least(endpoint), auth=(key.key, key.secret))
            assert response.status_code == 403, endpoint.name
            assert response.json()["meta"]["result_subcode"] == 20
    assert await kept(api) == before


def test_the_table_of_roles_names_what_there_is() -> None:
    assert {endpoint.name for endpoint in ENDPOINTS} | {"audit.get"} >= ADMINS_ONLY | FOR_ALL_ROLES


def test_the_schema_says_of_every_endpoint_whether_it_only_reads() -> None:
    schemas = resources.path("schemas")
    for file in schemas.glob("*.conf"):
        if file.name != SHARED_DEFINITIONS:
            actions = {
                name: content
                for name, content in read_hocon(file, schemas / resources.PARSED).items()
                if not name.startswith("_")
            }
            assert [name for name, content in actions.items() if "_reads" not in content] == [], file.name


# --- the cookie, and what a page makes a browser send without asking for leave ------------------------

OWN, FOREIGN = "http://testserver", "http://evil.example"
FORMS = ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x")
LINKS = {"image": "no-cors", "script": "no-cors", "style": "no-cors", "iframe": "navigate", "document": "navigate"}


def sent_without_leave() -> list[tuple[str, dict[str, str]]]:
    """Method and headers of pictures, links, forms, beacons and calls by script; where Sec-Fetch-* are sent and not."""
    sent: list[tuple[str, dict[str, str]]] = [("GET", {}), ("GET", {"referer": f"{OWN}/"}), ("POST", {})]
    for origin, site in ((OWN, "same-origin"), (FOREIGN, "cross-site"), ("http://testserver:8081", "same-site")):
        for dest, mode in LINKS.items():
            sent.append(("GET", fetched(site, mode, dest)))
        for kind in FORMS:
            sent.append(("POST", {"origin": origin, "content-type": kind}))
            sent.append(("POST", {"origin": origin, "content-type": kind, **fetched(site, "navigate", "document")}))
            sent.append(("POST", {"origin": origin, "content-type": kind, **fetched(site, "no-cors", "empty")}))
        sent.append(("POST", {"origin": origin, **fetched(site, "no-cors", "empty")}))
        sent.append(("POST", {"origin": origin, "content-type": "text/ping", **fetched(site, "no-cors", "empty")}))
    sent.append(("POST", {"origin": FOREIGN, "content-type": "application/json"}))
    return [*sent, ("POST", {"origin": "null", "content-type": "text/plain"})]


def fetched(site: str, mode: str, dest: str) -> dict[str, str]:
    return {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}


@pytest.mark.test
async def test_no_page_changes_anything_without_leave(world: World) -> None:
    api, requests = world.api, Requests(world.ids)
    cookie = {"cookie": f"clearml_token_basic={(await api.call('auth.login'))['token']}", "host": "testserver"}
    before, shapes = await kept(api), sent_without_leave()
    for endpoint in ENDPOINTS:
        if endpoint.reads:
            continue
        request = requests.least(endpoint)
        for method, headers in shapes:
            status, text = await ask(api, endpoint, request, None, method=method, headers={**cookie, **headers})
            assert status == 403, (endpoint.name, method, headers, text)
            assert json.loads(text)["meta"]["result_subcode"] == 21
    assert await kept(api) == before


#: They ask for an object, which no link has, or for something that there is not here.
REFUSED_LINKS = {
    *("events.debug_images 2.7", "events.plots 2.20", "events.scalar_metrics_iter_raw 2.16"),
    "events.scalar_metrics_of_groups 2.34",
    *("events.next_debug_image_sample 2.12", "events.next_plot_sample 2.20", "models.get_by_task_id 1.0"),
    *("organization.prepare_download_for_get_all 2.26", "organization.download_for_get_all 2.26"),
    *("serving.get_endpoint_details 2.31", "workers.get_metric_keys 2.4", "workers.get_stats 2.4"),
}


@pytest.mark.test
async def test_own_pages_read_by_links(world: World) -> None:
    api, requests = world.api, Requests(world.ids)
    cookie = {"cookie": f"clearml_token_basic={(await api.call('auth.login'))['token']}", "host": "testserver"}
    before = await kept(api)
    for endpoint in ENDPOINTS:
        if endpoint.reads:
            path, query = f"/v{endpoint.version}/{endpoint.name}", urlencode(requests.least(endpoint), doseq=True)
            headers = {**cookie, **fetched("same-origin", "navigate", "document")}
            answer = await api.raw("GET", f"{path}?{query}", auth=None, headers=headers)
            refused = f"{endpoint.name} {endpoint.version}" in REFUSED_LINKS
            assert answer.status_code == (400 if refused else 200), (endpoint.name, answer.text)
    assert await kept(api) == before
