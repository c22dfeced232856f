"""Plots that are pictures: pages that ask by the cookie get links that open, others the URLs that were reported."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from apiserver.services.events.picture_links import MOST
from tests.harness import Api

pytestmark = pytest.mark.anyio

FILE = "http://127.0.0.1:8081/project/task/figure.png"
ELSEWHERE = "https://example.org/figure.png"


def figure(*urls: str) -> str:
    """A figure of pictures, as the SDK reports those of matplotlib."""
    images = [{"source": url, "xref": "x", "sizex": 2.0} for url in urls]
    return orjson.dumps({"data": [], "layout": {"images": images}}).decode()


async def reported(api: Api, plot: str, **fields: Any) -> str:
    task: str = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    event = {"task": task, "type": "plot", "iter": 3, "metric": "m", "variant": "v", "plot_str": plot, **fields}
    await api.call("events.add", event)
    return task


async def by_cookie(api: Api, endpoint: str, request: dict[str, Any]) -> dict[str, Any]:
    token = (await api.call("auth.login"))["token"]
    cookie = {
        "cookie": f"clearml_token_basic={token}",
        "sec-fetch-site": "same-origin",
        "sec-fetch-mode": "cors",
        "sec-fetch-dest": "empty",
    }
    return await api.call(endpoint, request, auth=None, headers=cookie)


def sources(event: dict[str, Any]) -> list[str]:
    return [image["source"] for image in orjson.loads(event["plot_str"])["layout"]["images"]]


async def shown(api: Api, task: str) -> list[dict[str, Any]]:
    """The plot as each endpoint answers it that pages draw plots from."""
    metrics = [{"task": task, "metric": "m"}]
    asked = {"task": task, "metric": "m", "variant": "v"}
    several = {"tasks": [task], "metrics": [{"metric": "m"}]}
    of_task = await by_cookie(api, "events.get_task_plots", {"task": task})
    walked = await by_cookie(api, "events.plots", {"metrics": metrics})
    compared = await by_cookie(api, "events.get_multi_task_plots", several)
    one = await by_cookie(api, "events.get_plot_sample", asked)
    scroll = {"task": task, "scroll_id": one["scroll_id"], "next_iteration": True}
    assert (await by_cookie(api, "events.next_plot_sample", scroll))["events"] == []
    return [
        *of_task["plots"],
        *walked["metrics"][0]["iterations"][0]["events"],
        *compared["plots"]["m"]["v"][task]["3"]["plots"],
        *one["events"],
    ]


@pytest.mark.test
async def test_pages_get_links_that_open_without_a_login(api: Api) -> None:
    await api.raw("PUT", "/files/project/task/figure.png", content=b"picture")
    task = await reported(api, figure(FILE, ELSEWHERE))
    events = await shown(api, task)
    assert len(events) == 4
    for event in events:
        link, elsewhere = sources(event)
        assert (link.partition("?token=")[0], elsewhere) == (FILE, ELSEWHERE)
        parts = urlsplit(link)
        answer = await api.raw("GET", f"/files{parts.path}?{parts.query}", auth=None)
        assert (answer.status_code, answer.content) == (200, b"picture")


async def test_spaces_in_the_figure_do_not_matter(api: Api) -> None:
    task = await reported(api, figure(FILE).replace('":"', '": "'))
    assert ["?token=" in sources(event)[0] for event in await shown(api, task)] == [True] * 4


async def test_programs_get_what_was_reported(api: Api) -> None:
    task = await reported(api, figure(FILE))
    [plot] = (await api.call("events.get_task_plots", {"task": task}))["plots"]
    assert plot["plot_str"] == figure(FILE)


async def test_other_plots_stay_as_they_are(api: Api) -> None:
    text = orjson.dumps({"data": [{"text": '"source":"http://127.0.0.1/x"'}], "source": ELSEWHERE}).decode()
    task = await reported(api, text)
    [plot] = (await by_cookie(api, "events.get_task_plots", {"task": task}))["plots"]
    assert plot["plot_str"] == text


async def test_one_answer_has_a_bound_of_links(api: Api) -> None:
    task = await reported(api, figure(*[FILE] * (MOST + 1)))
    [plot] = (await by_cookie(api, "events.get_task_plots", {"task": task}))["plots"]
    assert ["token" in url for url in sources(plot)] == [True] * MOST + [False]


async def test_urls_with_escapes_are_left_whole(api: Api) -> None:
    plot = figure(f"{FILE}?a=1&b=2").replace("&", "\\u0026")
    task = await reported(api, plot)
    assert [event["plot_str"] for event in await shown(api, task)] == [plot] * 4
