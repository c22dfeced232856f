"""An error that the API answers: a code, which is also the HTTP status, a subcode and a message.

Those here are of HTTP itself. Why else a call is refused is in `apiserver/common/errors.py`.
"""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import cut


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
        self.message = cut(message)
        self.reason = self.message if reason is None else cut(reason)
        self.data = data or {}
        self.retry_after = retry_after
        self.allow = allow


def bad_request(message: str) -> ApiError:
    """The server cannot read the body, the path or the query string."""
    return ApiError(400, 0, message)


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
