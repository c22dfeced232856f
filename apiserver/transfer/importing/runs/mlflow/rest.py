"""MLflow's server, over its REST API, version 2.0."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from apiserver.common.protobuf_wire import Malformed
from apiserver.common.server_replies import reason, why_silent
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.report import ImportFailed, SourceRefused
from apiserver.transfer.importing.runs.mlflow.stores import Recorded, Values, kept_values
from apiserver.transfer.importing.runs.model import Artifact, File, Problem, Unmapped

_SECONDS = 120.0
#: Most runs, most points and most bytes of an answer.
_RUNS, _POINTS, _BYTES = 100, 25_000, 64 * 2**20
_DEEPEST = 32
_TEXTS = ("params", "tags")


class RestStore:
    """The server at an address. MLFLOW_TRACKING_TOKEN or _USERNAME and _PASSWORD log in, as for MLflow's client."""

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        self._url = url.rstrip("/")
        user, password, token = (
            environment.get(f"MLFLOW_TRACKING_{name}") for name in ("USERNAME", "PASSWORD", "TOKEN")
        )
        headers = urllib3.make_headers(basic_auth=f"{user}:{password}") if user and password else {}
        if token:
            headers = {"Authorization": f"Bearer {token}"}
        self._pool = urllib3.PoolManager(
            headers=headers, timeout=_SECONDS, retries=urllib3.Retry(3, backoff_factor=0.5)
        )

    def count(self) -> int:
        return 0

    def runs(self) -> Iterator[Recorded | Problem | Unmapped]:
        experiments = {
            str(experiment["experiment_id"]): str(experiment.get("name"))
            for page in self._pages("POST", "experiments/search", {"max_results": 1000})
            for experiment in page.get("experiments", ())
        }
        for id, name in experiments.items():
            try:
                for page in self._pages("POST", "runs/search", {"experiment_ids": [id], "max_results": _RUNS}):
                    for run in page.get("runs", ()):
                        yield _recorded(run, name)
            except Malformed as error:
                yield Problem(f"experiment {name}", str(error))

    def has(self, id: str) -> bool:
        try:
            found = self._ask("GET", "runs/get", {"run_id": id})
            return bool(found.get("run", {}).get("info", {}).get("lifecycle_stage") != "deleted")
        except (SourceRefused, Malformed, AttributeError):
            return False

    def metrics(self, run: Recorded) -> dict[str, object]:
        found = self._ask("GET", "runs/get", {"run_id": run.id})["run"]["data"].get("metrics", ())
        return {one["key"]: [one.get("timestamp"), one.get("step"), str(one.get("value"))] for one in found}

    def points(self, run: Recorded, key: str) -> Iterator[Values | Problem]:
        asked = {"run_id": run.id, "metric_key": key, "max_results": _POINTS}
        for page in self._pages("GET", "metrics/get-history", asked):
            rows = [(one.get("timestamp"), one.get("value"), one.get("step", 0)) for one in page.get("metrics", ())]
            yield from kept_values(key, rows)

    def artifacts(self, run: Recorded) -> Iterator[Artifact | Problem]:
        try:
            yield from self._artifacts(run)
        except SourceRefused as error:
            yield Problem("artifacts", str(error))

    def _artifacts(self, run: Recorded) -> Iterator[Artifact | Problem]:
        folders = [""]
        while folders:
            here = folders.pop()
            asked = {"run_id": run.id, **({"path": here} if here else {})}
            for page in self._pages("GET", "artifacts/list", asked):
                for one in page.get("files", ()):
                    path = str(one["path"])
                    if not one.get("is_dir"):
                        yield Artifact(path, self._file(run, path, int(one.get("file_size") or 0)))
                    elif path.count("/") < _DEEPEST:
                        folders.append(path)
                    else:
                        yield Problem(f"artifacts {path}", "the folder is too deep", Reason.OVER_LIMIT)

    def _file(self, run: Recorded, path: str, size: int) -> File:
        url = f"{self._url}/get-artifact?path={quote(path, safe='')}&run_uuid={quote(run.id, safe='')}"

        def opened() -> BinaryIO:
            try:
                answer = self._pool.request("GET", url, preload_content=False)
            except HTTPError as error:
                raise OSError(f"MLflow's server: {error}") from error
            if answer.status != 200:
                raise OSError(f"MLflow's server answers {answer.status}")
            return cast(BinaryIO, answer)

        return File(size, opened)

    def _pages(self, method: str, call: str, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        while True:
            page = self._ask(method, call, asked)
            yield page
            token = page.get("next_page_token")
            if not token or token == asked.get("page_token"):
                return
            asked = {**asked, "page_token": token}

    def _ask(self, method: str, call: str, asked: dict[str, Any]) -> dict[str, Any]:
        url = f"{self._url}/api/2.0/mlflow/{call}"
        try:
            if method == "GET":
                answer = self._pool.request(method, url, fields=asked, preload_content=False)
            else:
                answer = self._pool.request(method, url, json=asked, preload_content=False)
            data = answer.read(_BYTES + 1)
            answer.release_conn()
        except (HTTPError, OSError) as error:
            raise ImportFailed(f"MLflow's server does not answer: {why_silent(error)}") from error
        if len(data) > _BYTES:
            raise Malformed(f"MLflow's server answers more than {_BYTES:,} bytes to {call}")
        if answer.status != 200:
            raise SourceRefused(f"MLflow's server answers {answer.status} to {call}: {reason(data)}")
        try:
            found: dict[str, Any] = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ImportFailed(f"MLflow's server answers no JSON to {call}: {error}") from None
        return found


def _recorded(found: dict[str, Any], experiment: str) -> Recorded | Problem | Unmapped:
    """The run of an answer."""
    try:
        info, data = found["info"], found.get("data") or {}
        name = str(info.get("run_name") or "")
        if info.get("lifecycle_stage") == "deleted":
            return Unmapped("deleted run", name, on_purpose=True)
        params, tags = ({str(one["key"]): str(one.get("value", "")) for one in data.get(kind, ())} for kind in _TEXTS)
        start, end = (int(info[time]) if info.get(time) else None for time in ("start_time", "end_time"))
        return Recorded(
            str(info["run_id"]), experiment, name, str(info["status"]), start, end, params=params, tags=tags
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Problem("a run of the server", f"it is malformed: {error}")
