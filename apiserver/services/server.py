"""server.*: the server itself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import apiserver
from apiserver.rpc.errors import validation_error
from apiserver.rpc.versions import NEWEST, SERVER_VERSION
from apiserver.services.backend import Call, endpoint


@endpoint("server.info", "2.12")
async def info(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    company = await call.backend.documents.find_one("companies", {"id": call.backend.settings.company})
    return {
        "version": SERVER_VERSION,
        "build": apiserver.__version__,
        "commit": "",
        "api_version": str(NEWEST),
        "uid": company["server_uid"] if company else "",
    }


@endpoint("server.config", "1.0")
async def config(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    settings = call.backend.settings
    shown = {
        field.name: "****" if field.metadata.get("secret") else getattr(settings, field.name)
        for field in fields(settings)
    }
    shown["data"] = str(settings.data)
    path = request.get("path")
    if not path:
        return shown
    if path not in shown:
        raise validation_error("no such setting", field="path")
    return {path: shown[path]}


@endpoint("server.report_stats_option", "1.0")
async def report_stats_option(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"supported": False, "enabled": False}
