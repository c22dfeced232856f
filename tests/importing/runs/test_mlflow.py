"""MLflow's stores, written by hand: odd numbers, broken lines, and what attackers write into them."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.importing.runs.mlflow.experiments import Mlflow, MlflowRun
from apiserver.importing.runs.mlflow.files import FileStore
from apiserver.importing.runs.mlflow.opening import store_at
from apiserver.importing.runs.mlflow.yaml import flat_yaml
from apiserver.importing.runs.model import Artifact, Part, Points, Position, Problem, Unmapped
from tests.harness import Served
from tests.importing.runs.test_taking import environment, series_of, tasks_of

__all__ = ["environment"]
yaml: Any = import_module("yaml")
RUN = "0123456789abcdef" * 2


def make_run(store: Path, run: str = RUN, *, metrics: dict[str, str], **more: Any) -> Path:
    """A run of a file store."""
    experiment = store / "7"
    folder = experiment / run
    (folder / "artifacts").mkdir(parents=True)
    (experiment / "meta.yaml").write_text(yaml.safe_dump({"experiment_id": "7", "name": "Ex: 'ä' #1"}))
    about = {"run_id": run, "run_name": "one", "status": 3, "start_time": 1_700_000_000_000, "end_time": None, **more}
    (folder / "meta.yaml").write_text(yaml.safe_dump(about))
    for key, text in {**{f"metrics/{key}": text for key, text in metrics.items()}, "params/l.r": "0.1"}.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_text(text)
    return folder


def parts_of(place: Path, position: str | None = None) -> list[Part]:
    (run,) = [one for one in Mlflow(store_at(str(place)), None).runs() if isinstance(one, MlflowRun)]
    return list(run.parts(position))


def points_of(parts: list[Part]) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
    found: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for part in parts:
        if isinstance(part, Points):
            rows = zip(part.iters.tolist(), part.timestamps.tolist(), map(repr, part.values.tolist()), strict=True)
            found.setdefault((part.metric, part.variant), []).extend(rows)
    return found


def test_a_file_store(tmp_path: Path) -> None:
    metrics = {
        "loss": "5 0.1 1\n6 nan 2\n7 -inf 9223372036854775807\n",
        "val/acc": "1 1.5\n2 2.5 7 data digest\n",
        "same": "".join(f"{n} {n} 0\n" for n in range(5)),
        "bad": "1 1 1\nx y z\n2 2 2 \n3 3 99999999999999999999\n4 4 4",
    }
    make_run(tmp_path, metrics=metrics)
    parts = parts_of(tmp_path)
    assert points_of(parts) == {
        ("loss", "loss"): [(1, 5, "0.1"), (2, 6, "nan"), (2**63 - 1, 7, "-inf")],
        ("val", "acc"): [(0, 1, "1.5"), (7, 2, "2.5")],
        ("same", "same"): [(n, n, f"{n}.0") for n in range(5)],
        ("bad", "bad"): [(1, 1, "1.0"), (2, 2, "2.0"), (4, 4, "4.0")],
    }
    assert [part.of for part in parts if isinstance(part, Problem)] == ["metric bad"] * 2
    positions = [part.text for part in parts if isinstance(part, Position)]
    assert points_of(parts_of(tmp_path, positions[1])).keys() == {("same", "same"), ("val", "acc")}
    assert points_of(parts_of(tmp_path, positions[-1])) == {}


def test_a_metric_is_read_in_pieces(tmp_path: Path) -> None:
    make_run(tmp_path, metrics={"m": "".join(f"{n} {n / 7} {n}\n" for n in range(1000))})
    expected = [(n, n, repr(n / 7)) for n in range(1000)]
    (run,) = Mlflow(FileStore(tmp_path, block=100), None).runs()
    assert isinstance(run, MlflowRun)
    assert points_of(list(run.parts(None))) == {("m", "m"): expected}


def test_nothing_outside_the_store_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    store = tmp_path / "mlruns"
    folder = make_run(store, metrics={}, artifact_uri=f"file://{tmp_path}/secret")
    (folder / "artifacts" / "own.txt").write_text("own")
    (folder / "artifacts" / "link").symlink_to(tmp_path / "secret" / "key")
    (folder / "artifacts" / "folder").symlink_to(tmp_path / "secret")
    assert [part.name for part in parts_of(store) if isinstance(part, Artifact)] == ["own.txt"]
    (store / "7" / "linked").symlink_to(folder.rename(tmp_path / "elsewhere"))
    (problem,) = Mlflow(store_at(str(store)), None).runs()
    assert isinstance(problem, Problem)
    assert "leads out" in problem.cause


def database(path: Path, rows: list[tuple[Any, ...]], artifacts: str = "") -> None:
    with sqlite3.connect(path) as made:
        made.executescript(
            "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);"
            "CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time BIGINT, end_time BIGINT, "
            "artifact_uri TEXT, lifecycle_stage TEXT, experiment_id INTEGER);"
            "CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT, step BIGINT, is_nan INT);"
            "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
            "CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
            "INSERT INTO experiments VALUES (1, 'ex');"
        )
        run = (RUN, "one", "KILLED", 1_700_000_000_000, 1_700_000_060_000, artifacts, "active", 1)
        made.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", run)
        made.execute("INSERT INTO runs VALUES ('x', 'gone', 'FAILED', 1, 2, '', 'deleted', 1)")
        made.execute("INSERT INTO params VALUES ('lr', '0.1', ?)", (RUN,))
        made.executemany("INSERT INTO tags VALUES (?, ?, ?)", [("a", "b", RUN), ("mlflow.note.content", "hi", RUN)])
        made.executemany(f"INSERT INTO metrics VALUES (?, ?, ?, '{RUN}', ?, ?)", rows)


def test_a_database(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    largest = 1.7976931348623157e308
    rows = [("x/y", 0.1 * n, n, n, 0) for n in range(100)]
    rows += [("odd", 0.0, 1, 1, 1), ("odd", largest, 2, 2, 0), ("odd", -largest, 3, 3, 0)]
    database(tmp_path / "mlflow.db", rows)
    odd = points_of(parts_of(tmp_path / "mlflow.db"))["odd", "odd"]
    assert odd == [(1, 1, "nan"), (2, 2, "inf"), (3, 3, "-inf")]
    assert main(["import", "mlflow", f"sqlite:///{tmp_path}/mlflow.db", "--project", "old"]) == 1
    (task,) = tasks_of(server).values()
    assert (task["name"], task["status"], task["tags"], task["comment"]) == ("one", "stopped", ["a: b"], "hi")
    assert (task["active_duration"], task["hyperparams"]["params"]["lr"]["value"]) == (60, "0.1")
    series = series_of(server, task["id"])
    assert series["x"]["y"]["y"] == [0.1 * n for n in range(100)]
    assert series["odd"]["odd"]["x"] == [1, 2, 3]


def test_the_summary_tells_new_runs_from_updated_and_moved_ones(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def summary(*more: str) -> str:
        assert main(["import", "mlflow", str(tmp_path / "mlruns"), *more]) == 0
        [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("runs: ")]
        return line.removeprefix("runs: ")

    one, other, third = (f"{n}" * 32 for n in range(3))
    for run in (one, other):
        make_run(tmp_path / "mlruns", run, metrics={"m": "1 1 1\n"}, run_name=run)
    assert summary() == "2 found, 2 imported, 0 imported before"
    with (tmp_path / "mlruns" / "7" / one / "metrics" / "m").open("a") as file:
        file.write("2 2 2\n")
    assert summary() == "2 found, 1 imported (1 updated), 1 imported before"
    make_run(tmp_path / "mlruns", third, metrics={"m": "1 1 1\n"}, run_name=third)
    assert summary("--project", "old") == "3 found, 3 imported (1 new, 2 moved to another project), 0 imported before"
    assert summary("--project", "old") == "3 found, 0 imported, 3 imported before"
    assert tasks_of(server).keys() == {one, other, third}


def test_a_hostile_database(tmp_path: Path, capsys: pytest.CaptureFixture[str], environment: dict[str, str]) -> None:
    (tmp_path / "store").mkdir()
    rows: list[tuple[Any, ...]] = [("bad", "text", 1, 1, 0), ("bad", 1.0, None, 1, 0), ("good", 1.0, 1, 1, 0)]
    database(tmp_path / "store" / "mlflow.db", rows, artifacts=f"file://{tmp_path}")
    (tmp_path / "secret").write_text("secret")
    parts = parts_of(tmp_path / "store" / "mlflow.db")
    assert points_of(parts).keys() == {("good", "good")}
    assert [part.of for part in parts if isinstance(part, Problem)] == ["metric bad"]
    assert [part.kind for part in parts if isinstance(part, Unmapped)]
    assert not [part for part in parts if isinstance(part, Artifact)]
    (tmp_path / "no.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    assert main(["import", "mlflow", str(tmp_path / "no.db")]) == 2
    assert "MLflow's database" in capsys.readouterr().err


#: Names have no line breaks.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=200)


@pytest.mark.test
@given(st.dictionaries(st.sampled_from(["name", "run_name", "x_1"]), TEXTS | st.just(" ".join(["long words"] * 30))))
def test_yaml_is_read_as_it_is_written(entries: dict[str, str]) -> None:
    text = yaml.dump(entries, default_flow_style=False, allow_unicode=True, Dumper=yaml.SafeDumper)
    assert flat_yaml(text) == entries, text


def test_yaml_of_other_types() -> None:
    assert flat_yaml("a: null\nb: 3\nc: ''\nd: []\n") == {"a": "", "b": "3", "c": "", "d": "[]"}
    assert json.loads("[NaN]")[0] is not math.nan


class FakeServer(BaseHTTPRequestHandler):
    """Answers as MLflow's server does: pages, NaN as text, and files."""

    def answer(self, found: Any) -> None:
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Authorization"] == "Bearer tok"
        if self.path.endswith("/experiments/search"):
            self.answer({"experiments": [{"experiment_id": "1", "name": "ex"}]})
            return
        data = {"params": [{"key": "lr", "value": "0.1"}], "tags": [{"key": "a", "value": "b"}]}
        info = {"run_id": RUN, "run_name": "one", "status": "FINISHED", "start_time": 1000, "end_time": 2000}
        pages = {
            None: {"runs": [{"info": {**info, "lifecycle_stage": "deleted"}}, {"data": data}], "next_page_token": "t"},
            "t": {"runs": [{"info": info, "data": data}]},
        }
        self.answer(pages[asked.get("page_token")])

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path.endswith("/runs/get"):
            metrics = [{"key": key, "value": 1, "timestamp": 1, "step": 1} for key in ("x/y", "odd")]
            self.answer({"run": {"data": {"metrics": metrics}}})
        elif url.path.endswith("/metrics/get-history"):
            start = int(asked.get("page_token", 0))
            odd = [{"value": "NaN", "timestamp": 1}, {"value": 1.7976931348623157e308, "timestamp": 2, "step": 2**40}]
            rows = [{"value": n / 3, "timestamp": n, "step": n} for n in range(start, start + 10)]
            more = {"next_page_token": str(start + 10)} if start < 20 else {}
            self.answer({"metrics": odd} if asked["metric_key"] == "odd" else {"metrics": rows, **more})
        elif url.path.endswith("/artifacts/list"):
            file = {"path": "d/a.txt", "file_size": 4}
            self.answer({"files": [file] if asked.get("path") == "d" else [{"path": "d", "is_dir": True}]})
        else:
            self.answer(asked["path"].encode()[:4])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_server(
    server: Served, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "tok")
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeServer) as fake:
        thread = threading.Thread(target=fake.serve_forever)
        thread.start()
        place = f"http://127.0.0.1:{fake.server_address[1]}"
        try:
            codes = [main(["import", "mlflow", place, "--files"]) for _ in range(2)]
        finally:
            fake.shutdown()
            thread.join()
    said = capsys.readouterr().err
    assert codes == [1, 1]
    assert said.count("a run of the server: it is malformed") == 2
    assert "not mapped: 1 × deleted run (one)" in said
    assert "runs: 1 found, 0 imported, 1 imported before" in said
    (task,) = tasks_of(server).values()
    assert (task["name"], task["active_duration"], task["tags"]) == ("one", 1, ["a: b"])
    series = series_of(server, task["id"])
    assert series["x"]["y"] == {"x": list(range(30)), "y": [n / 3 for n in range(30)]}
    assert series["odd"]["odd"]["x"] == [0, 2**40]
    (artifact,) = task["execution"]["artifacts"]
    with server.client() as client:
        assert client.get(artifact["uri"]).text == "d/a."


def test_no_such_server(capsys: pytest.CaptureFixture[str], environment: dict[str, str]) -> None:
    assert main(["import", "mlflow", "http://127.0.0.1:9"]) == 2
    assert "MLflow's server does not answer" in capsys.readouterr().err
