"""This release reads what each older one wrote to Elasticsearch and MongoDB, before and after it is moved.

`make check` takes the one that is moved; servers on what the other one wrote are in `tests/engines/test_rolling.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.golden.make import OF_ENGINES, names, unpack
from tests.golden.recording import load, write_again
from tests.golden.test_golden import assert_answers
from tests.harness import run, served
from tests.longer import beyond

NAMES = names(OF_ENGINES)


@pytest.fixture(params=beyond(["0.1.0-b392fa2"], NAMES))
def answers(
    request: pytest.FixtureRequest, tmp_path: Path, engines: dict[str, Any], elasticsearch_url: str
) -> Mapping[str, Any]:
    """What a release answered. What it kept is in the engines, and in the folder `data`."""
    recorded: Mapping[str, Any] = unpack(request.param, tmp_path, OF_ENGINES)["folder"]
    prefix = engines["events"].rpartition("/")[2]
    write_again(elasticsearch_url, prefix, (tmp_path / "events.ndjson").read_text().splitlines())
    load(engines["documents"], (tmp_path / "documents.json").read_text())
    return recorded


def test_there_are_some_of_both_layouts() -> None:
    assert len(NAMES) > 1


def test_servers_answer_the_same_before_and_after_a_migration(
    answers: Mapping[str, Any], tmp_path: Path, engines: dict[str, Any]
) -> None:
    places = ["--events", engines["events"], "--documents", engines["documents"]]
    with served(tmp_path / "data", **engines) as server:
        assert_answers(server, answers)
        run("migrate", *places)
        run("migrate", "--dry-run", *places)
        assert_answers(server, answers)
        run("doctor", "--data", tmp_path / "data", *places)
        server.stop()
    run("copy", "--from", *places[1::2], "--to", tmp_path / "copy")
    (tmp_path / "data" / "files").rename(tmp_path / "copy" / "files")
    with served(tmp_path / "copy") as server:
        assert_answers(server, answers)
