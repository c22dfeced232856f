"""A server goes on with what releases kept beside events and documents: signed backups, archives, the audit log…

Each format with a number (`apiserver/stores/formats.py`) has golden data, but those of engines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from arro3.io import read_parquet

from apiserver.operating.doctor.scrub import Scrub
from apiserver.stores import formats
from apiserver.stores.inspection import Finding, Scrubbed
from apiserver.stores.sqlite_files import user_version
from tests.golden import calls
from tests.golden.conftest import Golden
from tests.golden.make import KEY, client_of, later, names, retention, unpack
from tests.golden.test_golden import assert_answers, differences
from tests.harness import run, served


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_a_signed_backup_is_checked_restored_and_added_to_with_its_key(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APISERVER_BACKUP_KEY", KEY)
    run("backup", golden.backup, "--check")
    run("restore", golden.backup, "--data", tmp_path / "new", "--verify")
    with served(tmp_path / "new") as server:
        assert_answers(server, golden.answers["backup"])
    pieces = files_in(golden.backup / "pieces")
    assert "not used" not in run("backup", golden.backup, "--data", tmp_path / "new", "--fast")
    assert "all backups are well" in run("backup", golden.backup, "--check")
    added = files_in(golden.backup / "pieces").items() - pieces.items()
    assert sum(len(content) for _, content in added) < sum(map(len, pieces.values())) / 2  # opening it changed some


def test_a_run_of_retention_that_was_cut_short_is_finished(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it had been killed when all was archived, and nothing deleted: no event is archived twice."""
    archived = files_in(golden.folder / "archive")
    assert {name.rpartition("/")[2].partition("-")[0] for name in archived} >= {"logs", "scalars", "plots"}
    for name in archived:
        path = golden.folder / "archive" / name
        path.rename(path.with_suffix(".going.parquet"))
    set_all(monkeypatch, later(tmp_path))
    deleted = run(*retention(golden.data, golden.folder / "archive"))
    assert len(deleted.splitlines()) >= len(archived)
    assert files_in(golden.folder / "archive") == archived


def test_the_audit_log_goes_on(golden: Golden) -> None:
    log = golden.data / "audit"
    old = log.joinpath("00000001.ndjson").read_bytes()
    checked = run("audit", "--check", "--data", golden.data)
    with served(golden.data):
        pass
    lines = log.joinpath("00000001.ndjson").read_bytes()
    assert lines.startswith(old)
    assert len(lines) > len(old)
    assert run("audit", "--check", "--data", golden.data) != checked


@pytest.mark.anyio
async def test_scrubbing_goes_on(golden: Golden) -> None:
    path = golden.data / "scrub.json"
    known = json.loads(path.read_bytes())

    def step(place: str) -> Scrubbed:
        raise AssertionError("it was not to begin")

    scrub = Scrub(step, path, days=1, requests=lambda: 0)
    scrub.start()
    state = scrub.state
    assert known["place"]
    assert (state.place, state.checked, state.ended) == (known["place"], known["checked"], known["ended"])
    assert (state.findings, state.before) == tuple(
        [Finding(*one) for one in known[name]] for name in ("findings", "before")
    )
    await scrub.close()
    assert json.loads(path.read_bytes()) == known


def test_secrets_stay(golden: Golden) -> None:
    secret = (golden.data / "token_secret").read_bytes()
    with served(golden.data):
        pass
    assert (golden.data / "token_secret").read_bytes() == secret


def test_an_export_is_imported(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = golden.folder / "export"
    recorded = golden.answers["backup"]["calls"]
    (tasks,) = (
        call["answer"]["tasks"] for call in recorded if "id" in call["request"] and "get_all" in call["endpoint"]
    )
    with served(tmp_path / "new") as server:
        set_all(monkeypatch, client_of(server))
        run("import", "export", export)
        ids = {task["name"]: task["id"] for task in server.call("tasks.get_all", {})["tasks"]}
        for task in tasks:
            (call,) = (
                call
                for call in recorded
                if call["request"].get("task") == task["id"] and call["request"].get("samples") == 100
            )
            asked = {**call, "request": {**call["request"], "task": ids[task["name"]]}}
            assert differences(call["answer"], calls.answer(server, asked), 1e-9) == []


# --- each format has golden data --------------------------------------------------------------------


def in_json(path: Path) -> int:
    return int(json.loads(path.read_bytes())["format"])


def in_head(path: Path) -> int:
    return int(re.match(rb"EV[A-Z]+(\d+)", path.read_bytes()[:8])[1])  # type: ignore[index]


def in_metadata(path: Path) -> int:
    return int(read_parquet(path).schema.metadata_str["format"])


#: By format: what of a golden folder has it, and how its number is read; without, the number is in formats.json.
HELD: dict[str, tuple[str, Callable[[Path], int | None] | None]] = {
    "folder": ("data", None),
    "events": ("data/events/events.db", user_version),
    "journal": ("data/events/journal-*.log", in_head),
    "documents": ("data/documents.db", user_version),
    "files": ("data/files/*/*", None),
    "secrets": ("data/token_secret", None),
    "audit": ("data/audit/*.ndjson", None),
    "scrub": ("data/scrub.json", None),
    "manifests": ("backup/manifests/*.json", in_json),
    "pieces": ("backup/pieces/*/*", in_head),
    "exports": ("export/tasks/*/task.json", in_json),
    "archives": ("archive/*/*/*.parquet", in_metadata),
}


def numbers(folder: Path) -> Iterable[tuple[str, int]]:
    """The formats of which a golden folder has something, and their numbers."""
    known = json.loads((folder / "data" / "formats.json").read_bytes())["formats"]
    for name, (place, read) in HELD.items():
        for path in folder.glob(place):
            if (number := read(path) if read else known.get(name)) is not None:
                yield name, number


def test_each_format_has_golden_data_with_its_number(made_now: Path) -> None:
    """Whoever adds a format adds it to the folders that `tests.golden.make` makes."""
    assert {*HELD, formats.BLOCKS.name, formats.COLLECTIONS.name} == {format.name for format in formats.ALL}
    assert {*numbers(made_now)} == {(format.name, format.number) for format in formats.ALL if format.name in HELD}


def test_each_number_so_far_has_golden_data(tmp_path: Path) -> None:
    """A release makes a golden folder. So once there are some, each number below the present one is in one of them."""
    found = set[tuple[str, int]]()
    for name in names():
        unpack(name, into := tmp_path / name)
        found |= {*numbers(into)}
    of_folders = (format for format in formats.ALL if format.name in HELD)
    assert {(format.name, number) for format in of_folders for number in range(1, format.number)} - found == set()
