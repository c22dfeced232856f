"""`apiserver import` into a served port: again, interrupted, followed, refused; what cannot be taken is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.common.times import now_ms
from apiserver.operating.retention import deleting
from tests.harness import PATIENCE, Served
from tests.transfer.importing.runs import tfevents
from tests.transfer.importing.runs.test_tensorboard import NAME, plugin
from tests.transfer.importing.runs.tfevents import event, message, record, scalar

#: The command, killed when the server has kept a given number of requests.
KILLED = """
import os, signal, sys
from apiserver.cli import main
from apiserver.transfer.importing.runs import sending, taking
from apiserver.transfer.importing.runs.server import Server
sending._POINTS, sending._LINES, taking._SAVE_EVENTS = 50, 3, 100
really, sent = Server.send, []
def send(self, endpoint, body):
    answer = really(self, endpoint, body)
    sent.append(endpoint)
    if len(sent) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
Server.send = send
main(sys.argv[2:])
"""


@pytest.fixture
def environment(server: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The variables of a client of the server; they are set."""
    said = {
        "CLEARML_API_HOST": server.api_url,
        "CLEARML_FILES_HOST": server.files_url,
        "CLEARML_API_ACCESS_KEY": server.key,
        "CLEARML_API_SECRET_KEY": server.secret,
        "HOME": str(tmp_path),
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **said}


def text(tag: str, step: int, content: str) -> bytes:
    return event(tag, step, (8, message((1, 7), (8, content))), plugin("text"))


def write_run(folder: Path, content: bytes, name: str = NAME) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def tasks_of(server: Served) -> dict[str, dict[str, Any]]:
    return {task["name"]: task for task in server.call("tasks.get_all", {})["tasks"]}


def series_of(server: Served, task: str) -> dict[str, dict[str, dict[str, list[float]]]]:
    found: dict[str, Any] = server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    return {m: {v: {"x": one["x"], "y": one["y"]} for v, one in of.items()} for m, of in found.items()}


