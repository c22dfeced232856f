"""Credentials in vendors' headers. They are this server's access keys and tokens; its own headers work everywhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping

from starlette.requests import Request

#: Turns the vendor's credentials of a request into an Authorization header of this server; None if it has none.
Authorization = Callable[[Request], str | None]


def authorization_for(credentials: str) -> str:
    """The Authorization header for `key:secret` or for a token; "" for empty credentials."""
    credentials = credentials.strip()
    if not credentials:
        return ""
    if ":" in credentials:
        return f"Basic {b64encode(credentials.encode()).decode()}"
    return f"Bearer {credentials}"


def headers_with(request: Request, authorization: Authorization) -> Mapping[str, str]:
    """The request's headers, with an Authorization header of this server's own API.

    They are a dict, because each lookup in Starlette's `Headers` searches all of them.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.scope["headers"]}
    said = authorization(request)
    return headers if said is None else {**headers, "authorization": said}
