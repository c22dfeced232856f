"""`apiserver export`: what it writes is imported again as it was; again, interrupted, and without what it needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.importing.runs.server import Readable
from apiserver.importing.runs.server import Server as Runs
from tests.harness import Served, served
from tests.importing.runs.test_taking import environment, lines_of, tasks_of

__all__ = ["environment"]

SCALAR, VECTOR, IMAGE = "training_stats_scalar", "training_stats_vector", "training_debug_image"
T0 = 1_700_000_000_000


def fill(server: Served, files_url: str) -> str:
    """A project with a task that has something of everything; the task's id."""
    project = server.call("projects.create", {"name": "team/a (b)", "description": ""})["id"]
    params = {"Args": {"l.r": {"section": "Args", "name": "l.r", "value": "0.1", "type": "float"}}}
    content = {
        "name": "one ü",
        "type": "testing",
        "project": project,
        "tags": ["t"],
        "comment": "c",
        "hyperparams": params,
    }
    task: str = server.call("tasks.create", {**content, "configuration": {"conf": {"value": "v"}}})["id"]
    server.call("tasks.started", {"task": task})
    with server.client() as client:
        for name in ("picture.png", "data/x%20%231.txt"):
            client.put(f"{files_url}/team/{name}", content=name.encode()).raise_for_status()
    artifact = {"key": "data", "type": "text", "uri": f"{files_url}/team/data/x%20%231.txt", "content_size": 10}
    server.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact]})
    events: list[dict[str, Any]] = [
        {"type": SCALAR, "metric": "m", "variant": f"v{n % 2}", "iter": n - 5, "value": n / 3} for n in range(200)
    ]
    odd = {"nan": "NaN", "inf": "inf", "negative": "-inf", "zero": -0.0}
    events += [{"type": SCALAR, "metric": "odd", "variant": name, "iter": 2**62, "value": odd[name]} for name in odd]
    events += [{"type": "log", "msg": f"line {n} ü", "level": "info", "worker": "w"} for n in range(50)]
    events += [{"type": "plot", "metric": "p", "variant": "v", "iter": n, "plot_str": '{"data": []}'} for n in range(3)]
    events += [{"type": VECTOR, "metric": "vec", "variant": "v", "iter": 1, "values": [1.0, 2.5]}]
    events += [{"type": IMAGE, "metric": "i", "variant": "v", "iter": 1, "url": f"{files_url}/team/picture.png"}]
    lines = [json.dumps({"task": task, "timestamp": T0 + n // 2, **event}) for n, event in enumerate(events)]
    with server.client() as client:
        client.post("/events.add_batch", content="\n".join(lines)).raise_for_status()
    server.call("tasks.completed", {"task": task})
    return task


def seen(server: Served, task: str) -> dict[str, Any]:
    """All of a task that an export keeps, but for ids and times of receipt."""
    with server.client() as client:
        points = client.get(f"/data/tasks/{task}/scalars.csv").raise_for_status().text
    log = server.call("events.get_task_log", {"task": task, "batch_size": 500, "navigate_earlier": False})["events"]
    events = [log]
    for type in ("plot", VECTOR):
        asked = {"task": task, "event_type": type, "batch_size": 500}
        events.append(server.call("events.get_task_events", asked)["events"])
    own = ("@timestamp", "task")
    plain = [[{name: value for name, value in one.items() if name not in own} for one in some] for some in events]
    found = server.call("tasks.get_by_id", {"task": task})["task"]
    kept = ("name", "status", "tags", "comment", "started", "completed", "configuration", "last_iteration")
    params = {s: {n: one["value"] for n, one in of.items()} for s, of in found["hyperparams"].items()}
    project = server.call("projects.get_by_id", {"project": found["project"]})["project"]["name"]
    last = {m: {v: {**one, "count": 0} for v, one in of.items()} for m, of in found["last_metrics"].items()}
    (images,) = server.call("events.debug_images", {"metrics": [{"task": task}]})["metrics"]
    (image,) = images["iterations"][0]["events"]
    (artifact,) = found["execution"]["artifacts"]
    with server.client() as client:
        files = [client.get(url).content for url in (image["url"], artifact["uri"])]
    about = {name: found.get(name) for name in kept}
    return {
        **about,
        "params": params,
        "project": project,
        "points": points,
        "events": plain,
        "files": files,
        "last": last,
    }


def test_an_export_is_imported_as_it_was(
    server: Served,
    environment: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = fill(server, server.files_url)
    folder = tmp_path / "export"
    command = ["export", "team/a (b)", "--to", str(folder), "--files"]
    assert main(command) == 0
    assert "tasks: 1 found, 1 exported" in capsys.readouterr().err
    assert main(command) == 0
    assert "tasks: 1 found, 0 exported, 1 exported before" in capsys.readouterr().err
    # What was interrupted goes on.
    (folder / "tasks" / task / "task.json").unlink()
    (folder / "tasks" / task / "scalars.parquet").write_bytes(b"")
    [team] = server.call("projects.get_all", {"name": "^team$"})["projects"]
    assert main(["export", team["id"], "--to", str(folder), "--files"]) == 0
    before = seen(server, task)
    with served(tmp_path / "other") as other:
        monkeypatch.setenv("CLEARML_API_HOST", other.api_url)
        monkeypatch.setenv("CLEARML_FILES_HOST", other.files_url)
        for _ in range(2):
            assert main(["import", "export", str(folder), "--files"]) == 0
            (found,) = tasks_of(other).values()
            assert seen(other, found["id"]) == before
        assert "runs: 1 found, 0 imported, 1 imported before" in capsys.readouterr().err


def test_files_below_the_port_of_the_api_are_imported(
    server: Served, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARML_FILES_HOST", f"{server.api_url}/files")
    task = fill(server, f"{server.api_url}/files")
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    assert main(["import", "export", str(tmp_path / "export"), "--files", "--project", "again"]) == 0
    (found,) = (one for one in server.call("tasks.get_all", {})["tasks"] if one["id"] != task)
    before = seen(server, task)
    assert seen(server, found["id"]) == {**before, "project": "again/team/a (b)"}


def test_files_that_are_not_in_the_export_are_named(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(server, server.files_url)
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    shutil.rmtree(tmp_path / "export" / "files")
    assert main(["import", "export", str(tmp_path / "export"), "--files"]) == 1
    assert capsys.readouterr().err.count("its file is not in the export") == 2


def test_an_artifact_that_has_changed_is_imported_again(
    server: Served, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server, server.files_url)
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    artifact = tmp_path / "export" / "files" / "team" / "data" / "x #1.txt"
    about = next((tmp_path / "export" / "tasks").glob("*/task.json"))
    puts: list[str] = []
    put_file = Runs.put_file

    def counted(self: Runs, url: str, content: Readable, size: int) -> None:
        puts.append(url)
        put_file(self, url, content, size)

    monkeypatch.setattr(Runs, "put_file", counted)
    for number, (content, uploads) in enumerate(((b"first", 1), (b"other", 1), (b"other", 0))):
        artifact.write_bytes(content)
        about.write_text(json.dumps({**json.loads(about.read_text()), "last_change": f"{number}"}))
        puts.clear()
        assert main(["import", "export", str(tmp_path / "export"), "--files", "--project", "again"]) == 0
        (found,) = (one for one in server.call("tasks.get_all", {})["tasks"] if one["runtime"])
        (entry,) = found["execution"]["artifacts"]
        with server.client() as client:
            assert client.get(entry["uri"]).content == content
        assert puts.count(entry["uri"]) == uploads
        assert lines_of(server, found["id"]) == [f"line {n} ü" for n in range(50)]


def test_statuses_and_system_tags_come_back(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = server.call("projects.create", {"name": "team", "description": ""})["id"]
    statuses = ("created", "queued", "in_progress", "stopped", "closed", "failed", "completed", "published", "unknown")
    for status in statuses:
        about = {"name": status, "type": "training", "project": project, "system_tags": ["development", "archived"]}
        task = server.call("tasks.create", about)["id"]
        server.call("events.add", {"task": task, "type": "log", "timestamp": T0, "msg": "hi"})
        server.call("tasks.edit", {"task": task, "status": status, "force": True})
    assert main(["export", "team", "--to", str(tmp_path / "export")]) == 0
    for _ in range(2):
        assert main(["import", "export", str(tmp_path / "export"), "--project", "again"]) == 0
        found = [one for one in server.call("tasks.get_all", {})["tasks"] if one["project"] != project]
        became = {one["name"]: one["status"] for one in found}
        assert became == {**dict(zip(statuses, statuses, strict=True)), "queued": "created", "unknown": "created"}
        assert all(sorted(one["system_tags"]) == ["archived", "development"] for one in found)
        assert all(lines_of(server, one["id"]) == ["hi"] for one in found)


def test_what_cannot_be_exported(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "none", "--to", str(tmp_path / "x")]) == 1
    assert "there is no project 'none'" in capsys.readouterr().err
    assert main(["import", "export", str(tmp_path)]) == 1
    assert "is no folder of `apiserver export`" in capsys.readouterr().err


def test_a_hostile_export(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "export" / "tasks" / "a"
    folder.mkdir(parents=True)
    uris = [
        "http://x/../../secret",
        "http://x/a/../../../secret",
        f"http://x{tmp_path}/secret",
        "file:///etc/passwd",
        "x",
    ]
    artifacts = [{"key": str(n), "uri": uri} for n, uri in enumerate(uris)]
    about = {
        "server": "s",
        "files_url": "http://x",
        "id": "a",
        "name": "one",
        "status": "completed",
        "execution": {"artifacts": artifacts},
    }
    (folder / "task.json").write_text(json.dumps(about))
    (folder / "scalars.parquet").write_text("no")
    (folder / "events.ndjson").write_text('no\n[1]\n{}\n{"type": "log", "timestamp": 1, "msg": "hi"}\n')
    (tmp_path / "export" / "tasks" / "b").mkdir()
    (tmp_path / "export" / "tasks" / "b" / "task.json").write_text("[]")
    assert main(["import", "export", str(tmp_path / "export"), "--files"]) == 1
    assert capsys.readouterr().err.count("problem: ") == len(uris) + 5
    assert tasks_of(server)["one"]["execution"]["artifacts"] == []
