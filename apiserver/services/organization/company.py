"""The company's users, and the tags in use."""

from __future__ import annotations

from typing import Any

from apiserver.common import answers
from apiserver.services.access.roles import ASSIGNABLE
from apiserver.services.backend import Call, documents, endpoint, visible
from apiserver.services.lists.conditions import QuerySpec, build_filter
from apiserver.stores.documents.query import Filter, In

_TAGS = QuerySpec(patterns=(), lists=("tags", "system_tags"), times=())


@endpoint("organization.get_tags", "1.0")
async def get_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    chosen = build_filter(request.get("filter") or {}, _TAGS)
    kinds = ("tags", "system_tags") if request["include_system"] else ("tags",)
    answer: dict[str, list[str]] = {}
    for kind in kinds:
        found: set[str] = set()
        for entity in ("tasks", "models"):
            found.update(await visible(call).distinct(entity, kind, chosen, counted=answers.counter()))
        answer[kind] = sorted(found)
    return answer


@endpoint("organization.get_user_companies", "1.0")
async def get_user_companies(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """The caller's company only. All its users are answered as owners."""
    company = await documents(call).find_one("companies", {"id": call.identity.company}, projection=["name"])
    given: Filter = {"role": In(list(ASSIGNABLE))}
    users = await documents(call).find("users", given, projection=["name", "avatar"], sort=[("name", 1)])
    owners = [{"id": user["id"], "name": user["name"], "avatar": user.get("avatar") or None} for user in users]
    name = company["name"] if company else ""
    return {"companies": [{"id": call.identity.company, "name": name, "allocated": len(owners), "owners": owners}]}
