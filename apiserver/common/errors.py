"""Why calls are refused. Nothing here knows HTTP: `rpc/statuses.py` says which status and subcode each reason has.

This module lies below `services/` and `rpc/`, because both refuse calls, some of them for the same reasons. ClearML's
clients look for words of some messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

#: Most characters of a message: it may quote text of any length from the request.
_LONGEST = 4000
#: Most ids that a message names.
_MOST_NAMED = 20


class Why(Enum):
    """The reasons for which calls are refused."""

    INVALID = auto()
    INVALID_VALUE = auto()
    INVALID_SCROLL = auto()
    NOT_JSON = auto()
    NOTHING_SENT = auto()

    NO_CREDENTIALS = auto()
    BAD_SCHEME = auto()
    WRONG_CREDENTIALS = auto()
    BAD_TOKEN = auto()
    NOT_TO_IMPERSONATE = auto()
    NOT_GRANTED = auto()
    FORBIDDEN = auto()

    OVERLOADED = auto()
    UNAVAILABLE = auto()
    NO_ROOM = auto()

    NO_DOCUMENT = auto()
    NO_TASK = auto()
    NO_MODEL = auto()
    NO_PROJECT = auto()
    NO_QUEUE = auto()
    NO_USER = auto()
    NO_VIEW = auto()
    NO_DOWNLOAD = auto()
    NO_ACCESS_KEY = auto()
    NO_DEFAULT_QUEUE = auto()
    NO_WORKER = auto()
    NO_WORKER_STATISTICS = auto()
    NO_CONTAINERS = auto()

    TASK_LOCKED = auto()
    TASK_STATUS = auto()
    TASK_CHANGED_MEANWHILE = auto()
    TASK_NEEDED = auto()
    TASK_QUEUED = auto()
    TASK_NOT_QUEUED = auto()
    EVENTS_REFUSED = auto()
    LAST_PIPELINE_RUN = auto()

    MODEL_LOCKED = auto()
    MODEL_PUBLISHED = auto()
    MODEL_IN_USE = auto()
    MODEL_OF_PUBLISHED_TASK = auto()

    USER_ID_IN_USE = auto()
    NAME_IN_USE = auto()
    QUEUE_NAME_IN_USE = auto()
    QUEUE_HAS_TASKS = auto()

    PROJECT_HAS_TASKS = auto()
    PROJECT_HAS_MODELS = auto()
    PROJECT_HAS_DATASETS = auto()
    PROJECT_HAS_PIPELINES = auto()
    PROJECT_NAME_INVALID = auto()
    PROJECT_NAME_PUBLIC = auto()
    PROJECT_NAME_WOULD_MOVE = auto()
    PROJECT_TOO_DEEP = auto()
    PROJECT_THERE_ALREADY = auto()
    PROJECT_UNDER_ITSELF = auto()
    PROJECT_MERGED_BELOW = auto()


PASSING = frozenset({Why.OVERLOADED, Why.UNAVAILABLE, Why.NO_ROOM})
"""The reasons that end by themselves: the same call may be answered later."""


class Refusal(Exception):
    """A call is refused. `data`: what programs want to know of it; `retry_after`: in seconds, when to try again.

    `reason`: what is wrong, without the words that ClearML's clients expect around it.
    """

    def __init__(
        self,
        why: Why,
        message: str,
        *,
        data: dict[str, Any] | None = None,
        retry_after: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.why = why
        self.message = cut(message)
        self.reason = self.message if reason is None else cut(reason)
        self.data = data or {}
        self.retry_after = retry_after


#: Classes of exceptions of the layers below, and functions that make a Refusal of one.
Errors = Mapping[type[Exception], Callable[[Any], Refusal]]


def cut(text: str) -> str:
    """The text of a message, not too long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def some_of(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are: "a, b, and 3 more"."""
    more = [f"and {len(ids) - _MOST_NAMED} more"] if len(ids) > _MOST_NAMED else []
    return ", ".join([*(id[:200] for id in ids[:_MOST_NAMED]), *more])


def validation_error(message: str, *, field: str | None = None) -> Refusal:
    """A field is missing, of the wrong type, or outside its limits; `field` is its dotted path."""
    if field is None:
        return Refusal(Why.INVALID, f"Validation error ({message})", reason=message)
    said = f"Validation error (field '{field}': {message})"
    return Refusal(Why.INVALID, said, data={"field": field}, reason=f"{field}: {message}")


_NO_SUCH = {
    "task": Why.NO_TASK,
    "model": Why.NO_MODEL,
    "project": Why.NO_PROJECT,
    "queue": Why.NO_QUEUE,
    "user": Why.NO_USER,
}


def invalid_id(kind: str, *ids: str) -> Refusal:
    """The caller can see no `kind` (task, model, queue, project …) with some of the `ids`."""
    return Refusal(_NO_SUCH.get(kind, Why.NO_DOCUMENT), f"Invalid {kind} id: ids=({some_of(ids)})")


def invalid_scroll(scroll_id: str) -> Refusal:
    """The scroll id was forged, or comes from another query or another server."""
    hint = "it is for the same request only; leave it out to begin anew"
    said = f"Invalid scroll id: scroll_id={scroll_id[:200]} ({hint})"
    return Refusal(Why.INVALID_SCROLL, said, data={"field": "scroll_id"})


#: Key in the data of a refusal: the token was valid and has expired.
EXPIRED = "expired"


def expired(why: Why, message: str) -> Refusal:
    """The caller is not known any more: what they show has expired."""
    return Refusal(why, message, data={EXPIRED: True})


def impersonation_error(user: str) -> Refusal:
    """The caller wants to act for a user, but there is no such user or the caller may not."""
    said = f"Impersonation error (not allowed, or there is no such user): user={user[:200]}"
    return Refusal(Why.NOT_TO_IMPERSONATE, said)


def forbidden(message: str) -> Refusal:
    """The caller is known, but may not do this."""
    return Refusal(Why.FORBIDDEN, f"Forbidden ({message})")


def not_granted(what: str) -> Refusal:
    """The caller's role or access key does not allow this."""
    return Refusal(Why.NOT_GRANTED, f"Forbidden ({what})")


def overloaded(reason: str, retry_after: int = 1) -> Refusal:
    """The server has too much to do right now: SDK clients wait and send again."""
    return Refusal(Why.OVERLOADED, reason, retry_after=retry_after)


def unavailable(reason: str, retry_after: int = 5) -> Refusal:
    """Something that the server needs is missing right now: SDK clients wait and send again."""
    return Refusal(Why.UNAVAILABLE, reason, retry_after=retry_after)
