"""Turns errors of Elasticsearch, and of the client, into those of the store."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from elastic_transport import ConnectionError, ConnectionTimeout, TransportError
from elasticsearch import ApiError

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.node import TOO_LARGE

log = logging.getLogger(__name__)

#: Seconds after which a caller may try again: if nodes are overloaded, if they are away, or if a person must act first.
BUSY_AGAIN = 1
AWAY_AGAIN = 5
BY_HAND_AGAIN = 30
_LONGEST_REASON = 300
MISSING = "index_not_found_exception"
_CLOSED = "index_closed_exception"


@contextmanager
def errors(*, writing: bool = False) -> Iterator[None]:
    """Turns errors of the client, inside the block, into those of the store."""
    try:
        yield
    except ConnectionTimeout as error:
        raise _away("Elasticsearch does not answer in time", writing) from error
    except ConnectionError as error:
        raise _away(f"Elasticsearch cannot be reached: {str(error.message)[:_LONGEST_REASON]}", writing) from error
    except TransportError as error:
        raise _away(f"Elasticsearch cannot be used: {error.message}", writing) from error
    except ApiError as error:
        raise busy(error.status_code, *_type_and_reason(error.body), writing=writing) from error


def _away(reason: str, writing: bool) -> EventStoreBusy:
    return EventStoreBusy(reason, retry_after=AWAY_AGAIN, overloaded=False, may_be_kept=writing)


def needs_hands(type: str) -> bool:
    """Whether an error of this type lasts until a person acts, as when a disk is nearly full."""
    return "block" in type.lower() or type == _CLOSED


def busy(status: int, type: str, reason: object, *, writing: bool = False) -> EventStoreBusy:
    """The error that the caller gets for an answer of a node. When `writing`, a part of the request may be done."""
    text = f"{type}: {str(reason)[:_LONGEST_REASON]}" if reason else type or f"status {status}"
    overloaded, retry_after = False, AWAY_AGAIN
    if needs_hands(type):  # the status may be 429, too
        what, retry_after = "an index is closed" if type == _CLOSED else "Elasticsearch does not write", BY_HAND_AGAIN
    elif type == TOO_LARGE:
        return EventStoreBusy(text, retry_after=AWAY_AGAIN, overloaded=False)
    elif status == 429:
        what, overloaded, retry_after = "Elasticsearch is overloaded", True, BUSY_AGAIN
    else:
        what = "Elasticsearch cannot serve"
        if status in (401, 403):
            log.error("Elasticsearch refuses this server: %s", text)
            text = f"it refuses this server's credentials, or their rights do not suffice ({text})"
        elif status < 500:
            log.error("Elasticsearch does not understand this server: %s", text)
    return EventStoreBusy(f"{what}: {text}", retry_after=retry_after, overloaded=overloaded, may_be_kept=writing)


def _type_and_reason(body: object) -> tuple[str, object]:
    """The type and the reason of an error, of a whole request or of its first document that failed; "" if unknown."""
    if not isinstance(body, Mapping):
        return "", None
    failures = body.get("failures")
    error = failures[0].get("cause") if isinstance(failures, list) and failures else body.get("error")
    return (str(error.get("type", "")), error.get("reason")) if isinstance(error, Mapping) else (str(error or ""), None)


@contextmanager
def no_index() -> Iterator[list[ApiError]]:
    """Makes a missing index, inside the block, no error: the answer is in the list then. A closed index is an error."""
    missing: list[ApiError] = []
    try:
        yield missing
    except ApiError as error:
        if _type_and_reason(error.body)[0] != MISSING:
            raise
        missing.append(error)
