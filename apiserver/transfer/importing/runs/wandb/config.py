"""Config and summary of a run: nested values become parameters, such as "opt/lr"."""

from __future__ import annotations

import json
from typing import Any

from apiserver.transfer.importing.runs.model import Run
from apiserver.transfer.importing.runs.names import leaves
from apiserver.transfer.importing.runs.wandb.history import OWN, full_name, items, of_json


def add_config(run: Run, content: bytes) -> None:
    config = run.parameters.setdefault("config", {})
    for names, value in items(content):
        if names[0] not in OWN:
            _add("/".join(full_name((name,)) for name in names), of_json(value), config)


def add_summary(run: Run, content: bytes) -> None:
    """Keep what the user has put into the summary. What W&B itself puts there is in the history, too.

    W&B names its own items as those of the history (field 2), a user's are named by field 1.
    """
    if content[2:3] != b"\x0a":
        return
    for names, value in items(content):
        if names[:1] and names[0] not in OWN:
            summary = run.parameters.setdefault("summary", {})
            _add("/".join(full_name((name,)) for name in names), of_json(value), summary)


def _add(name: str, value: Any, parameters: dict[str, str]) -> None:
    for full, leaf in leaves(name, value, "/"):
        parameters[full] = leaf if isinstance(leaf, str) else json.dumps(leaf)
