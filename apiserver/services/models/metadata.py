"""Adding, updating and deleting the metadata of models."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, endpoint
from apiserver.services.metadata_items import metadata_removal, metadata_update
from apiserver.services.models.model_documents import change_model


@endpoint("models.add_or_update_metadata", "1.0")
async def add_or_update_metadata(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    items = metadata_update(request["metadata"], request["replace_metadata"])
    await change_model(call, request["model"], {"$set": items})
    return {"updated": 1}


@endpoint("models.delete_metadata", "1.0")
async def delete_metadata(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    removed = metadata_removal(request["keys"])
    await change_model(call, request["model"], {"$unset": removed} if removed else {})
    return {"updated": 1}
