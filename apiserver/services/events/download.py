"""events.download_task_log: a whole log as a file, which is sent while it is read."""

from __future__ import annotations

import re
from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.reading import log_text
from apiserver.reading.log_text import Line, UndefinedPlaceholders
from apiserver.rpc.call import Streamed
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners


@endpoint("events.download_task_log", "2.1")
async def download_task_log(call: Call, request: dict[str, Any]) -> Streamed:
    owner = await owners.one(call, request)
    line = log_text.json_line if request["line_type"] == "json" else _text_line(request["line_format"])
    name = re.sub(r"[^0-9A-Za-z_.-]", "_", owner.id)
    call.response_headers.append(("Content-Disposition", f"attachment; filename=task_{name}.log"))
    return Streamed(log_text.chunks(call.backend.events, owner, line), "text/plain; charset=utf-8")


def _text_line(line_format: str) -> Line:
    try:
        return log_text.text_line(line_format)
    except UndefinedPlaceholders as undefined:
        known = ", ".join(log_text.FIELDS)
        message = f"Undefined placeholders in field 'line_format': placeholders=({undefined}), known are {known}"
        raise Refusal(Why.INVALID_VALUE, message, data={"field": "line_format"}) from None
