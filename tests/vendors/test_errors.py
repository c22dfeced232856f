"""What each vendor's API refuses, in its vendor's shape; and who may call it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from apiserver.rpc.call import Identity
from apiserver.server.endpoints import VENDORS as ROUTERS
from apiserver.services.access.credentials import create_user
from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Api, basic, bearer, running_api
from tests.vendors.reported import BEGIN, Line, Report, Reported, iso, reported

pytestmark = pytest.mark.anyio

_UNKNOWN = "0123456789abcdef0123456789abcdef"
_SIGNED = "ACS3-HMAC-SHA256 Credential=AK,SignedHeaders=host;x-acs-date,Signature=0123456789abcdef"


@dataclass(frozen=True)
class Vendor:
    """One of the APIs. `codes` are status and code of each refusal."""

    method: str
    path: str
    shape: Callable[[httpx.Response], str]
    codes: Mapping[str, tuple[int, str]]

    def url(self, job: Reported, /, **parts: str) -> str:
        """The path; `parts` take the place of what is right."""
        right = {"project": job.project, "job": job.id, "task": "worker-0"}
        return self.path.format(**{**right, **{name: quote(part, safe="") for name, part in parts.items()}})

    async def ask(self, job: Reported, path: str | None = None, **options: Any) -> httpx.Response:
        """The answer to a request that is right, but for what is said."""
        if self.method == "POST":
            options.setdefault("content", "{}")
        return await job.api.raw(self.method, self.url(job) if path is None else path, **options)

    def refusal(self, response: httpx.Response) -> tuple[int, str]:
        """Status and code of a refusal in the vendor's shape: no envelope, nothing of the server's insides."""
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert not re.search(r"Traceback|\.py|RuntimeError|result_code|meta", response.text), response.text
        return response.status_code, self.shape(response)


def _modelarts(response: httpx.Response) -> str:
    body = response.json()
    assert body.keys() == {"error_msg", "error_code", "error_solution"}
    assert all(isinstance(text, str) and text for text in body.values())
    assert re.fullmatch(r"ModelArts\.\d{4}", body["error_code"])
    assert response.headers["x-request-id"]
    return str(body["error_code"])


def _baseten(response: httpx.Response) -> str:
    body = response.json()
    assert body.keys() == {"code", "message"}
    assert isinstance(body["message"], str)
    assert body["message"]
    return str(body["code"])


def _pai(response: httpx.Response) -> str:
    body = response.json()
    assert body.keys() == {"RequestId", "HostId", "Code", "Message"}
    assert all(isinstance(text, str) and text for text in body.values())
    assert re.fullmatch(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", body["RequestId"])
    assert response.headers["x-acs-request-id"] == body["RequestId"]
    return str(body["Code"])


_MODELARTS = {
    "no credentials": (401, "ModelArts.0201"),
    "scheme": (401, "ModelArts.0203"),
    "credentials": (401, "ModelArts.0203"),
    "expired": (401, "ModelArts.0202"),
    "path": (404, "ModelArts.2836"),
    "signed": (401, "ModelArts.0203"),
    "overloaded": (429, "ModelArts.2799"),
    "unavailable": (503, "ModelArts.2952"),
    "bug": (500, "ModelArts.2950"),
    "job": (400, "ModelArts.2775"),
    "project": (404, "ModelArts.2786"),
    "foreign": (404, "ModelArts.2786"),
}
_JOB = "/v2/{project}/training-jobs/{job}"
METRICS = Vendor("GET", _JOB + "/metrics/{task}", _modelarts, _MODELARTS)
LOGS = Vendor("GET", _JOB + "/tasks/{task}/logs/preview", _modelarts, _MODELARTS)
BASETEN = Vendor(
    "POST",
    "/v1/training_projects/{project}/jobs/{job}/metrics",
    _baseten,
    {
        "no credentials": (401, "UNAUTHORIZED"),
        "scheme": (401, "UNAUTHORIZED"),
        "credentials": (401, "UNAUTHORIZED"),
        "expired": (401, "UNAUTHORIZED"),
        "path": (404, "NOT_FOUND"),
        "signed": (401, "UNAUTHORIZED"),
        "overloaded": (429, "TOO_MANY_REQUESTS"),
        "unavailable": (503, "SERVICE_UNAVAILABLE"),
        "bug": (500, "INTERNAL_SERVER_ERROR"),
        "job": (404, "NOT_FOUND"),
        "project": (404, "NOT_FOUND"),
        "foreign": (404, "NOT_FOUND"),
    },
)
PAI = Vendor(
    "GET",
    "/api/v1/jobs/{job}/metrics?MetricType=CpuCoreUsage",
    _pai,
    {
        "no credentials": (401, "MissingSecurityToken"),
        "scheme": (403, "SignatureDoesNotMatch"),
        "credentials": (403, "InvalidSecurityToken.Malformed"),
        "expired": (403, "InvalidSecurityToken.Expired"),
        "path": (404, "InvalidApi.NotFound"),
        "signed": (403, "SignatureDoesNotMatch"),
        "overloaded": (429, "Throttling.User"),
        "unavailable": (503, "ServiceUnavailable"),
        "bug": (500, "InternalError"),
        "job": (404, "InvalidJobId.NotFound"),
        "foreign": (404, "InvalidJobId.NotFound"),
    },
)
VENDORS = {"ModelArts": METRICS, "ModelArts-logs": LOGS, "Baseten": BASETEN, "PAI": PAI}
IN_PROJECTS = {name: vendor for name, vendor in VENDORS.items() if "project" in vendor.codes}
vendors = pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
vendors_with_projects = pytest.mark.parametrize("vendor", IN_PROJECTS.values(), ids=IN_PROJECTS)


@pytest.fixture
async def job(tmp_path: Path) -> AsyncIterator[Reported]:
    """A small job."""
    async with running_api(tmp_path / "data") as api:
        job = await reported(api)
        await job.send([Report("w", ":monitor:machine", "cpu_usage", BEGIN, 1)], [Line("w", BEGIN, "hello")])
        yield job


def token(api: Api, lifetime_s: int = 3600) -> str:
    identity = Identity(user="u", company="c", role="admin", user_name="u", company_name="c")
    return api.backend.auth.issue(identity, lifetime_s)


async def own_token(api: Api) -> str:
    answered: str = (await api.call("auth.login"))["token"]
    return answered


# --- jobs, projects, nodes -------------------------------------------------------------------------


@pytest.mark.test
@vendors
async def test_jobs_that_are_not_there(job: Reported, vendor: Vendor) -> None:
    other = await reported(job.api, project="other")
    assert (await vendor.ask(job)).status_code == 200
    paths = [vendor.url(job, job=_UNKNOWN), vendor.url(job, job=f"{_UNKNOWN[:8]}-0000-0000-0000-{_UNKNOWN[-12:]}")]
    if "project" in vendor.codes:
        paths += [vendor.url(job, job=other.id), vendor.url(job, project=other.project)]
    for path in paths:
        assert vendor.refusal(await vendor.ask(job, path)) == vendor.codes["job"], path


@pytest.mark.test
@vendors_with_projects
async def test_projects_that_are_not_there(job: Reported, vendor: Vendor) -> None:
    for project in (_UNKNOWN, "b", "vision"):
        response = await vendor.ask(job, vendor.url(job, project=project))
        assert vendor.refusal(response) == vendor.codes["project"], project


@pytest.mark.test
@vendors
@pytest.mark.own_api
async def test_another_companys_jobs_are_not_there(job: Reported, vendor: Vendor) -> None:
    _, made = await create_user(job.api.backend.documents, "another company", "eve")
    headers = {"authorization": basic(made.key, made.secret)}
    response = await vendor.ask(job, auth=None, headers=headers)
    assert vendor.refusal(response) == vendor.codes["foreign"]
    missing = await vendor.ask(job, vendor.url(job, job=_UNKNOWN, project=_UNKNOWN), auth=None, headers=headers)
    assert vendor.refusal(missing) == vendor.codes["foreign"]
    assert "the job" not in response.text


@pytest.mark.test
@pytest.mark.parametrize("vendor", [METRICS, LOGS], ids=["metrics", "logs"])
async def test_modelarts_tasks_that_are_not_there(job: Reported, vendor: Vendor) -> None:
    for task in ("worker-1", "worker-00", "worker-", f"worker-{10**20}", "nobody", "W", "worker-0/", "-1", "a/b"):
        response = await vendor.ask(job, vendor.url(job, task=task))
        assert vendor.refusal(response) == (400, "ModelArts.2788"), task


@pytest.mark.test
async def test_modelarts_jobs_without_a_log(job: Reported) -> None:
    silent = await reported(job.api)
    assert LOGS.refusal(await LOGS.ask(silent)) == (400, "ModelArts.2818")
    await silent.send([Report(worker, ":monitor:machine", "cpu_usage", BEGIN, 1) for worker in "ab"])
    await silent.send([], [Line("b", BEGIN, "hello")])
    assert LOGS.refusal(await LOGS.ask(silent)) == (400, "ModelArts.2818")
    response = await LOGS.ask(silent, LOGS.url(silent, task="worker-1"))
    assert (response.status_code, response.json()["content"]) == (200, "hello\n")


@pytest.mark.test
@vendors
async def test_paths_and_methods_that_are_not_there(job: Reported, vendor: Vendor) -> None:
    path = vendor.url(job)
    for method in ("POST" if vendor.method == "GET" else "PUT", "DELETE", "PATCH"):
        assert vendor.refusal(await job.api.raw(method, path)) == vendor.codes["path"], method
    for other in (path.replace("/metrics", "/others").replace("/logs", "/others"), vendor.url(job, job="")):
        assert vendor.refusal(await job.api.raw(vendor.method, other)) == vendor.codes["path"], other


@pytest.mark.parametrize("route", [route for vendor in ROUTERS for route in vendor.routes], ids=str)
def test_no_pattern_looks_through_a_path_twice(route: BaseRoute) -> None:
    """At most one part of a path may have slashes, or a path of many parts would be tried in as many ways."""
    assert isinstance(route, APIRoute)
    assert route.path.count(":path}") <= 1


@pytest.mark.test
@vendors
async def test_line_feeds_in_a_path_are_refused(job: Reported, vendor: Vendor) -> None:
    response = await vendor.ask(job, vendor.url(job, job=f"{job.id}\n"))
    assert vendor.refusal(response) == vendor.codes["path"]
    for parts in ({"task": "worker-0\n"}, {"task": "a\nb"}, {"project": "a\nb"}):
        path = vendor.url(job, **parts)
        assert "%0A" not in path or (await vendor.ask(job, path)).status_code in (400, 404), path


# --- parameters ------------------------------------------------------------------------------------


@pytest.mark.test
@pytest.mark.parametrize("vendor", [METRICS, LOGS], ids=["metrics", "logs"])
async def test_modelarts_ids(job: Reported, vendor: Vendor) -> None:
    for part in ("project", "job"):
        for id in ("a_b", "a.b", "a b", "ä", "a%", "x" * 65):
            response = await vendor.ask(job, vendor.url(job, **{part: id}))
            assert vendor.refusal(response) == (400, "ModelArts.2788"), (part, id)
        assert vendor.refusal(await vendor.ask(job, vendor.url(job, **{part: "x" * 64}))) == vendor.codes[part]
    assert vendor.refusal(await vendor.ask(job, vendor.url(job, task="w" * 300))) == (400, "ModelArts.2788")


@pytest.mark.test
async def test_baseten_ids(job: Reported) -> None:
    for part, longest in (("project", 1024), ("job", 256)):
        response = await BASETEN.ask(job, BASETEN.url(job, **{part: "x" * (longest + 1)}))
        assert BASETEN.refusal(response) == (400, "VALIDATION_ERROR"), part
        for id in ("x" * longest, "ä b", "x/y", "%", "\0"):
            response = await BASETEN.ask(job, BASETEN.url(job, **{part: id}))
            assert BASETEN.refusal(response) == (404, "NOT_FOUND"), (part, id)


@pytest.mark.test
async def test_baseten_bodies(job: Reported) -> None:
    refused: list[str | bytes] = ["", " ", "{", "[]", "null", "1", '"x"', b"\xff", "{}{}", "[" * 10_000]
    values = ('"1"', "1.5", "true", "[]", "{}", "NaN", "1e400", '"2026-03-01T10:00:00Z"')
    refused += [f'{{"{name}_epoch_millis": {value}}}' for name in ("start", "end") for value in values]
    refused += ['{"start_epoch_millis": 2, "end_epoch_millis": 1}', '{"step_seconds": 0}', '{"step_seconds": "1"}']
    for body in refused:
        response = await BASETEN.ask(job, content=body)
        assert BASETEN.refusal(response) == (400, "VALIDATION_ERROR"), body[:50]
    for body in ('{"start_epoch_millis": 1, "end_epoch_millis": 1}', '{"start_epoch_millis": -1}'):
        assert (await BASETEN.ask(job, content=body)).status_code == 200


@pytest.mark.test
async def test_baseten_periods_that_are_asked_for_by_get(job: Reported) -> None:
    names = ("start_epoch_millis", "end_epoch_millis", "step_seconds")
    refused = [{name: value} for name in names for value in ("x", "1.5", "", "null", "2026-03-01T10:00:00Z")]
    refused += [{"step_seconds": "0"}, {"start_epoch_millis": "2", "end_epoch_millis": "1"}]
    for params in refused:
        response = await job.api.raw("GET", BASETEN.url(job), params=params)
        assert BASETEN.refusal(response) == (400, "VALIDATION_ERROR"), params


async def test_baseten_bodies_that_are_too_large(job: Reported) -> None:
    for body in (b"{" + b" " * 2**20 + b"}", b'{"more": "' + b"x" * 2**20 + b'"}'):
        assert BASETEN.refusal(await BASETEN.ask(job, content=body)) == (413, "VALIDATION_ERROR")


@pytest.mark.test
async def test_pai_parameters(job: Reported) -> None:
    now, later = iso(BEGIN), iso(BEGIN + 1)
    refused: list[tuple[dict[str, str], str]] = [
        ({}, "MissingMetricType"),
        *(({"MetricType": of}, "InvalidMetricType") for of in ("", "gpuCoreUsage", "Gpu", "CpuCoreUsage ", "1")),
        *(({"StartTime": of}, "InvalidStartTime") for of in ("yesterday", "1616987726587", "2026-02-30T00:00:00Z")),
        *(({"EndTime": of}, "InvalidEndTime") for of in ("tomorrow", "2026-03-01T25:00:00Z", "0")),
        ({"StartTime": now, "EndTime": now}, "InvalidStartTime"),
        ({"StartTime": later, "EndTime": now}, "InvalidStartTime"),
        ({"StartTime": "2999-01-01T00:00:00Z"}, "InvalidStartTime"),
        ({"EndTime": "2020-01-01T00:00:00Z"}, "InvalidStartTime"),
        *(({"TimeStep": of}, "InvalidTimeStep") for of in ("0", "0m", "-5", "5x", "5.5", "m", "5 m", "1e3", "9" * 30)),
        ({"StartTime": "2000-01-01T00:00:00Z", "TimeStep": "1s"}, "InvalidTimeStep"),
    ]
    for query, code in refused:
        params = query if code == "MissingMetricType" else {"MetricType": "CpuCoreUsage", **query}
        response = await PAI.ask(job, f"/api/v1/jobs/{job.id}/metrics", params=params)
        assert PAI.refusal(response) == (400, code), query
    for id in ("a.b", "a b", "ä", "x" * 65):
        assert PAI.refusal(await PAI.ask(job, PAI.url(job, job=id))) == (400, "InvalidJobId"), id
    for id in ("dlc-20210126170216-abcdefg", "x" * 64):
        assert PAI.refusal(await PAI.ask(job, PAI.url(job, job=id))) == (404, "InvalidJobId.NotFound"), id


@pytest.mark.test
async def test_pai_parameters_without_a_text_are_left_out(job: Reported) -> None:
    params = {"MetricType": "CpuCoreUsage", "StartTime": "", "EndTime": "", "TimeStep": "", "Token": ""}
    response = await PAI.ask(job, f"/api/v1/jobs/{job.id}/metrics", params=params)
    assert (response.status_code, response.json()["PodMetrics"][0]["Metrics"]) == (200, [])


# --- credentials -----------------------------------------------------------------------------------


def _with_token(vendor: Vendor, job: Reported, said: str) -> list[tuple[str, dict[str, str]]]:
    """Paths and headers that say a token, or `key:secret`, in the vendor's ways."""
    path = vendor.url(job)
    if vendor in (METRICS, LOGS):
        signed = {"authorization": "SDK-HMAC-SHA256 Access=AK, SignedHeaders=host, Signature=ab"}
        return [(path, {"x-auth-token": said}), (path, {"x-auth-token": said, **signed})]
    if vendor is BASETEN:
        return [(path, {"authorization": f"{scheme} {said}"}) for scheme in ("Api-Key", "Bearer", "API-KEY")]
    query = f"{path}&Token={quote(said, safe='')}"
    headers = [{name: said} for name in ("x-acs-bearer-token", "x-acs-security-token")]
    return [(query, {}), (query, {"authorization": _SIGNED}), *((path, header) for header in headers)]


