"""Logging: text or JSON lines on standard error, and one debug line a request.

Headers, query strings and bodies are never logged: they carry secrets.
"""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message", "taskName"}

_requests = logging.getLogger("apiserver.requests")


def setup(level: str, format: str) -> None:
    """Send every log record of `level` and above to standard error, as `format` ("text" or "json") says."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("uvicorn", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """The fields a record was given by `extra=`."""
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the record's extras, and error (a traceback)."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **extras(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """`2026-11-21T08:02:12 INFO apiserver.cli message name=value …`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record).replace("\n", "\\n").replace("\r", "\\r")
        return " ".join([line, *(f"{name}={value!r}" for name, value in extras(record).items())])


class RequestLog:
    """ASGI middleware: one debug line for each request that was answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = time.perf_counter()
        seen: dict[str, int] = {"status": 0, "bytes": 0}

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
            elif message["type"] == "http.response.body":
                seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            milliseconds = round((time.perf_counter() - started) * 1000, 1)
            _requests.debug("%s %s", scope["method"], scope["path"], extra={**seen, "ms": milliseconds})
