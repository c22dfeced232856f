"""Logging: lines of text or JSON on standard error.

Headers, query strings and bodies are never logged at any level, because they hold secrets.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

_STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message", "taskName"}


def setup(level: str, format: str) -> None:
    """Write log records of `level` and above to standard error, in the `format` "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("uvicorn", "asyncio", "pymongo"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # For each attempt to reach a missing node it warns with a traceback; the store says the same in one line.
    logging.getLogger("elastic_transport").setLevel(logging.ERROR)


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that a record got from `extra=`."""
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
