"""`apiserver migrate --dry-run` says what would be done, and does nothing. Both engines are changed, or none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from pymongo import MongoClient

from apiserver.cli import main
from apiserver.stores.documents.mongo.migrations import RECORDS
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
    with MongoClient(engines["documents"]) as mongo:  # type: ignore[var-annotated]
        database = mongo.get_default_database()
        for name in sorted(database.list_collection_names()):
            found += [name, [*database[name].find().sort("_id")], [*database[name].list_indexes()]]
    return [*found, sorted(str(shard["seq_no"]["max_seq_no"]) for shard in shards)]


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
    assert "0001_indices is to be applied" in said
    assert "0001_indexes is to be applied" in said
    assert kept(engines) == before
    assert main(command) == 0
    after = kept(engines)
    assert after != before
    left = tmp_path / "data" / "events" / "events.db"
    left.parent.mkdir(parents=True)
    with closing(sqlite3.connect(left)) as connection:  # what an older embedded engine has left does not count
        connection.execute("PRAGMA user_version = 1")
    assert main([*command, "--dry-run"]) == 0
    assert kept(engines) == after


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
