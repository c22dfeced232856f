"""Log lines: one line each, with their extras."""

from __future__ import annotations

import json
import logging
import sys

from apiserver.server.logs import JsonFormatter, TextFormatter


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("apiserver.x", logging.ERROR, "x.py", 1, message, arguments, None)
    made.__dict__.update(extra)
    return made


def test_json_lines_hold_message_and_extras() -> None:
    line = json.loads(JsonFormatter().format(record("%s is full", "disk", request="42", size=3)))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "error",
        "logger": "apiserver.x",
        "message": "disk is full",
        "request": "42",
        "size": 3,
    }


def test_json_lines_hold_the_traceback() -> None:
    failed = record("it failed")
    try:
        raise ValueError("the cause")
    except ValueError:
        failed.exc_info = sys.exc_info()
    text = JsonFormatter().format(failed)
    assert "\n" not in text
    assert "ValueError: the cause" in json.loads(text)["error"]


def test_text_lines_hold_extras() -> None:
    line = TextFormatter().format(record("it failed", request="42"))
    assert line.endswith(" ERROR apiserver.x it failed request='42'")


def test_a_message_cannot_forge_a_line() -> None:
    line = TextFormatter().format(record("GET %s", "/x\n2026-01-01T00:00:00 INFO root forged", path="a\nb"))
    assert "\n" not in line
