"""Scroll ids that nobody was given: forged, cut off, of another endpoint, of another company. On both pairs of stores.

All endpoints of the schema that take one are asked: a new one is in these tests as soon as its schema is there.
Whatever comes as a scroll id, the answer is a page or a 400, and has nothing of another company's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from apiserver.rpc.schema import EndpointVersion
from apiserver.services.access import credentials
from tests.harness import Api, basic, running_api
from tests.services.generated import ENDPOINTS, Requests, ask, send

pytestmark = pytest.mark.anyio

MARK = "onlyours"
NEWEST = {endpoint.name: endpoint for endpoint in ENDPOINTS}
SCROLLING = [
    endpoint
    for endpoint in NEWEST.values()
    if "scroll_id" in endpoint.request.get("properties", {}) and endpoint.name != "events.clear_scroll"
]
#: A page of one, by whichever name an endpoint has for it.
_ONE = ("size", "batch_size", "iters")
_DEEP = "x" * 16 + "kZGR" * 4000  # as msgpack: lists in lists


@dataclass(frozen=True, slots=True)
class Walks:
    """A server of two companies, with a walk of ours at each endpoint."""

    api: Api
    requests: dict[str, dict[str, Any]]
    """What each endpoint is asked for its first page."""
    scroll_ids: dict[str, str]
    theirs: tuple[str, str]


@pytest.fixture(params=["embedded", pytest.param("engines", marks=pytest.mark.check)])
async def walks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Walks]:
    settings: dict[str, Any] = {} if request.param == "embedded" else request.getfixturevalue("shared_engines")
    async with running_api(tmp_path_factory.mktemp("walks") / "data", **settings) as api:
        ids = await populated(api)
        requests = {endpoint.name: first_page(endpoint, ids) for endpoint in SCROLLING}
        scroll_ids = {}
        for endpoint in SCROLLING:
            scroll_ids[endpoint.name] = await begun(api, endpoint, requests[endpoint.name])
        for kind in ("debug_image", "plot"):
            scroll_ids[f"events.next_{kind}_sample"] = scroll_ids[f"events.get_{kind}_sample"]
        _, made = await credentials.create_user(api.backend.documents, "another company", "eve", "admin")
        yield Walks(api, requests, scroll_ids, (made.key, made.secret))


async def populated(api: Api) -> dict[str, str]:
    """Three things of each kind that is walked through; the ids of the first."""
    ids: dict[str, str] = {}
    for n in (3, 2, 1):
        for kind, fields in {
            "project": {},
            "task": {"type": "training"},
            "model": {"uri": f"file:///{MARK}"},
            "queue": {},
            "report": {},
        }.items():
            made = await api.call(f"{kind}s.create", {"name": f"{MARK} {n}", **fields})
            ids[kind] = made["id"]
    events: list[dict[str, Any]] = [
        {"type": "training_stats_scalar", "metric": MARK, "variant": MARK, "value": 1},
        {"type": "log", "msg": MARK},
        {"type": "plot", "metric": MARK, "variant": MARK, "plot_str": "{}"},
        {"type": "training_debug_image", "metric": MARK, "variant": MARK, "url": f"http://{MARK}"},
    ]
    for iter in (1, 2, 3):
        for event in events:
            await api.call("events.add", {"task": ids["task"], "iter": iter, "timestamp": iter, **event})
    return ids


async def begun(api: Api, endpoint: EndpointVersion, request: dict[str, Any]) -> str:
    """The scroll id of a first page, if it has one."""
    answer = (await send(api, endpoint, request)).json()
    return (answer["data"] or {}).get("scroll_id") or ""


def first_page(endpoint: EndpointVersion, ids: dict[str, str]) -> dict[str, Any]:
    named: dict[str, Any] = {
        "metric": {"metric": MARK} if endpoint.name == "events.scalar_metrics_iter_raw" else MARK,
        "variant": MARK,
        "metrics": [{"task": ids["task"], "metric": MARK}],
        "event_type": "training_stats_scalar",
    }
    fields = endpoint.request["properties"]
    least = Requests(ids).least(endpoint)
    wanted = {name: value for name, value in named.items() if name in least}
    request = {**least, **wanted, **{name: 1 for name in _ONE if name in fields}}
    if endpoint.name == "events.get_task_log":
        request["search"] = {"text": MARK}  # only searches have scroll ids that are looked at
    return {name: value for name, value in request.items() if name != "scroll_id"}


def forged(real: str) -> Iterator[str]:
    """Scroll ids like the real one, and others that are like none."""
    for at in {0, 1, len(real) // 3, len(real) // 2, len(real) - 2, len(real) - 1} if real else ():
        yield f"{real[:at]}{'B' if real[at] == 'A' else 'A'}{real[at + 1 :]}"
    yield from (real[:1], real[:16], real[:17], real[: len(real) // 2], real[:-1])
    yield from (f"{real}A", f"{real}=", f"{real}{real}", real.swapcase(), f" {real}", f"{real}\0")
    yield from ("", "=", "A", "nope", "é", "\ud7ff\0", "../../etc/passwd", '{"$gt": ""}', "*", "0" * 32)
    yield from ("x" * 2**16, "x" * (2**16 + 1), "x" * 2**21, _DEEP)


@pytest.mark.test
async def test_a_scroll_id_that_one_was_not_given_is_a_page_or_a_400(walks: Walks) -> None:
    assert sum(map(bool, walks.scroll_ids.values())) >= 15, walks.scroll_ids
    for endpoint in SCROLLING:
        request, ours = walks.requests[endpoint.name], walks.scroll_ids[endpoint.name]
        for scroll_id in {*forged(ours), *walks.scroll_ids.values()}:
            status, text = await ask(walks.api, endpoint, {**request, "scroll_id": scroll_id}, basic(*walks.api.auth))
            assert status in {200, 400}, (endpoint.name, scroll_id[:100], text[:500])
            assert len(scroll_id) <= 2**16 or status == 400
        for asked in ({**request, "scroll_id": ours}, {"scroll_id": ours, "size": 1}):
            status, text = await ask(walks.api, endpoint, asked, basic(*walks.theirs))
            assert status in {200, 400}, (endpoint.name, text[:500])
            assert MARK not in text, endpoint.name
