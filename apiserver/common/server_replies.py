"""Why a server refuses, or does not answer, in a sentence for people."""

from __future__ import annotations

import json

from apiserver.common.escaping import shown

#: Characters of a sentence that are said, and of a body that has none. This server's sentences are no longer.
_LONGEST_SENTENCE, _LONGEST = 5000, 300


def reason(body: bytes) -> str:
    """The server's own sentence, on one line; the beginning of a body that has none, as a proxy's page."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    match answer:
        case {"meta": {"result_msg": str(said)}} if said:  # the ClearML API
            return _sentence(said)
        case {"error": {"message": str(said)}} if said:  # /data
            return _sentence(said)
        case {"error_code": _, "message": str(said)} if said:  # MLflow's server
            return _sentence(said)
        case {"stores": dict(stores)} if down := [str(name) for name, state in stores.items() if state != "ok"]:
            return shown(f"the store of {' and of '.join(down)} is down")  # /health
    return shown(body.decode(errors="replace").strip(), longest=_LONGEST)


def why_silent(error: BaseException) -> str:
    """Why there was no answer: what the system said, such as "Connection refused", which libraries wrap."""
    cause: object = error
    while isinstance(cause, BaseException):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = getattr(cause, "reason", None) or cause.__cause__
    return shown(str(error), longest=_LONGEST)


def _sentence(said: str) -> str:
    return shown(said, longest=_LONGEST_SENTENCE)
