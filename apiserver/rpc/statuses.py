"""The status and the subcode of each reason to refuse a call, as ClearML's clients know them; answers have both."""

from __future__ import annotations

from apiserver.common.answers import LARGEST, AnswerTooLarge, NoRoomForLong
from apiserver.common.errors import Errors, Refusal, Why, overloaded
from apiserver.rpc.errors import ApiError, answer_too_large

STATUSES = {
    Why.INVALID: (400, 12),
    Why.INVALID_VALUE: (400, 16),
    Why.INVALID_SCROLL: (400, 1104),
    Why.NOT_JSON: (400, 0),
    Why.NOTHING_SENT: (400, 17),
    Why.NO_CREDENTIALS: (401, 20),
    Why.BAD_SCHEME: (401, 10),
    Why.WRONG_CREDENTIALS: (401, 22),
    Why.BAD_TOKEN: (401, 30),
    Why.NOT_TO_IMPERSONATE: (400, 6),
    Why.NOT_GRANTED: (403, 20),
    Why.FORBIDDEN: (403, 21),
    Why.OVERLOADED: (429, 0),
    Why.UNAVAILABLE: (503, 0),
    Why.NO_ROOM: (507, 0),
    Why.NO_DOCUMENT: (400, 100),
    Why.NO_TASK: (400, 101),
    Why.NO_MODEL: (400, 201),
    Why.NO_PROJECT: (400, 401),
    Why.NO_QUEUE: (400, 701),
    Why.NO_USER: (400, 301),
    Why.NO_VIEW: (404, 0),
    Why.NO_DOWNLOAD: (400, 10),
    Why.NO_ACCESS_KEY: (400, 75),
    Why.NO_DEFAULT_QUEUE: (400, 707),
    Why.NO_WORKER: (400, 1004),
    Why.NO_WORKER_STATISTICS: (400, 1005),
    Why.NO_CONTAINERS: (400, 1052),
    Why.TASK_LOCKED: (400, 101),
    Why.TASK_STATUS: (400, 110),
    Why.TASK_CHANGED_MEANWHILE: (400, 121),
    Why.TASK_NEEDED: (400, 123),
    Why.TASK_QUEUED: (400, 706),
    Why.TASK_NOT_QUEUED: (400, 703),
    Why.EVENTS_REFUSED: (400, 131),
    Why.LAST_PIPELINE_RUN: (400, 160),
    Why.MODEL_LOCKED: (400, 201),
    Why.MODEL_PUBLISHED: (400, 203),
    Why.MODEL_IN_USE: (400, 205),
    Why.MODEL_OF_PUBLISHED_TASK: (400, 206),
    Why.USER_ID_IN_USE: (400, 302),
    Why.NAME_IN_USE: (400, 801),
    Why.QUEUE_NAME_IN_USE: (400, 704),
    Why.QUEUE_HAS_TASKS: (400, 702),
    Why.PROJECT_HAS_TASKS: (400, 402),
    Why.PROJECT_HAS_MODELS: (400, 405),
    Why.PROJECT_HAS_DATASETS: (400, 406),
    Why.PROJECT_HAS_PIPELINES: (400, 413),
    Why.PROJECT_NAME_INVALID: (400, 407),
    Why.PROJECT_NAME_PUBLIC: (400, 414),
    Why.PROJECT_NAME_WOULD_MOVE: (400, 408),
    Why.PROJECT_TOO_DEEP: (400, 409),
    Why.PROJECT_THERE_ALREADY: (400, 410),
    Why.PROJECT_UNDER_ITSELF: (400, 411),
    Why.PROJECT_MERGED_BELOW: (400, 412),
}


def answer_to(refusal: Refusal) -> ApiError:
    """What the API answers to a call that is refused."""
    status, subcode = STATUSES[refusal.why]
    said = refusal.message
    return ApiError(status, subcode, said, data=refusal.data, retry_after=refusal.retry_after, reason=refusal.reason)


def known_error(error: Exception, errors: Errors) -> ApiError | None:
    """The answer to an exception: `errors` knows its class, or the nearest base class. None if it knows neither."""
    match error:
        case ApiError():
            return error
        case Refusal():
            return answer_to(error)
    make = next((errors[kind] for kind in type(error).__mro__ if kind in errors), None)
    return None if make is None else answer_to(make(error))


def error_for(error: Exception, errors: Errors) -> ApiError | None:
    """The answer to an exception of a handler; None if nobody expected the exception."""
    match error:
        case AnswerTooLarge():
            return answer_too_large(LARGEST)
        case NoRoomForLong():
            return answer_to(overloaded("The server has too many large answers to make at once"))
    return known_error(error, errors)
