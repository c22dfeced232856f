"""MLflow's store in an SQLite file, `mlflow.db`, which is only read."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.mlflow.artifacts import artifacts_in
from apiserver.transfer.importing.runs.mlflow.stores import Recorded, Values, kept_values
from apiserver.transfer.importing.runs.model import Artifact, Problem, Unmapped

_ROWS = 50_000
_RUNS = "FROM runs r JOIN experiments e USING (experiment_id)"


class SqliteStore:
    """The store in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise ImportFailed(f"there is no file '{path}'")
        with _errors(ImportFailed):
            self._database = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
            weakref.finalize(self, self._database.close)
            self._database.text_factory = lambda text: text.decode(errors="replace")
            self._database.execute("SELECT run_uuid FROM runs LIMIT 1")

    def count(self) -> int:
        with _errors(ImportFailed):
            found: tuple[int] = self._database.execute("SELECT count(*) FROM runs").fetchone()
            return found[0]

    def runs(self) -> Iterator[Recorded | Problem | Unmapped]:
        asked = (
            "SELECT r.run_uuid, e.name, r.name, r.status, r.start_time, r.end_time, r.artifact_uri, r.lifecycle_stage "
            f"{_RUNS} ORDER BY r.start_time, r.run_uuid"
        )
        with _errors(ImportFailed):
            rows = self._database.execute(asked)
            while page := rows.fetchmany(100):
                for *row, stage in page:
                    id, experiment, name = (str(cell or "") for cell in row[:3])
                    if stage == "deleted":
                        yield Unmapped("deleted run", name or id, on_purpose=True)
                        continue
                    start, end = (cell if isinstance(cell, int) else None for cell in row[4:6])
                    recorded = Recorded(id, experiment, name, str(row[3]), start, end, str(row[6] or ""))
                    recorded.changed = self._path.stat().st_mtime_ns // 10**6
                    recorded.params, recorded.tags = self._texts("params", id), self._texts("tags", id)
                    yield recorded

    def has(self, id: str) -> bool:
        asked = f"SELECT 1 {_RUNS} WHERE r.run_uuid = ? AND coalesce(r.lifecycle_stage, '') != 'deleted'"
        with _errors(ImportFailed):
            return self._database.execute(asked, (id,)).fetchone() is not None

    def metrics(self, run: Recorded) -> dict[str, object]:
        asked = (
            "SELECT key, count(*), max(timestamp), max(step), total(value) FROM metrics WHERE run_uuid = ? GROUP BY key"
        )
        with _errors(Malformed):
            return {str(key): rest for key, *rest in self._database.execute(asked, (run.id,))}

    def points(self, run: Recorded, key: str) -> Iterator[Values | Problem]:
        asked = (
            "SELECT timestamp, CASE WHEN is_nan THEN 'nan' ELSE value END, step FROM metrics "
            "WHERE run_uuid = ? AND key = ? ORDER BY step, timestamp, rowid"
        )
        with _errors(Malformed):
            rows = self._database.execute(asked, (run.id, key))
            while some := rows.fetchmany(_ROWS):
                yield from kept_values(key, some)

    def artifacts(self, run: Recorded) -> Iterator[Artifact | Problem]:
        return artifacts_in(self._path.parent, run)

    def _texts(self, table: str, id: str) -> dict[str, str]:
        rows = self._database.execute(f"SELECT key, value FROM {table} WHERE run_uuid = ?", (id,))
        return {str(key): str(value or "") for key, value in rows}


@contextmanager
def _errors(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise kind(f"MLflow's database: {error}") from error
