"""`apiserver export`: what it writes is imported again as it was; again, interrupted, and without what it needs."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.transfer.importing.runs.server import Readable
from apiserver.transfer.importing.runs.server import Server as Runs
from tests.harness import Served, served
from tests.transfer.importing.runs.test_taking import environment, lines_of, tasks_of

__all__ = ["environment"]

SCALAR, VECTOR, IMAGE = "training_stats_scalar", "training_stats_vector", "training_debug_image"
T0 = 1_700_000_000_000


def fill(server: Served, files_url: str) -> str:
    """A project with a task that has something of everything; the task's id."""
    about = {"description": "what\nfor", "tags": ["p"], "system_tags": ["q"], "default_output_destination": "s3://b/p"}
    project = server.call("projects.create", {"name": "team/a (b)", **about})["id"]
    params = {"value": "0.1", "type": "float", "description": "how\nfast"}
    content = {
        "name": "one ü",
        "type": "testing",
        "project": project,
        "tags": ["t"],
        "system_tags": ["development"],
        "comment": "c",
        "hyperparams": {"Args": {"l.r": params, "empty": {"value": ""}}, "se.c$": {"n": {"value": "x" * 9000}}},
        "configuration": {"co.nf": {"value": "v: 1", "type": "yaml", "description": "d"}},
        "runtime": {"gpu.type": "A100", "cpu_cores": "8"},
        "container": {"image": "python:3.12", "arguments": "--ipc=host"},
        "script": {
            **{"repository": "git@host:r.git", "branch": "main", "version_num": "c0ffee", "entry_point": "t.py"},
            **{"working_dir": ".", "diff": "+a\n-b", "requirements": {"pip": "numpy == 2.0"}},
        },
        "execution": {"framework": "PyTorch", "model_labels": {"cat": 1, "d.g": 2}},
        "output_dest": "s3://bucket/out",
    }
    task: str = server.call("tasks.create", content)["id"]
    parent = server.call("tasks.create", {"name": "parent", "type": "controller", "project": project})["id"]
    server.call("tasks.edit", {"task": task, "parent": parent})
    server.call("tasks.started", {"task": task})
    with server.client() as client:
        for name in ("picture.png", "data/x%20%231.txt", "net.bin"):
            client.put(f"{files_url}/team/{name}", content=name.encode()).raise_for_status()
    artifact = {
        **{"key": "data", "type": "text", "uri": f"{files_url}/team/data/x%20%231.txt", "content_size": 17},
        **{"hash": sha256(b"data/x%20%231.txt").hexdigest(), "timestamp": 1_700_000_000, "display_data": [["a", "1"]]},
        "type_data": {"preview": "first\nlines", "content_type": "text/plain", "data_hash": "d"},
    }
    elsewhere = {"key": "far", "type": "custom", "mode": "input", "uri": "s3://bucket/far.bin", "hash": "h"}
    server.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact, elsewhere]})
    add_models(server, task, project, files_url)
    events: list[dict[str, Any]] = [
        {"type": SCALAR, "metric": "m", "variant": f"v{n % 2}", "iter": n - 5, "value": n / 3} for n in range(200)
    ]
    for n, event in enumerate(events):
        event |= {"worker": f"gpu-{n % 3}"} if n % 4 else {}
        event |= {"x_axis_label": "epochs"} if event["variant"] == "v0" else {}
    odd = {"nan": "NaN", "inf": "inf", "negative": "-inf", "zero": -0.0}
    events += [{"type": SCALAR, "metric": "odd", "variant": name, "iter": 2**62, "value": odd[name]} for name in odd]
    events += [{"type": "log", "msg": f"line {n} ü", "level": "info", "worker": f"w{n % 3}"} for n in range(50)]
    events += [{"type": "log", "msg": "two\nlines\n", "level": "error", "iter": 3, "metric": "m", "rank": {"of": [4]}}]
    events += [{"type": "plot", "metric": "p", "variant": "v", "iter": n, "plot_str": '{"data": []}'} for n in range(3)]
    events += [{"type": VECTOR, "metric": "vec", "variant": "v", "iter": 1, "values": [1.0, 2.5]}]
    image = {"type": IMAGE, "metric": "i", "variant": "v", "iter": 1, "worker": "w2", "caption": "c"}
    events += [{**image, "url": f"{files_url}/team/picture.png"}]
    lines = [json.dumps({"task": task, "timestamp": T0 + n // 2, **event}) for n, event in enumerate(events)]
    with server.client() as client:
        client.post("/events.add_batch", content="\n".join(lines)).raise_for_status()
    server.call("tasks.update", {"task": task, "output__error": "it\nfailed"})
    server.call("tasks.completed", {"task": task, "status_reason": "done", "status_message": "all of it"})
    return task


def add_models(server: Served, task: str, project: str, files_url: str) -> None:
    """A model that the task made, and one that it started from."""
    about = {
        **{"name": "net", "uri": f"{files_url}/team/net.bin", "framework": "PyTorch", "comment": "good", "tags": ["m"]},
        **{"project": project, "task": task, "labels": {"cat": 1}, "design": {"design": "layers: 3"}, "ready": False},
        "metadata": [{"key": "k.1", "type": "int", "value": "1"}],
    }
    made = server.call("models.create", about)["id"]
    server.call("tasks.add_or_update_model", {"task": task, "name": "best", "type": "output", "model": made})
    base = server.call("models.create", {"name": "base", "uri": "s3://bucket/base.bin"})["id"]
    server.call("tasks.add_or_update_model", {"task": task, "name": "from", "type": "input", "model": base})


#: Fields that say who or when on this server.
OWN = ("id", "company", "user", "created", "last_update", "last_change", "last_changed_by", "metric_stats")


def document(server: Served, task: str) -> dict[str, Any]:
    """The task's document, with names and contents in place of ids and addresses."""
    found = server.call("tasks.get_by_id", {"task": task})["task"]
    made = {name: value for name, value in found.items() if name not in OWN} | {"created": found["created"]}
    made["runtime"] = {name: value for name, value in found["runtime"].items() if not name.startswith("import")}
    made["project"] = about_project(server, found["project"])
    if found.get("parent"):
        made["parent"] = document(server, found["parent"])
    for artifact in found["execution"]["artifacts"]:
        artifact["uri"] = content_of(server, artifact["uri"])
    made["models"] = {
        kind: [{"name": one["name"], **about_model(server, one["model"])} for one in items]
        for kind, items in found["models"].items()
    }
    made["last_metrics"] = {
        m: {v: {**one, "count": 0} for v, one in of.items()} for m, of in made["last_metrics"].items()
    }
    return made


def about_model(server: Served, id: str) -> dict[str, Any]:
    (model,) = server.call("models.get_all_ex", {"id": [id]})["models"]
    made = {name: value for name, value in model.items() if name not in (*OWN, "task", "project")}
    made["metadata"] = {name: one for name, one in model["metadata"].items() if name != "imported_from"}
    named = {name: (model.get(name) or {}).get("name") for name in ("task", "project")}
    return {**made, **named, "created": model["created"], "uri": content_of(server, model["uri"])}


def about_project(server: Served, id: str) -> dict[str, Any]:
    project = server.call("projects.get_by_id", {"project": id})["project"]
    return {
        name: project.get(name) for name in ("name", "description", "tags", "system_tags", "default_output_destination")
    }


def content_of(server: Served, url: str) -> str:
    """The content of a file on the server; any other address as it is."""
    if url.startswith("s3:"):
        return url
    with server.client() as client:
        return client.get(url).raise_for_status().text


def seen(server: Served, task: str) -> dict[str, Any]:
    """All of a task that an export keeps, but for ids and times of receipt."""
    with server.client() as client:
        points = client.get(f"/data/tasks/{task}/scalars.csv?workers=1").raise_for_status().text
    log = server.call("events.get_task_log", {"task": task, "batch_size": 500, "navigate_earlier": False})["events"]
    events = [log]
    for type in ("plot", VECTOR):
        asked = {"task": task, "event_type": type, "batch_size": 500}
        events.append(server.call("events.get_task_events", asked)["events"])
    own = ("@timestamp", "task")
    plain = [[{name: value for name, value in one.items() if name not in own} for one in some] for some in events]
    (images,) = server.call("events.debug_images", {"metrics": [{"task": task}]})["metrics"]
    (image,) = images["iterations"][0]["events"]
    shown = {name: value for name, value in image.items() if name not in own}
    picture = shown | {"url": content_of(server, image["url"])}
    return {**document(server, task), "points": points, "events": plain, "picture": picture}


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
    assert "tasks: 2 found, 2 exported" in capsys.readouterr().err
    assert main(command) == 0
    assert "tasks: 2 found, 0 exported, 2 exported before" in capsys.readouterr().err
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
            found = tasks_of(other)["one ü"]
            assert seen(other, found["id"]) == before
        assert "runs: 2 found, 0 imported, 2 imported before" in capsys.readouterr().err


def imported(server: Served, task: str) -> str:
    """The id of the imported one of two tasks of the same name."""
    found = server.call("tasks.get_all", {"name": "^one ü$"})["tasks"]
    (id,) = (one["id"] for one in found if one["id"] != task)
    assert isinstance(id, str)
    return id


def again(seen: dict[str, Any]) -> Any:
    """What is seen of a task that was imported into the project "again"."""
    return json.loads(json.dumps(seen).replace('"team/a (b)"', '"again/team/a (b)"'))


def test_an_export_from_engines_is_imported_as_it_was(
    server: Served,
    environment: dict[str, str],
    engines: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = str(tmp_path / "export")
    with served(tmp_path / "on engines", **engines) as source:
        task = fill(source, source.files_url)
        before = seen(source, task)
        monkeypatch.setenv("CLEARML_API_HOST", source.api_url)
        monkeypatch.setenv("CLEARML_FILES_HOST", source.files_url)
        assert main(["export", "team", "--to", folder, "--files"]) == 0
        assert main(["import", "export", folder, "--files", "--project", "again"]) == 0
        assert seen(source, imported(source, task)) == again(before)
    monkeypatch.setenv("CLEARML_API_HOST", server.api_url)
    monkeypatch.setenv("CLEARML_FILES_HOST", server.files_url)
    assert main(["import", "export", folder, "--files"]) == 0
    assert seen(server, tasks_of(server)["one ü"]["id"]) == before


def test_without_files_artifacts_and_models_stay_where_they_are(
    server: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    task = fill(server, server.files_url)
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    before = seen(server, task)
    for with_files in ([], ["--files"]):
        assert main(["import", "export", str(tmp_path / "export"), "--project", "again", *with_files]) == 0
        found = server.call("tasks.get_by_id", {"task": imported(server, task)})["task"]
        uris = [one["uri"] for one in found["execution"]["artifacts"]]
        assert (f"{server.files_url}/team/data/x%20%231.txt" in uris) == (not with_files)
        assert seen(server, found["id"]) == again(before)


def test_files_below_the_port_of_the_api_are_imported(
    server: Served, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARML_FILES_HOST", f"{server.api_url}/files")
    task = fill(server, f"{server.api_url}/files")
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    assert main(["import", "export", str(tmp_path / "export"), "--files", "--project", "again"]) == 0
    assert seen(server, imported(server, task)) == again(seen(server, task))


def test_files_that_are_not_in_the_export_are_named(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(server, server.files_url)
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    shutil.rmtree(tmp_path / "export" / "files")
    assert main(["import", "export", str(tmp_path / "export"), "--files"]) == 1
    assert capsys.readouterr().err.count("its file is not in the export") == 3


def test_an_artifact_that_has_changed_is_imported_again(
    server: Served, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = fill(server, server.files_url)
    assert main(["export", "team", "--to", str(tmp_path / "export"), "--files"]) == 0
    artifact = tmp_path / "export" / "files" / "team" / "data" / "x #1.txt"
    about = tmp_path / "export" / "tasks" / task / "task.json"
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
        found = server.call("tasks.get_by_id", {"task": imported(server, task)})["task"]
        (entry,) = (one for one in found["execution"]["artifacts"] if one["key"] == "data")
        with server.client() as client:
            assert client.get(entry["uri"]).content == content
        assert puts.count(entry["uri"]) == uploads
        assert lines_of(server, found["id"]) == [*(f"line {n} ü" for n in range(50)), "two\nlines\n"]


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


def test_a_report_shows_the_imported_runs(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    project = server.call("projects.create", {"name": "team", "description": ""})["id"]
    run = server.call("tasks.create", {"name": "run", "type": "training", "project": project})["id"]
    far = "0123456789abcdef0123456789abcdef"
    page = "# Runs\n![](/projects/*/experiments/{0}) ![](/x?tasks=a%2c{0}) " + far
    about = {"name": "report", "project": project, "report": page.format(run)}
    server.call("reports.create", about)
    assert main(["export", "team", "--to", str(tmp_path / "export")]) == 0
    assert main(["import", "export", str(tmp_path / "export"), "--project", "again"]) == 0
    found = server.call("tasks.get_all", {"name": "^run$", "only_fields": ["id"]})["tasks"]
    (new,) = (one["id"] for one in found if one["id"] != run)
    asked = {"name": "^report$", "search_hidden": True, "only_fields": ["report"]}
    pages = {one["report"] for one in server.call("tasks.get_all", asked)["tasks"]}
    assert pages == {page.format(run), page.format(new)}


def test_a_task_belongs_to_its_user_again(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    company = server.call("users.get_current_user")["user"]["company"]["id"]
    bob = server.call("auth.create_user", {"name": "bob", "email": "bob@x.example", "company": company})["id"]
    server.call("tasks.import_run", {"source": "x", "name": "of bob", "project_name": "team", "user_name": "bob"})
    assert main(["export", "team", "--to", str(tmp_path / "export")]) == 0
    assert main(["import", "export", str(tmp_path / "export"), "--project", "again"]) == 0
    found = server.call("tasks.get_all", {"name": "^of bob$", "only_fields": ["user"]})["tasks"]
    assert [one["user"] for one in found] == [bob, bob]


def test_what_is_missing_or_damaged_is_exported_again(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = fill(server, server.files_url)
    folder = tmp_path / "export"
    command = ["export", "team", "--to", str(folder), "--files"]
    assert main(command) == 0
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    of_task = [f"tasks/{task}/scalars.parquet", f"tasks/{task}/events.ndjson"]
    names = [*of_task, "files/team/picture.png", "files/team/data/x #1.txt", "files/team/net.bin"]
    for name in names:
        path = folder / name
        for state, spoil in (("missing", path.unlink), ("damaged", lambda path=path: path.write_bytes(b"other"))):
            spoil()
            capsys.readouterr()
            assert main(command) == 0
            said = capsys.readouterr().err
            assert f"note: {state}: {name} of the task one ü: it is exported again\n" in said
            assert "tasks: 2 found, 1 exported, 1 exported before" in said
            assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == whole
    assert main(command) == 0
    assert "tasks: 2 found, 0 exported, 2 exported before" in capsys.readouterr().err


def test_a_file_that_was_not_exported_is_named_each_time(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(server, server.files_url)
    with server.client() as client:
        client.delete(f"{server.files_url}/team/net.bin?force=1").raise_for_status()
        command = ["export", "team", "--to", str(tmp_path / "export"), "--files"]
        for _ in range(2):
            assert main(command) == 1
            said = capsys.readouterr().err
            assert "problem: file /team/net.bin: " in said
            assert '{"' not in said
        client.put(f"{server.files_url}/team/net.bin", content=b"new").raise_for_status()
        assert main(command) == 0
    assert (tmp_path / "export" / "files" / "team" / "net.bin").read_bytes() == b"new"


def test_a_damaged_file_that_the_server_lost_is_never_taken_for_whole(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(server, server.files_url)
    command = ["export", "team", "--to", str(tmp_path / "export"), "--files"]
    assert main(command) == 0
    (tmp_path / "export" / "files" / "team" / "picture.png").write_bytes(b"damaged")
    with server.client() as client:
        client.delete(f"{server.files_url}/team/picture.png").raise_for_status()
    for _ in range(3):
        capsys.readouterr()
        assert main(command) == 1
        assert "problem: file /team/picture.png: " in capsys.readouterr().err


def test_an_artifact_that_was_uploaded_anew_is_exported_anew(
    server: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    task = fill(server, server.files_url)
    command = ["export", "team", "--to", str(tmp_path / "export"), "--files"]
    assert main(command) == 0
    uri = f"{server.files_url}/team/data/x%20%231.txt"
    with server.client() as client:
        client.put(uri, content=b"new").raise_for_status()
    artifact = {"key": "data", "type": "text", "uri": uri, "hash": sha256(b"new").hexdigest()}
    server.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact], "force": True})
    assert main(command) == 0
    assert (tmp_path / "export" / "files" / "team" / "data" / "x #1.txt").read_bytes() == b"new"


def test_a_server_without_parquet_ends_the_export_at_once(
    environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arro3.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with served(tmp_path / "without", cold=True, variables={"PYTHONPATH": path}) as without:
        monkeypatch.setenv("CLEARML_API_HOST", without.api_url)
        project = without.call("projects.create", {"name": "team"})["id"]
        for name in ("one", "other"):
            without.call("tasks.create", {"name": name, "type": "training", "project": project})
        assert main(["export", "team", "--to", str(tmp_path / "export")]) == 1
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith("apiserver: This server cannot make .parquet without an optional package. ")
    assert "'make parquet' (or pip install '.[parquet]')" in said


def test_what_cannot_be_exported(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "none", "--to", str(tmp_path / "x")]) == 1
    assert "there is no project 'none'" in capsys.readouterr().err
    assert main(["import", "export", str(tmp_path)]) == 2
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
        "format": 1,
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
    (tmp_path / "export" / "tasks" / "c").mkdir()
    newer = {**about, "id": "c", "name": "other", "format": 2}
    (tmp_path / "export" / "tasks" / "c" / "task.json").write_text(json.dumps(newer))
    assert main(["import", "export", str(tmp_path / "export"), "--files"]) == 1
    said = capsys.readouterr().err
    assert said.count("problem: ") == 6, said
    assert "its task.json has format 2 of exports, this version reads up to 1" in said
    assert "other" not in tasks_of(server)
    assert [one["uri"] for one in tasks_of(server)["one"]["execution"]["artifacts"]] == uris
