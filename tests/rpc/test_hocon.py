"""HOCON files and the cache of their parsed form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.common import resources
from apiserver.rpc import hocon
from apiserver.rpc.hocon import HoconError, parse_hocon, read_hocon

TEXT = 'log { "2.1" { since: "1.0", required: [a, b], # a comment\n limit: 5 } }'
TREE = {"log": {"2.1": {"since": "1.0", "required": ["a", "b"], "limit": 5}}}

#: A start: it looks for no garbage, reads a file and its parsed form, and then keeps what is there. How many objects
#: that are, in both cases.
START = """
import gc
import sys
from pathlib import Path
gc.disable()
from pyhocon import ConfigFactory
from apiserver.rpc.hocon import read_hocon
gc.collect()
file, cache = map(Path, sys.argv[1:])
for _ in range(2):
    tree = read_hocon(file, cache)
    gc.freeze()
    print(gc.get_freeze_count())
    assert not gc.isenabled()
    gc.unfreeze()
    gc.collect()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "events.conf"
    file.write_text(TEXT)
    return file


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing is an error from here on."""

    def parse(text: str) -> Any:
        raise AssertionError("parsed although the parsed form was there")

    monkeypatch.setattr(hocon, "parse_hocon", parse)


def test_quoted_keys_stay_whole() -> None:
    assert parse_hocon(TEXT) == TREE


def test_unquoted_versions_become_nested_numbers_which_is_why_they_must_be_quoted() -> None:
    assert parse_hocon("log { 2.1 { a: 1 } }") == {"log": {"2": {"1": {"a": 1}}}}


def test_newlines_separate_items_and_texts_may_span_lines() -> None:
    assert parse_hocon('a: [\n x\n y\n]\nb: """two\nlines"""') == {"a": ["x", "y"], "b": "two\nlines"}


@pytest.mark.parametrize("text", ["a {", "a: [1, 2", "[1, 2]", 'a: "open', "a: ${missing}"])
def test_what_is_not_hocon_is_refused(text: str) -> None:
    with pytest.raises(HoconError):
        parse_hocon(text)


def test_the_parsed_form_is_used_again(file: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert read_hocon(file, tmp_path / "cache") == TREE
    request.getfixturevalue("no_parser")
    assert read_hocon(file, tmp_path / "cache") == TREE


def test_other_text_is_parsed_anew(file: Path, tmp_path: Path) -> None:
    read_hocon(file, tmp_path / "cache")
    file.write_text("log { a: 1 }")
    assert read_hocon(file, tmp_path / "cache") == {"log": {"a": 1}}
    assert [kept.name for kept in (tmp_path / "cache").iterdir()] == ["events.json"]


@pytest.mark.test
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b'{"sha256": "x"}', b"\xff\xfe"])
def test_a_corrupt_cache_is_ignored_and_rewritten(file: Path, tmp_path: Path, damage: bytes) -> None:
    read_hocon(file, tmp_path / "cache")
    cached = tmp_path / "cache" / "events.json"
    good = cached.read_bytes()
    cached.write_bytes(damage)
    assert read_hocon(file, tmp_path / "cache") == TREE
    assert cached.read_bytes() == good


def test_a_cache_of_the_right_text_but_no_tree_is_ignored(file: Path, tmp_path: Path) -> None:
    read_hocon(file, tmp_path / "cache")
    cached = tmp_path / "cache" / "events.json"
    cached.write_bytes(orjson.dumps({**orjson.loads(cached.read_bytes()), "tree": 5}))
    assert read_hocon(file, tmp_path / "cache") == TREE


def test_a_cache_that_cannot_be_written_costs_nothing_else(file: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert read_hocon(file, tmp_path / "cache") == TREE


def test_no_draft_is_left_when_the_cache_cannot_be_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "cache" / "events.json").mkdir(parents=True)
    assert read_hocon(file, tmp_path / "cache") == TREE
    assert [kept.name for kept in (tmp_path / "cache").iterdir()] == ["events.json"]


@pytest.mark.test
def test_a_start_keeps_no_garbage_of_the_parser(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, str(resources.path("schemas") / "users.conf"), str(tmp_path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    parsed, cached = map(int, said.split())
    assert parsed < 2 * cached
