"""Every error the API answers: an HTTP status (`code`), a subcode and a message.

Codes and subcodes are those ClearML clients know; the wording is ours. The HTTP status equals `code`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Characters of a message: what a request holds may be in it, and be of any length.
_LONGEST = 4000
#: How many ids of a request a message names.
_MOST_NAMED = 20


class ApiError(Exception):
    """An answer other than 200. `data` becomes `meta.error_data`; `retry_after` (seconds) a Retry-After header."""

    def __init__(
        self,
        code: int,
        subcode: int,
        message: str,
        *,
        data: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.subcode = subcode
        self.message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
        self.data = data or {}
        self.retry_after = retry_after


def bad_request(message: str) -> ApiError:
    """The body or path is not something the server can read."""
    return ApiError(400, 0, message)


def validation_error(message: str, *, field: str | None = None) -> ApiError:
    """A field is missing, of the wrong type, or outside its limits; `field` is its dotted path."""
    if field is not None:
        message = f"field '{field}': {message}"
    return ApiError(400, 12, f"Validation error ({message})", data={"field": field} if field else None)


def invalid_id(kind: str, *ids: str) -> ApiError:
    """Some of `ids` name no `kind` (task, model, queue, project …) that the caller may see."""
    subcodes = {"task": 101, "model": 201, "project": 401, "queue": 701, "user": 301}
    return ApiError(400, subcodes.get(kind, 100), f"Invalid {kind} id: ids=({some_of(ids)})")


def some_of(ids: Sequence[str]) -> str:
    """The ids as a message names them: the first of them, and how many more there are."""
    more = [f"and {len(ids) - _MOST_NAMED} more"] if len(ids) > _MOST_NAMED else []
    return ", ".join([*(id[:200] for id in ids[:_MOST_NAMED]), *more])


def invalid_scroll(scroll_id: str) -> ApiError:
    """A scroll id that was forged, belongs to another query, or is of another server."""
    hint = "it is for the same request only; leave it out to begin anew"
    return ApiError(400, 1104, f"Invalid scroll id: scroll_id={scroll_id[:200]} ({hint})", data={"field": "scroll_id"})


#: Exceptions of the parts below, and the answers they become.
Errors = Mapping[type[Exception], Callable[[Any], "ApiError"]]


def known_error(error: Exception, errors: Errors) -> ApiError | None:
    """The answer that `errors` has for an exception, by its class or a base class of it; None if it has none."""
    make = next((errors[kind] for kind in type(error).__mro__ if kind in errors), None)
    return None if make is None else make(error)


#: In the data of an error: the token was a good one.
EXPIRED = "expired"


def unauthorized(subcode: int, message: str, *, expired: bool = False) -> ApiError:
    """20 no credentials, 10 bad scheme, 22 bad key or secret, 30 bad token."""
    return ApiError(401, subcode, message, data={EXPIRED: True} if expired else None)


def forbidden(message: str) -> ApiError:
    """The caller is known but may not do this."""
    return ApiError(403, 21, f"Forbidden ({message})")


def role_not_allowed(role: str, endpoint: str) -> ApiError:
    """The caller's role does not allow the endpoint."""
    return ApiError(403, 20, f"Forbidden (the role {role} does not allow {endpoint})")


def impersonation_error(user: str) -> ApiError:
    """The caller asked to be a user that is not there, or that they may not be."""
    return ApiError(400, 6, f"Impersonation error (not allowed, or there is no such user): user={user[:200]}")


def too_large(limit: int) -> ApiError:
    """The body is larger than `limit` bytes, as sent or inflated."""
    return ApiError(413, 0, f"The request body is larger than {limit} bytes")


def answer_too_large(limit: int) -> ApiError:
    """More than `limit` bytes would have to be read for the answer."""
    less = "fewer ids, metrics, iterations or samples, a smaller page, only some fields (only_fields)"
    return ApiError(400, 0, f"The answer would take more than {limit // 2**20} MB: ask for less at once: {less}")


def request_timeout(seconds: float) -> ApiError:
    """Nothing more of the body came for that long, or so little that it adds up to it."""
    return ApiError(408, 0, f"The request body came too slowly: it was waited for {seconds:g} seconds")


def unsupported_encoding(encoding: str, supported: str) -> ApiError:
    """The body's Content-Encoding is none that the server can decode."""
    return ApiError(415, 0, f"Content-Encoding '{encoding[:50]}' is not supported: use {supported}")


def method_not_allowed(method: str, allowed: str) -> ApiError:
    """The API takes GET, POST and PUT alike, and nothing else."""
    return ApiError(405, 0, f"Method {method[:20]} is not allowed: use {allowed}")


def overloaded(reason: str, retry_after: int = 1) -> ApiError:
    """Too much is asked of the server for now (429): SDK clients wait and send again."""
    return ApiError(429, 0, reason, retry_after=retry_after)


def unavailable(reason: str, retry_after: int = 5) -> ApiError:
    """Something the server needs is not there for now (503): SDK clients wait and send again."""
    return ApiError(503, 0, reason, retry_after=retry_after)
