"""Tasks in the folder of an export, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apiserver.transfer.importing.runs.exported import ExportedTask, ExportFolder
from apiserver.transfer.importing.runs.model import Again, Artifact, Part, Position, Problem

HOST = "http://host:8081"


def parts_of(folder: Path, position: str | None) -> list[Part]:
    (task,) = ExportFolder(folder, None).runs()
    assert isinstance(task, ExportedTask)
    return list(task.parts(position))


def test_files_that_come_into_an_export_later_are_given(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "t"
    folder.mkdir(parents=True)
    about: dict[str, Any] = {
        "format": 1,
        "id": "t",
        "name": "one",
        "status": "completed",
        "server": "http://host:8008",
        "files_url": HOST,
    }
    about |= {"execution": {"artifacts": [{"key": "a", "uri": f"{HOST}/p/a%20b"}]}, "last_change": "now", "files": True}
    about["digests"] = {"files/p/a b": None, "files/../secret": None, "tasks/t/events.ndjson": ""}
    (folder / "task.json").write_text(json.dumps(about))
    (folder / "events.ndjson").touch()
    (tmp_path / "secret").touch()
    *first, position = parts_of(tmp_path, None)
    assert position == Position("now", 1)
    assert "artifact a" in [part.of for part in first if isinstance(part, Problem)]
    assert parts_of(tmp_path, "now") == []

    (tmp_path / "files" / "p").mkdir(parents=True)
    (tmp_path / "files" / "p" / "a b").write_bytes(b"abc")
    again, *parts, position = parts_of(tmp_path, "now")
    assert again == Again()
    assert [part.content.size for part in parts if isinstance(part, Artifact) and part.content] == [3]
    assert isinstance(position, Position)
    assert parts_of(tmp_path, position.text) == []
