"""server.*: the server itself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import apiserver
from apiserver.common.commit import commit
from apiserver.common.errors import validation_error
from apiserver.rpc.versions import NEWEST, SERVER_VERSION
from apiserver.services.access.roles import check_owns_server
from apiserver.services.backend import Call, endpoint, registry
from apiserver.services.server import usage_statistics
from apiserver.settings.settings import masked


@endpoint("server.info", "2.12")
async def info(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": SERVER_VERSION,
        "build": apiserver.__version__,
        "commit": commit(),
        "api_version": str(NEWEST),
        "uid": await _uid(call),
    }


@endpoint("server.config", "1.0")
async def config(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    settings = call.backend.settings
    check_owns_server(call.identity, settings)
    safe = masked(settings)
    shown: dict[str, Any] = {}
    for field in fields(settings):
        hidden = field.metadata.get("secret") or field.metadata.get("address")
        shown[field.name] = safe[field.name] if hidden else getattr(settings, field.name)
    shown["data"] = str(settings.data)
    shown["users"] = [user.name for user in settings.users]  # without the hashes of their passwords
    path = request.get("path")
    if not path:
        return shown
    if path not in shown:
        raise validation_error("no such setting", field="path")
    return {path: shown[path]}


@endpoint("server.get_stats", "2.1")
async def get_stats(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    server = {"version": SERVER_VERSION, "deployment": "", "uuid": await _uid(call)}
    return await usage_statistics.of_company(call, server, request["interval"])


@endpoint("server.endpoints", "2.1")
async def endpoints(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    versions: dict[str, list[dict[str, str]]] = {}
    for registered in sorted(registry, key=lambda one: (one.name, [int(part) for part in one.version.split(".")])):
        versions.setdefault(registered.name, []).append({"min_version": registered.version})
    return {"endpoints": versions, "models": {}}


@endpoint("server.report_stats_option", "1.0")
async def report_stats_option(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"supported": False, "enabled": False, "current_version": SERVER_VERSION}


async def _uid(call: Call) -> str:
    """The random id of this installation; "" before its company was made."""
    company = await call.backend.documents.find_one("companies", {"id": call.backend.settings.company})
    return str(company["server_uid"]) if company else ""