@pytest.mark.test
@vendors
async def test_who_may_call(job: Reported, vendor: Vendor) -> None:
    own = await own_token(job.api)
    accepted = [
        (vendor.url(job), bearer(own)),
        (vendor.url(job), {"authorization": basic(*job.api.auth)}),
        *_with_token(vendor, job, own),
        *_with_token(vendor, job, f"{ADMIN_KEY}:{ADMIN_SECRET}"),
    ]
    for path, headers in accepted:
        response = await vendor.ask(job, path, auth=None, headers=headers)
        assert response.status_code == 200, (path, headers, response.text)


@pytest.mark.test
@vendors
async def test_who_may_not_call(job: Reported, vendor: Vendor) -> None:
    expired, forged = token(job.api, lifetime_s=-10), token(job.api)[:-2] + "xx"
    path = vendor.url(job)
    late = [(path, bearer(expired)), *_with_token(vendor, job, expired)]
    wrong = [
        *((path, bearer(text)) for text in ("nonsense", forged)),
        (path, {"authorization": basic(secret="wrong")}),
        (path, {"authorization": "Basic !"}),
    ]
    for said in ("nonsense", forged, f"{ADMIN_KEY}:wrong", f"nobody:{ADMIN_SECRET}", ":", "a:"):
        wrong += _with_token(vendor, job, said)
    refused = [
        *((vendor.codes["credentials"], path, headers) for path, headers in wrong),
        *((vendor.codes["expired"], path, headers) for path, headers in late),
        (vendor.codes["no credentials"], path, {}),
        (vendor.codes["no credentials"], path, {"authorization": ""}),
        (vendor.codes["scheme"], path, {"authorization": "Digest username=x"}),
        (vendor.codes["signed"], path, {"authorization": _SIGNED}),
    ]
    for code, url, headers in refused:
        response = await vendor.ask(job, url, auth=None, headers=headers)
        assert vendor.refusal(response) == code, (url, headers)
        assert ADMIN_SECRET not in response.text