def lines_of(server: Served, task: str) -> list[str]:
    request = {"task": task, "batch_size": 5000, "navigate_earlier": False}
    return [line["msg"] for line in server.call("events.get_task_log", request)["events"]]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_folder_is_taken_once(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    png = b"\x89PNG and so on"
    runs = tmp_path / "runs"
    one = [scalar("loss/train", n, n / 2, 1_700_000_001 + n) for n in range(100)]
    write_run(runs / "a", tfevents.records([*one, text("note", 1, "hi ü"), event("i", 2, (4, message((4, png))))]))
    write_run(runs / "b" / "c", tfevents.records([scalar("x", 2**62, 1)]))
    assert main(["import", "tensorboard", str(runs), "--project", "old/runs"]) == 0
    said = capsys.readouterr().err
    assert "runs: 2 found, 2 imported, 0 imported before" in said
    assert "points: 101 found, 101 imported" in said
    tasks = tasks_of(server)
    assert tasks.keys() == {"a", "b/c"}
    a = tasks["a"]
    assert (a["status"], a["started"], a["completed"]) == (
        "completed",
        "2023-11-14T22:13:20.500000+00:00",
        "2023-11-14T22:15:00.000000+00:00",
    )
    assert a["last_metrics"]
    expected = {"x": list(range(100)), "y": [n / 2 for n in range(100)]}
    assert series_of(server, a["id"]) == {"loss": {"train": expected}}
    assert series_of(server, tasks["b/c"]["id"])["x"]["x"]["x"] == [2**62]
    assert lines_of(server, a["id"]) == ["hi ü"]
    (images,) = server.call("events.debug_images", {"metrics": [{"task": a["id"]}]})["metrics"]
    url = images["iterations"][0]["events"][0]["url"]
    with server.client() as client:
        assert client.get(url).content == png

    assert main(["import", "tensorboard", str(runs), "--project", "old/runs"]) == 0
    assert "runs: 2 found, 0 imported, 2 imported before" in capsys.readouterr().err
    assert tasks_of(server) == tasks
    assert lines_of(server, a["id"]) == ["hi ü"]


def test_what_a_restart_takes_back_is_deleted(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    write_run(
        runs / "a", tfevents.records([*(scalar("x", n, n) for n in range(100)), text("t", 1, "1"), text("t", 60, "2")])
    )
    assert main(["import", "tensorboard", str(runs)]) == 0
    start = message((1, 1.7e9), (2, 50), (7, message((1, 1))))
    write_run(runs / "a", tfevents.records([start, scalar("x", 50, 7), text("t", 50, "3")]), f"{NAME}.later")
    capsys.readouterr()
    for _ in range(2):
        assert main(["import", "tensorboard", str(runs)]) == 1
        assert "missing: 51 overwritten" in capsys.readouterr().err
        task = tasks_of(server)["a"]
        assert series_of(server, task["id"]) == {"x": {"x": {"x": list(range(51)), "y": [*range(50), 7]}}}
        assert lines_of(server, task["id"]) == ["1", "3"]


@pytest.mark.parametrize("requests", [4, 7, 12])
def test_an_import_that_was_killed_goes_on(
    server: Served, environment: dict[str, str], tmp_path: Path, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [one for n in range(400) for one in ([scalar("x/y", n, n)] + [text("t", n, f"line {n}")] * (n % 20 == 0))]
    content = tfevents.records(events)
    for number in range(2):
        write_run(tmp_path / "runs" / str(number), content)
    command = [sys.executable, "-c", KILLED, str(requests), "import", "tensorboard", str(tmp_path / "runs")]
    killed = subprocess.run(command, env=environment, timeout=PATIENCE, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert main(["import", "tensorboard", str(tmp_path / "runs")]) == 0
    tasks = tasks_of(server)
    assert tasks.keys() == {"0", "1"}
    for task in tasks.values():
        assert series_of(server, task["id"]) == {"x": {"y": {"x": list(range(400)), "y": list(range(400))}}}
        assert lines_of(server, task["id"]) == [f"line {n}" for n in range(0, 400, 20)]
        assert task["status"] == "completed"


@pytest.mark.parametrize("requests", [5, 8, 10])
def test_lines_are_not_doubled_after_refused_ones(
    server: Served, environment: dict[str, str], tmp_path: Path, requests: int
) -> None:
    names = ["n" * 2000 if n % 4 == 1 else "t" for n in range(24)]
    events = [text(name, n, f"line {n}") for n, name in enumerate(names)]
    write_run(tmp_path / "runs" / "a", tfevents.records(events))
    command = [sys.executable, "-c", KILLED, str(requests), "import", "tensorboard", str(tmp_path / "runs")]
    killed = subprocess.run(command, env=environment, timeout=PATIENCE, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    expected = [f"line {n}" for n in range(24) if n % 4 != 1]
    for more in ([], ["--files"]):
        main(["import", "tensorboard", str(tmp_path / "runs"), *more])
        assert lines_of(server, tasks_of(server)["a"]["id"]) == expected


def test_runs_are_followed_while_they_grow(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    command = [sys.executable, "-m", "apiserver", "import", "tensorboard", str(runs), "--follow"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as following:
        try:
            write_run(runs / "a", tfevents.records([scalar("x", 1, 1), text("t", 1, "one")]))
            wait_for(lambda: "a" in tasks_of(server) and len(lines_of(server, tasks_of(server)["a"]["id"])) == 1)
            task = tasks_of(server)["a"]
            assert task["status"] == "in_progress"
            last = record(scalar("x", 3, 3))
            with (runs / "a" / NAME).open("ab") as file:
                file.write(record(text("t", 2, "two")) + record(scalar("x", 2, 2)) + last[:20])
                file.flush()
                wait_for(lambda: series_of(server, task["id"])["x"]["x"]["x"] == [1, 2])
                file.write(last[20:])
            write_run(runs / "b", tfevents.records([scalar("y", 1, 1)]))
            wait_for(lambda: series_of(server, task["id"])["x"]["x"]["x"] == [1, 2, 3] and "b" in tasks_of(server))
            with (runs / "a" / NAME).open("ab") as file:
                file.write(record(scalar("x", 4, 4)))
            # It is taken by a later look than the run b, so that look has ended.
            wait_for(lambda: series_of(server, task["id"])["x"]["x"]["x"] == [1, 2, 3, 4])
            assert lines_of(server, task["id"]) == ["one", "two"]
        finally:
            following.send_signal(signal.SIGINT)
        assert following.stderr is not None
        said = following.stderr.read()
    assert following.returncode == 0, said
    assert "runs: 2 found, 2 imported, 0 imported before\n" in said, "each counts once, however often it was looked at"
    assert main(["import", "tensorboard", str(runs)]) == 0
    assert tasks_of(server)["a"]["status"] == "completed"


def test_what_was_imported_stays_for_as_long_as_what_is_new(
    server: Served,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A table of 2024, and retention: today, 89 days later, and 91 days later."""
    write_run(
        tmp_path, b"task,iter,timestamp,loss\nold,1,2024-03-01T08:00:00Z,1\nold,2,2024-03-01T08:01:00Z,2\n", "t.csv"
    )
    assert main(["import", "table", str(tmp_path / "t.csv")]) == 0
    (task,) = tasks_of(server).values()
    assert task["created"] < "2024-03-02"
    server.stop()
    capsys.readouterr()
    rules, of_data = json.dumps([{"types": ["scalars"], "keep": "90 d"}]), ["--data", str(server.data)]
    now = now_ms()
    for days, events in ((0, 0), (89, 0), (91, 2)):
        monkeypatch.setattr("apiserver.common.times.now_ms", lambda days=days: now + days * 86_400_000)
        monkeypatch.setattr(deleting, "now_ms", lambda days=days: now + days * 86_400_000)
        of_tasks = f"{events} events of {'1 task' if events else '0 tasks'}"
        assert main(["retention", *of_data, "--retention", rules, "--dry-run"]) == 0
        assert f"would be deleted: {of_tasks}" in capsys.readouterr().out
        assert main(["retention", *of_data, "--retention", rules]) == 0
        assert f"deleted: {of_tasks}" in capsys.readouterr().out


def test_what_is_broken_is_named_and_all_else_is_taken(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    write_run(runs / "good", tfevents.records([scalar("x", 1, 1), message((1, 1.0), (4, b"graph"))]))
    write_run(runs / "bad", tfevents.records([scalar("x", 1, 1)]) + b"not a record at all")
    long = "n" * 2000
    write_run(runs / "long", tfevents.records([scalar(long, 1, 1), scalar("x", 1, 1)]))
    assert main(["import", "tensorboard", str(runs)]) == 1
    said = capsys.readouterr().err
    assert f"problem: run bad: {NAME}: from byte " in said
    assert f"not mapped: 1 × graph (good: {NAME})" in said
    assert "missing: 1 broken, 1 no place, 1 refused" in said
    assert "longer than 1024 bytes" in said
    tasks = tasks_of(server)
    assert tasks.keys() == {"good", "bad", "long"}
    assert all("x" in series_of(server, task["id"]) for task in tasks.values())

    server.call("tasks.completed", {"task": tasks["good"]["id"], "publish": True, "force": True})
    write_run(runs / "good", tfevents.records([scalar("x", 1, 1), scalar("x", 2, 2)]))
    assert main(["import", "tensorboard", str(runs)]) == 1
    assert "problem: " in capsys.readouterr().err


def test_what_is_missing_is_told_by_each_import_until_it_is_there(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, report = tmp_path / "runs", tmp_path / "report.json"
    again = [scalar("x", step, value) for step, value in ((1, 1), (2, 2), (2, 2.5), (3, 3), (3, 3))]
    long = "n" * 2000
    write_run(runs / "a", tfevents.records([*again, scalar(long, 1, 1), message((1, 1.0), (4, b"graph"))]))
    said = []
    for taken in (1, 0):
        assert main(["import", "tensorboard", str(runs), "--report", str(report)]) == 1
        said.append(capsys.readouterr().err)
        assert f"runs: 1 found, {taken} imported, {1 - taken} imported before" in said[-1]
        assert "missing: 1 no place, 1 overwritten, 1 refused" in said[-1]
        assert "problem: run a: series x/x: a later point has the same step\n" in said[-1]
        told = json.loads(report.read_bytes())
        assert (told["complete"], told["failed"]) == (False, "")
        assert told["by_reason"] == {"no place": 1, "overwritten": 1, "refused": 1}
        [graph] = [one for one in told["missing"] if one["reason"] == "no place"]
        assert (graph["of"].startswith("a: "), graph["cause"], graph["count"]) == (True, "graph", 1)
    assert "note: run a: series x/x: 1 point came twice, equal in step and value" in said[0]
    assert "points: 6 found, 3 imported, 0 imported before, 3 not imported" in said[0]
    assert main(["import", "tensorboard", str(tmp_path / "none"), "--report", str(report)]) == 2
    assert "there is no folder" in json.loads(report.read_bytes())["failed"]


def test_a_run_from_below_too_many_projects_says_so(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", record(scalar("x", 1, 0.5)))
    for _ in range(2):
        assert main(["import", "tensorboard", str(tmp_path), "--project", "/a/b//c/d/e/f/g/h/i/j/k/l"]) == 1
        assert "missing: 1 over a limit" in capsys.readouterr().err
    (task,) = server.call("tasks.get_all_ex", {"only_fields": ["project.name"]})["tasks"]
    assert task["project"]["name"] == "a/b/c/d/e/f/g/h/i/j.k.l"


def test_what_cannot_begin(
    server: Served,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["import", "tensorboard", str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    monkeypatch.setenv("CLEARML_API_SECRET_KEY", "wrong")
    assert main(["import", "tensorboard", str(tmp_path)]) == 2
    assert "refuses this access key" in capsys.readouterr().err
    monkeypatch.delenv("CLEARML_API_SECRET_KEY")
    assert main(["import", "tensorboard", str(tmp_path)]) == 2
    assert "set CLEARML_API_ACCESS_KEY" in capsys.readouterr().err
    credentials = f'{{ access_key: "{server.key}", secret_key: "{server.secret}" }}'
    conf = f'api {{ api_server: "{server.api_url}", credentials {credentials} }}'
    (tmp_path / "clearml.conf").write_text(conf)
    for name in ("CLEARML_API_ACCESS_KEY", "CLEARML_API_HOST", "CLEARML_FILES_HOST"):
        monkeypatch.delenv(name)
    write_run(tmp_path / "run", record(scalar("x", 1, 0.5)))
    assert main(["import", "tensorboard", str(tmp_path)]) == 0
    monkeypatch.setenv("CLEARML_CONFIG_FILE", str(tmp_path / "clearml.conf"))
    assert main(["import", "tensorboard", str(tmp_path), "--server", "ftp://x"]) == 2
    assert main(["import", "tensorboard", str(tmp_path), "--server", "http://127.0.0.1:9"]) == 2
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "looked_for"),
    [
        ("tensorboard", "event files"),
        ("mlflow", "runs"),
        ("wandb", ".wandb files"),
        ("neptune", "files named <run>_part_<n>.parquet"),
        ("export", "tasks"),
        ("table", "points"),
    ],
)
def test_an_import_that_finds_nothing_fails(
    source: str, looked_for: str, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "nothing"
    if source == "table":
        place.write_text("")
    else:
        (place / "tasks").mkdir(parents=True)
        (place / "notes.txt").write_text("no run")
    assert main(["import", source, str(place)]) == 2
    assert f"no {looked_for} found in '{place}'" in capsys.readouterr().err


def test_the_help_names_each_source_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "import points from a table: CSV, NDJSON or Parquet" in said
    assert "import runs from TensorBoard's event files" in said
