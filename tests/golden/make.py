"""Makes a golden folder: all that a release keeps, which later releases have to open.

    python -m tests.golden.make NAME [--tree TREE]

TREE is the folder of the release's sources, such as `git archive COMMIT | tar x -C TREE` makes it; without it, this
code makes the folder. It becomes `tests/golden/NAME.tar.xz`, with

    data/           the data folder of a server that was killed: all is merged and sealed but what came last
    backup/         a backup of it, from before that, signed with `KEY`
    export/         an export of its project, from then, too
    archive/        the archive of retention, after all events were deleted of a copy of `data`
    answers.json    calls, and what the release answered: of the folder, and of the backup

Until there is a release, tests make such a folder by this code (`record`), and open it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from apiserver.events.model import EventType
from tests.golden import calls
from tests.golden.calls import Made
from tests.harness import Served, served, wait_until
from tests.robustness.clocks import DAY, clock

HERE = Path(__file__).parent
_ENDING = ".tar.xz"
#: Signs the backups.
KEY = "the key of the backups of golden folders"
#: What belongs to a running server.
_LEFT_OUT = {"data.log", "metrics", "exports", "reserve", "lock", "incoming", "events.db-shm", "documents.db-shm"}
#: Chunks that are full, and not sealed.
_UNSEALED = "SELECT count(*) FROM chunk_index WHERE sealed = 0 AND count >= 4096"


def make(name: str, tree: Path | None) -> Path:
    """Make it, and return its path."""
    with tempfile.TemporaryDirectory() as place:
        record(folder := Path(place) / "golden", tree)
        return _pack(folder, HERE / f"{name}{_ENDING}")


def record(folder: Path, tree: Path | None = None) -> None:
    """Make the folder that becomes a golden one."""
    data = folder / "data"
    folder.mkdir()
    with served(data, tree=tree, scrub_days=1) as server:
        made = calls.first(server)
        recorded: dict[str, Any] = {"backup": answers_of(server, made)}
        wait_until(lambda: _unsealed(data) == 0)
        _ask(tree, client_of(server), "export", made.project, "--to", folder / "export")
    signing = {"APISERVER_BACKUP_KEY": KEY}
    _ask(tree, signing, "backup", folder / "backup", "--data", data, "--fast")
    with served(data, tree=tree, scrub_days=1) as server:
        calls.second(server, made)
        recorded["folder"] = answers_of(server, made)
        server.kill()
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(data, copy := Path(place) / "copy")
        _ask(tree, later(Path(place)), *retention(copy, folder / "archive"))
    (folder / "answers.json").write_text(json.dumps(recorded, ensure_ascii=False))


def client_of(server: Served) -> dict[str, str]:
    """The environment of a client of the server."""
    keys = {"CLEARML_API_ACCESS_KEY": server.key, "CLEARML_API_SECRET_KEY": server.secret}
    return {"CLEARML_API_HOST": server.api_url, "CLEARML_FILES_HOST": server.files_url, **keys}


def later(folder: Path) -> dict[str, str]:
    """The environment of a process for which all golden folders are old. Its clock lies in the folder."""
    ahead = clock(folder, "later")
    ahead.set_ahead(400 * DAY)
    return ahead.environment


def retention(data: Path, archive: Path) -> list[object]:
    """The command that archives and deletes all events that are older than a day."""
    rules = [{"types": [type.plural for type in EventType], "keep": "1 d"}]
    return ["retention", "--data", data, "--retention", json.dumps(rules), "--retention-archive", archive]


def answers_of(server: Served, made: Made) -> dict[str, Any]:
    asked = [{**call, "answer": calls.answer(server, call)} for call in calls.asked(made)]
    return {"calls": asked, "files": {name: calls.content(server, name) for name in calls.files()}}


def _unsealed(data: Path) -> int:
    with closing(sqlite3.connect(data / "events" / "events.db")) as connection:
        return int(connection.execute(_UNSEALED).fetchone()[0])


def _ask(tree: Path | None, variables: Mapping[str, str], *command: object) -> None:
    """Have a command of the release done."""
    called = [sys.executable, "-m", "apiserver", *map(str, command)]
    done = subprocess.run(called, cwd=tree, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _pack(folder: Path, path: Path) -> Path:
    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return None if Path(member.name).name in _LEFT_OUT else member

    with tarfile.open(path, "w:xz", preset=9) as packed:
        packed.add(folder, ".", filter=kept)
    return path


def names() -> list[str]:
    """The golden folders that there are."""
    return sorted(path.name.removesuffix(_ENDING) for path in HERE.glob(f"*{_ENDING}"))


def unpack(name: str, into: Path) -> dict[str, Any]:
    """Unpack a golden folder, and return its answers."""
    with tarfile.open(HERE / f"{name}{_ENDING}") as packed:
        packed.extractall(into, filter="data")
    return _answers_in(into)


def copied(folder: Path, into: Path) -> dict[str, Any]:
    """Copy a folder that was recorded, as if it had been packed and unpacked, and return its answers."""
    shutil.copytree(folder, into, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    return _answers_in(into)


def _answers_in(folder: Path) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((folder / "answers.json").read_bytes())
    return answers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.golden.make")
    parser.add_argument("name")
    parser.add_argument("--tree", type=Path)
    options = parser.parse_args()
    made = make(options.name, options.tree)
    print(f"{made}: {made.stat().st_size:,} bytes")  # noqa: T201 - a command says what it made