@pytest.mark.test
@vendors
async def test_who_calls_is_asked_first(job: Reported, vendor: Vendor) -> None:
    for path in (vendor.url(job, job=_UNKNOWN), vendor.url(job, job="ä" * 300)):
        response = await vendor.ask(job, path, auth=None, **({"content": "{"} if vendor is BASETEN else {}))
        assert vendor.refusal(response) == vendor.codes["no credentials"]


# --- the server's own troubles ---------------------------------------------------------------------


def break_down(monkeypatch: pytest.MonkeyPatch, store: object, method: str, error: Exception) -> None:
    async def trouble(*arguments: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(type(store), method, trouble)


@pytest.mark.test
@vendors
async def test_stores_that_are_busy(job: Reported, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = job.api.backend
    headers = {"authorization": f"Bearer {await own_token(job.api)}"}
    troubles = [
        (backend.events, "worker_spans", EventStoreBusy("behind", retry_after=3), "overloaded", "3"),
        (backend.events, "worker_spans", EventStoreBusy("full", retry_after=7, overloaded=False), "unavailable", "7"),
        (backend.documents, "search", DocumentStoreBusy("locked", retry_after=2), "unavailable", "2"),
    ]
    for store, method, error, problem, retry_after in troubles:
        break_down(monkeypatch, store, method, error)
        response = await vendor.ask(job, auth=None, headers=headers)
        assert vendor.refusal(response) == vendor.codes[problem]
        assert response.headers["retry-after"] == retry_after
        if vendor is PAI:  # its clients read this one, in milliseconds
            assert response.headers["x-acs-retry-after"] == retry_after + "000"


@pytest.mark.test
@vendors
async def test_bugs_are_not_told(
    job: Reported, vendor: Vendor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    break_down(monkeypatch, job.api.backend.events, "worker_spans", RuntimeError("the secret of the inside"))
    response = await vendor.ask(job)
    assert vendor.refusal(response) == vendor.codes["bug"]
    assert "secret" not in response.text
    (record,) = [record for record in caplog.records if record.name == "apiserver.vendors"]
    assert "the secret of the inside" in str(record.exc_info)


async def test_each_answer_of_pai_has_an_id_of_its_own(job: Reported) -> None:
    paths = (PAI.url(job), PAI.url(job, job=_UNKNOWN), PAI.url(job))
    ids = {(await PAI.ask(job, path)).json()["RequestId"] for path in paths}
    assert len(ids) == 3
