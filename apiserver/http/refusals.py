"""What a connection answers by itself, without the application, before it closes: whole answers of HTTP."""

from __future__ import annotations

from http import HTTPStatus


def _refusal(status: HTTPStatus, *headers: bytes, words: str = "") -> bytes:
    """An answer that says `words`, or else the phrase of its status."""
    text = (words or status.phrase).encode()
    head = (
        b"HTTP/1.1 %d %s" % (status, status.phrase.encode()),
        b"content-type: text/plain; charset=utf-8",
        b"content-length: %d" % len(text),
        *headers,
        b"connection: close",
    )
    return b"\r\n".join([*head, b"", text])


#: By status: the answers to clients that are too slow, too many, or do not speak HTTP as they should.
REFUSALS = {
    400: _refusal(HTTPStatus.BAD_REQUEST),
    408: _refusal(HTTPStatus.REQUEST_TIMEOUT),
    431: _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    503: _refusal(HTTPStatus.SERVICE_UNAVAILABLE, b"retry-after: 2"),
}
#: The answer to HTTP without TLS at a port that speaks TLS.
WITHOUT_TLS = _refusal(HTTPStatus.BAD_REQUEST, words="This port speaks TLS: use an address with https://\n")
