"""reports.get_all_ex and get_tags."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.reports.calls import found, make, project
from tests.services.tasks.calls import make as make_task

pytestmark = pytest.mark.anyio


@pytest.fixture
async def places(api: Api) -> dict[str, str | None]:
    """Ids of projects by short names; each, but `none`, has a report of that name, and tasks that are none."""
    ids: dict[str, str | None] = {"top": None}
    for name in ("a", "a/b", "c"):
        ids[name] = await project(api, name)
    for name, id in ids.items():
        await make(api, name=name, project=id, tags=[f"tag of {name}"])
        await make_task(api, name="no report", project=id)
    ids["none"] = await project(api, "none")
    return ids


@pytest.mark.test
@pytest.mark.parametrize(
    ("wanted", "subprojects", "expected"),
    [
        ([], False, ["top", "a", "a/b", "c"]),
        (["a"], False, ["a"]),
        ("a", False, ["a"]),
        (["a"], True, ["a", "a/b"]),
        (["c", "a/b"], False, ["a/b", "c"]),
        (["top"], False, ["top"]),
        (["top"], True, ["top"]),
        (["top", "c"], False, ["top", "c"]),
        (["none"], False, []),
        (["none"], True, []),
        (["-a"], False, ["top", "a/b", "c"]),
    ],
)
async def test_reports_are_of_the_project_that_their_home_is_below(
    api: Api, places: dict[str, str | None], wanted: Any, subprojects: bool, expected: list[str]
) -> None:
    def id(name: str) -> str | None:
        return f"-{places[name[1:]]}" if name.startswith("-") else places[name]

    asked = id(wanted) if isinstance(wanted, str) else [id(name) for name in wanted]
    assert await found(api, project=asked, include_subprojects=subprojects) == expected


async def test_no_report_is_at_the_top_before_the_first_one(api: Api) -> None:
    await make(api, project=await project(api, "a"))
    assert await found(api, project=[None]) == []


async def test_reports_are_found_by_what_they_are(api: Api, places: dict[str, str | None]) -> None:
    late = await make(api, name="late", report="Hello world", comment="greeting")
    await api.call("reports.publish", {"task": late})
    await api.call("reports.archive", {"task": late})

    fields = ["name", "id", "tags", "report"]
    assert await found(api, _any_={"pattern": "hello", "fields": fields}) == ["late"]
    assert await found(api, _any_={"pattern": "of a", "fields": fields}) == ["a", "a/b"]
    assert await found(api, status=["published"]) == await found(api, system_tags=["archived"]) == ["late"]
    assert await found(api, system_tags=["-archived"]) == ["top", "a", "a/b", "c"]
    assert await found(api, tags=["tag of c"]) == ["c"]
    assert await found(api, filters={"tags": {"any": {"include": ["tag of c", "tag of a"]}}}) == ["a", "c"]
    assert await found(api, id=[late]) == await found(api, search_text="greet") == ["late"]
    assert await found(api, name="^a") == ["a", "a/b"]
    # A condition on what every report has alike is no way around it.
    assert await found(api, type=["training"], search_hidden=False, name="^c") == ["c"]


async def test_the_page_of_reports_as_the_dashboard_asks_for_it(api: Api, places: dict[str, str | None]) -> None:
    answer = await api.call(
        "reports.get_all_ex",
        {
            "order_by": ["-last_update"],
            "page": 0,
            "page_size": 2,
            "only_fields": ["name", "comment", "company.id", "tags", "report", "project.name", "user.name", "status"],
            "system_tags": ["-archived"],
        },
    )
    assert [report["name"] for report in answer["tasks"]] == ["c", "a/b"]
    assert answer["tasks"][0]["project"]["name"] == "c/.reports"
    assert answer["tasks"][0]["user"]["name"]
    assert "created" not in answer["tasks"][0]


async def test_reports_scroll(api: Api, places: dict[str, str | None]) -> None:
    request = {"size": 3, "order_by": ["name"], "project": [None, places["a"], places["a/b"], places["c"]]}
    first = await api.call("reports.get_all_ex", request)
    rest = await api.call("reports.get_all_ex", {**request, "scroll_id": first["scroll_id"]})
    assert [report["name"] for page in (first, rest) for report in page["tasks"]] == ["a", "a/b", "c", "top"]


async def test_tags_are_those_of_reports(api: Api) -> None:
    report = await make(api, tags=["z", "b"])
    await make(api, tags=["b", "c"])
    await make_task(api, tags=["task"])
    assert (await api.call("reports.get_tags"))["tags"] == ["b", "c", "z"]
    await api.call("reports.delete", {"task": report})
    assert (await api.call("reports.get_tags"))["tags"] == ["b", "c"]
