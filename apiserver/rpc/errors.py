"""Every error that the API answers: a code, which is also the HTTP status, a subcode and a message.

ClearML clients know these codes and subcodes. The wording is this server's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apiserver.answers import LARGEST, AnswerTooLarge, NoRoomForLong

#: Most characters of a message: it may quote text of any length from the request.
_LONGEST = 4000
#: Most ids that a message names.
_MOST_NAMED = 20


class ApiError(Exception):
    """An answer other than 200. `data` becomes `meta.error_data`; `retry_after` (seconds) a Retry-After header.

    `allow`: the methods that an Allow header names, as each 405 has to. `reason`: what is wrong, without the words that
    ClearML's clients expect around it.
    """

    def __init__(
        self,
        code: int,
        subcode: int,
        message: str,
        *,
        data: dict[str, Any] | None = None,
        retry_after: int | None = None,
        allow: str | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.subcode = subcode
        self.message = _cut(message)
        self.reason = self.message if reason is None else _cut(reason)
        self.data = data or {}
        self.retry_after = retry_after
        self.allow = allow


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def bad_request(message: str) -> ApiError:
    """The server cannot read the body, the path or the query string."""
    return ApiError(400, 0, message)


def validation_error(message: str, *, field: str | None = None) -> ApiError:
    """A field is missing, of the wrong type, or outside its limits; `field` is its dotted path."""
    if field is None:
        return ApiError(400, 12, f"Validation error ({message})", reason=message)
    said = f"Validation error (field '{field}': {message})"
    return ApiError(400, 12, said, data={"field": field}, reason=f"{field}: {message}")


def invalid_id(kind: str, *ids: str) -> ApiError:
    """The caller can see no `kind` (task, model, queue, project …) with some of the `ids`."""
    subcodes = {"task": 101, "model": 201, "project": 401, "queue": 701, "user": 301}
    return ApiError(400, subcodes.get(kind, 100), f"Invalid {kind} id: ids=({some_of(ids)})")


def some_of(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are: "a, b, and 3 more"."""
    more = [f"and {len(ids) - _MOST_NAMED} more"] if len(ids) > _MOST_NAMED else []
    return ", ".join([*(id[:200] for id in ids[:_MOST_NAMED]), *more])


def invalid_scroll(scroll_id: str) -> ApiError:
    """The scroll id was forged, or comes from another query or another server."""
    hint = "it is for the same request only; leave it out to begin anew"
    return ApiError(400, 1104, f"Invalid scroll id: scroll_id={scroll_id[:200]} ({hint})", data={"field": "scroll_id"})


#: Classes of exceptions of the layers below, and functions that make an ApiError of one.
Errors = Mapping[type[Exception], Callable[[Any], "ApiError"]]


def known_error(error: Exception, errors: Errors) -> ApiError | None:
    """The ApiError for an exception, by its class or the nearest base class in `errors`; None if there is none."""
    make = next((errors[kind] for kind in type(error).__mro__ if kind in errors), None)
    return None if make is None else make(error)


def error_for(error: Exception, errors: Errors) -> ApiError | None:
    """The ApiError that answers an exception of a handler; None if nobody expected the exception."""
    match error:
        case ApiError():
            return error
        case AnswerTooLarge():
            return answer_too_large(LARGEST)
        case NoRoomForLong():
            return overloaded("The server has too many large answers to make at once")
    return known_error(error, errors)


#: Key in the data of an error: the token was valid and has expired.
EXPIRED = "expired"


def unauthorized(subcode: int, message: str, *, expired: bool = False) -> ApiError:
    """The caller is not known. Subcodes: 20 no credentials, 10 bad scheme, 22 bad key or secret, 30 bad token."""
    return ApiError(401, subcode, message, data={EXPIRED: True} if expired else None)


def forbidden(message: str) -> ApiError:
    """The caller is known, but may not do this."""
    return ApiError(403, 21, f"Forbidden ({message})")


def role_not_allowed(role: str, endpoint: str) -> ApiError:
    """The caller's role does not allow the endpoint."""
    return ApiError(403, 20, f"Forbidden (the role {role} does not allow {endpoint})")


def scope_not_allowed(scopes: Sequence[str], endpoint: str) -> ApiError:
    """The caller's access key does not allow the endpoint."""
    return ApiError(403, 20, f"Forbidden (an access key for {', '.join(scopes)} does not allow {endpoint})")


def out_of_project(what: str) -> ApiError:
    """The caller's access key is limited to a project."""
    return ApiError(403, 20, f"Forbidden ({what})")


def impersonation_error(user: str) -> ApiError:
    """The caller wants to act for a user, but there is no such user or the caller may not."""
    return ApiError(400, 6, f"Impersonation error (not allowed, or there is no such user): user={user[:200]}")


def too_large(limit: int) -> ApiError:
    """The body, as sent or as inflated, is larger than `limit` bytes."""
    return ApiError(413, 0, f"The request body is larger than {limit} bytes")


def answer_too_large(limit: int) -> ApiError:
    """The server would have to read more than `limit` bytes for the answer."""
    less = "fewer ids, metrics, iterations or samples, a smaller page, only some fields (only_fields)"
    return ApiError(400, 0, f"The answer would take more than {limit // 2**20} MB: ask for less at once: {less}")


def request_timeout(seconds: float) -> ApiError:
    """The body came too slowly: the client was late by `seconds` in all."""
    return ApiError(408, 0, f"The request body came too slowly: it was waited for {seconds:g} seconds")


def unsupported_encoding(encoding: str, supported: str) -> ApiError:
    """The server cannot decode the body's Content-Encoding."""
    return ApiError(415, 0, f"Content-Encoding '{encoding[:50]}' is not supported: use {supported}")


def method_not_allowed(method: str, allowed: str) -> ApiError:
    """The address is there, but not for this method."""
    return ApiError(405, 0, f"Method {method[:20]} is not allowed: use {allowed}", allow=allowed)


def overloaded(reason: str, retry_after: int = 1) -> ApiError:
    """The server has too much to do right now (429): SDK clients wait and send again."""
    return ApiError(429, 0, reason, retry_after=retry_after)


def unavailable(reason: str, retry_after: int = 5) -> ApiError:
    """Something that the server needs is missing right now (503): SDK clients wait and send again."""
    return ApiError(503, 0, reason, retry_after=retry_after)
