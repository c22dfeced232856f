"""Lines as clients send them, and what is read of them."""

from __future__ import annotations

import json
from typing import Any

from apiserver.events.ingest import Ingest, ingest_lines
from apiserver.events.model import Owner

NOW = 1_700_000_000_000
TASK = Owner("acme", "t1")


def scalar(**fields: Any) -> dict[str, Any]:
    return {
        "type": "training_stats_scalar",
        "task": "t1",
        "metric": "m",
        "variant": "v",
        "iter": 1,
        "value": 2.0,
        **fields,
    }


def log(**fields: Any) -> dict[str, Any]:
    return {"type": "log", "task": "t1", "timestamp": NOW, "level": "info", "msg": "hello", **fields}


def read(*lines: dict[str, Any] | str) -> Ingest:
    body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    return ingest_lines(body, company="acme", received=NOW, worker="header-worker")
