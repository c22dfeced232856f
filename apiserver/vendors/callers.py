"""Who calls, in each vendor's way of saying it, with this server's credentials; and in its own ways everywhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping

from starlette.requests import Request

#: The Authorization header that says what a request says in its vendor's way; None when it says nothing in that way.
Authorization = Callable[[Request], str | None]


def of_text(credentials: str) -> str:
    """The Authorization header for `key:secret`, or for a token; "" for neither."""
    credentials = credentials.strip()
    if not credentials:
        return ""
    if ":" in credentials:
        return f"Basic {b64encode(credentials.encode()).decode()}"
    return f"Bearer {credentials}"


def headers_with(request: Request, authorization: Authorization) -> Mapping[str, str]:
    """The request's headers as this server's own API has them.

    They are taken as they came: each look into Starlette's `Headers` goes through all of them.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.scope["headers"]}
    said = authorization(request)
    return headers if said is None else {**headers, "authorization": said}
