"""Makes tasks of MLflow's runs: an experiment is a project, a key such as "val/loss" a metric and a variant.

MLflow keeps all points of a step, this server one. If all points of a metric have the same step, as when it is logged
without a step, they are numbered in their order instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import chain

import numpy as np

from apiserver.importing.runs.mlflow.stores import MlflowStore, Recorded, Values, as_json
from apiserver.importing.runs.model import Again, Part, Points, Position, Problem, Run, Unmapped, clamped, names_of

_STATUSES = {
    "RUNNING": "in_progress",
    "SCHEDULED": "created",
    "FINISHED": "completed",
    "FAILED": "failed",
    "KILLED": "stopped",
}
_NOTE, _NAME, _OWN = "mlflow.note.content", "mlflow.runName", "mlflow."


class Mlflow:
    """All runs of a store; their projects are below `project`, if there is one."""

    unit = "runs"

    def __init__(self, store: MlflowStore, project: str | None) -> None:
        self._store = store
        self._project = project

    def total(self) -> int:
        return self._store.count()

    def runs(self) -> Iterator[MlflowRun | Problem | Unmapped]:
        for found in self._store.runs():
            yield MlflowRun(self._store, found, self._project) if isinstance(found, Recorded) else found


class MlflowRun:
    """One run."""

    def __init__(self, store: MlflowStore, found: Recorded, project: str | None) -> None:
        self._store = store
        self._found = found
        tags = dict(found.tags)
        self.run = Run(
            f"mlflow {found.id}",
            f"{project}/{found.experiment}" if project else found.experiment,
            found.name or tags.get(_NAME) or found.id,
            status=_STATUSES.get(found.status),
            comment=tags.pop(_NOTE, ""),
            tags=[f"{key}: {value}" if value else key for key, value in tags.items() if not key.startswith(_OWN)],
            started=None if found.start is None else found.start / 1000,
            completed=None if found.end is None else found.end / 1000,
            parameters={
                "params": found.params,
                "mlflow": {key: value for key, value in tags.items() if key.startswith(_OWN) and key != _NAME},
            },
        )

    def parts(self, position: str | None) -> Iterator[Part]:
        """The points, key by key, then the files. A position names the last key, and what the run was like."""
        metrics = self._store.metrics(self._found)
        like = hashlib.blake2b(as_json([metrics, self._found.end]).encode(), digest_size=12).hexdigest()
        before = json.loads(position) if position else {}
        after = before.get("after") if before.get("like") == like else None
        if before == {"like": like}:
            yield Position(json.dumps(before), 1)
            return
        if before and before.get("like") != like:
            yield Again()
        for key in sorted(metrics):
            if after is None or key > after:
                yield from self._points(key)
                yield Position(json.dumps({"like": like, "after": key}))
        yield from self._store.artifacts(self._found)
        yield Position(json.dumps({"like": like}), 1)

    def _points(self, key: str) -> Iterator[Part]:
        pieces = self._store.points(self._found, key)
        first = next(pieces, None)
        if first is None:
            return
        one_step = isinstance(first, Values) and len(first.steps) > 1 and bool((first.steps == first.steps[0]).all())
        number = 0
        for piece in chain([first], pieces):
            if isinstance(piece, Problem):
                yield piece
                continue
            steps = np.arange(number, number + len(piece.steps)) if one_step else piece.steps
            number += len(piece.steps)
            yield Points(*names_of(key), steps, clamped(piece.timestamps), piece.values)
