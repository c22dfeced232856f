"""The reasons for which a vendor's request is refused. Each vendor answers them with its own status, code and body."""

from __future__ import annotations

from enum import Enum, auto

from fastapi.exceptions import RequestValidationError

from apiserver.common.errors import EXPIRED
from apiserver.rpc.errors import ApiError


class Problem(Enum):
    """Why a request is refused."""

    NO_CREDENTIALS = auto()
    BAD_SCHEME = auto()
    BAD_CREDENTIALS = auto()
    EXPIRED = auto()
    FORBIDDEN = auto()
    MISSING = auto()
    INVALID = auto()
    NO_PATH = auto()
    NO_PROJECT = auto()
    NO_JOB = auto()
    NO_NODE = auto()
    NO_LOG = auto()
    TOO_LARGE = auto()
    TOO_SLOW = auto()
    OVERLOADED = auto()
    UNAVAILABLE = auto()
    INTERNAL = auto()


_BY_CODE = {
    401: Problem.BAD_CREDENTIALS,
    403: Problem.FORBIDDEN,
    408: Problem.TOO_SLOW,
    413: Problem.TOO_LARGE,
    429: Problem.OVERLOADED,
    503: Problem.UNAVAILABLE,
}
_BY_SUBCODE = {(401, 10): Problem.BAD_SCHEME, (401, 20): Problem.NO_CREDENTIALS}


class Refused(Exception):
    """Raised to refuse a request. `parameter`: the name of the wrong one. `retry_after`: in seconds."""

    def __init__(
        self, problem: Problem, reason: str, *, parameter: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(reason)
        self.problem = problem
        self.message = f"{parameter}: {reason}" if parameter else reason
        self.parameter = parameter
        self.retry_after = retry_after


def of_api_error(error: ApiError) -> Refused:
    """The refusal for an error of this server's own API."""
    known = error.code < 500 or error.code in _BY_CODE
    problem = _BY_CODE.get(error.code, Problem.INVALID if known else Problem.INTERNAL)
    problem = _BY_SUBCODE.get((error.code, error.subcode), problem)
    if error.data.get(EXPIRED):
        problem = Problem.EXPIRED
    return Refused(problem, error.message, retry_after=error.retry_after)


def of_invalid(error: RequestValidationError) -> Refused:
    """The refusal for the first invalid parameter."""
    first = error.errors()[0]
    # `loc` is ("path", name), ("query", name), ("body", name …), or ("body", offset) if the body is not JSON.
    name = ".".join(step for step in first["loc"][1:] if isinstance(step, str)) or str(first["loc"][0])
    problem = Problem.MISSING if first["type"] == "missing" else Problem.INVALID
    return Refused(problem, first["msg"], parameter=name)
