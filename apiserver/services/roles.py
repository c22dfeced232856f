"""What a role allows."""

from __future__ import annotations

from apiserver.rpc.errors import forbidden
from apiserver.services.backend import Call


def is_admin(call: Call) -> bool:
    return call.identity.role == "admin"


def require_admin(call: Call) -> None:
    """403 unless the caller is an admin."""
    if not is_admin(call):
        raise forbidden(f"{call.endpoint} is for admins")
