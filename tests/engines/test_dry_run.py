"""`apiserver migrate --dry-run` says what would be done, and does nothing. Both engines are changed, or none."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from pymongo import MongoClient

from apiserver.cli import main
from apiserver.events.model import Owner
from apiserver.stores.documents.mongo.migrations import RECORDS
from tests.engines.test_kill import OLD_LINES, POINTS, fill
from tests.golden.recording import dumped
from tests.harness import served


def kept(engines: dict[str, Any]) -> list[Any]:
    """All that both engines have of a test: templates, indices and their newest writes, collections and documents."""
    host, _, prefix = engines["events"].removeprefix("elasticsearch://").rpartition("/")
    with httpx.Client(base_url=f"http://{host.partition('?')[0]}") as client:
        asked = (f"_index_template/{prefix}*", f"{prefix}-*", f"{prefix}-*/_stats/docs?level=shards")
        found: list[Any] = [client.get(f"/{path}").json() for path in asked]
        shards = [
            shard for index in found.pop()["indices"].values() for some in index["shards"].values() for shard in some
        ]
    return [*found, sorted(str(shard["seq_no"]["max_seq_no"]) for shard in shards), dumped(engines["documents"])]


def arguments(engines: dict[str, Any], data: Path) -> list[str]:
    return ["migrate", "--data", str(data), "--events", engines["events"], "--documents", engines["documents"]]


def test_it_says_what_would_be_done_and_does_nothing(
    tmp_path: Path, engines: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    command = arguments(engines, tmp_path / "data")
    before = kept(engines)
    assert main([*command, "--dry-run"]) == 1
    said = capsys.readouterr().out
    assert "events: Elasticsearch" in said
    assert "0006_blocks is to be applied" in said
    assert "0001_indexes is to be applied" in said
    assert kept(engines) == before
    with served(tmp_path / "data", **engines) as server:
        company = server.call("users.get_current_user")["user"]["company"]["id"]
        server.stop()
    asyncio.run(fill(engines["events"], [Owner(company, "task")]))
    before = kept(engines)
    assert main([*command, "--dry-run"]) == 1
    said = capsys.readouterr().out
    assert f"events: to be moved: {POINTS:,} scalars of '{company}'" in said
    assert f"events: to be moved: {OLD_LINES} logs of '{company}'" in said
    assert kept(engines) == before
    assert main(command) == 0
    assert kept(engines) != before
    left = tmp_path / "data" / "events" / "events.db"
    left.parent.mkdir()
    with closing(sqlite3.connect(left)) as connection:  # what an older embedded engine has left does not count
        connection.execute("PRAGMA user_version = 1")
    assert main([*command, "--dry-run"]) == 0
    assert main(["doctor", *command[1:]]) == 1  # it finds events without a task; 2 says that it cannot look


@pytest.mark.parametrize("by", ["migrate", "serve"])
def test_no_engine_is_changed_if_the_other_is_of_a_newer_version(
    tmp_path: Path, engines: dict[str, Any], capsys: pytest.CaptureFixture[str], by: str
) -> None:
    with MongoClient(engines["documents"]) as client:  # type: ignore[var-annotated]
        client.get_default_database()[RECORDS].insert_one({"_id": 99, "name": "0099_later", "release": "99.0.0"})
    before = kept(engines)
    if by == "migrate":
        assert main(arguments(engines, tmp_path / "data")) == 1
        said = capsys.readouterr().err
    else:
        with pytest.raises(AssertionError) as ended, served(tmp_path / "data", **engines):
            pass
        said = str(ended.value)
    assert "has schema 99, made by a newer version of apiserver (99.0.0); this one knows up to" in said
    assert kept(engines) == before
