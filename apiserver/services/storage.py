"""storage.*: a company's credentials for S3, Google Cloud Storage and Azure, kept for its clients.

Admins see and change all of it. Other users see the buckets without the secrets.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.common.errors import validation_error
from apiserver.common.times import utc_now
from apiserver.services.access.roles import is_admin
from apiserver.services.backend import Call, documents, endpoint
from apiserver.stores.documents.query import Document, Update

SETTINGS = "storage_settings"
KINDS = ("aws", "google", "azure")
#: The fields that only admins see.
SECRETS = frozenset({"secret", "token", "credentials_json", "account_key"})

#: The settings of a company that has set none.
_UNSET: dict[str, Document] = {
    "aws": {"key": "", "secret": "", "token": "", "region": "", "use_credentials_chain": False, "buckets": []},
    "google": {"project": None, "credentials_json": None, "buckets": []},
    "azure": {"containers": []},
}


@endpoint("storage.get_settings", "2.22")
async def get_settings(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    found = await documents(call).find_one(SETTINGS, {"id": call.identity.company}) or {}
    settings = {kind: {**_UNSET[kind], **(found.get(kind) or {})} for kind in KINDS}
    shown = settings if is_admin(call) else _without_secrets(settings)
    return {"settings": {**shown, "last_update": found.get("last_update")}}


@endpoint("storage.set_settings", "2.31")
async def set_settings(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    given = {kind: request[kind] for kind in KINDS if kind in request}
    if not given:
        raise validation_error("no settings were given")
    _check_credentials(given.get("google", {}))
    fields = Update(set={**given, "last_update": utc_now()})
    new = {"id": call.identity.company}
    await documents(call).update(SETTINGS, new, fields, upsert=new)
    return {"updated": 1}


@endpoint("storage.reset_settings", "2.31")
async def reset_settings(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    keys = request.get("keys") or []
    if not keys:
        return {"updated": 0}
    change = Update(unset=keys, set={"last_update": utc_now()})
    return {"updated": await documents(call).update(SETTINGS, {"id": call.identity.company}, change)}


def _check_credentials(google: Document) -> None:
    """Raises Refusal(INVALID) if a `credentials_json` is not JSON."""
    named = {"google": google, **{f"google.buckets[{n}]": one for n, one in enumerate(google.get("buckets", []))}}
    for path, settings in named.items():
        if text := settings.get("credentials_json"):
            try:
                orjson.loads(text)
            except orjson.JSONDecodeError:
                raise validation_error("must be JSON", field=f"{path}.credentials_json") from None


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key in SECRETS else _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value
