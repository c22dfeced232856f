"""Each test has a tier, and a test of `quick` starts nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import tiers

ROOT = Path(__file__).parent


def item(path: str, *marks: str, fixtures: tuple[str, ...] = (), parameters: str = "") -> Any:
    """A test in a module below `tests`; parameters: as its id has them."""
    return SimpleNamespace(
        callspec=SimpleNamespace(id=parameters),
        path=ROOT / path,
        fixturenames=fixtures,
        get_closest_marker=lambda name: name if name in marks else None,
    )


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("rpc/test_body.py", "quick"),
        ("engines/test_faults.py", "check"),
        ("clients/test_main_job.py", "test"),
        ("clients/test_agent.py", "check"),
        ("pages", "test"),
        ("test_tiers.py", "quick"),
    ],
)
def test_folders_and_modules_have_a_tier(path: str, tier: str) -> None:
    assert tiers.of_path(ROOT / path) == tier


@pytest.mark.parametrize("path", sorted(tiers.FOLDERS))
def test_all_that_have_a_tier_are_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_all_that_the_makefile_names_are_there() -> None:
    paths = set(re.findall(r"tests/\S+\.py", (ROOT.parent / "Makefile").read_text("utf-8")))
    assert len(paths) > 10
    assert {path for path in paths if not (ROOT.parent / path).exists()} == set()


@pytest.mark.parametrize(
    ("test", "tier"),
    [
        (item("rpc/test_body.py"), "quick"),
        (item("rpc/test_body.py", fixtures=("tmp_path", "server")), "test"),
        (item("rpc/test_body.py", fixtures=("server", "elasticsearch_url")), "check"),
        (item("rpc/test_body.py", "check", fixtures=("server",)), "check"),
        (item("transfer/copying/test_events.py", parameters="elasticsearch-compacted-hot"), "check"),
        (item("transfer/copying/test_events.py", parameters="sqlite-searching"), "quick"),
        (item("pages/test_late.py", "check"), "check"),
        (item("engines/test_split.py", "longer", fixtures=("server",)), "longer"),
    ],
)
def test_a_test_has_the_highest_tier_of_what_is_said_of_it(test: Any, tier: str) -> None:
    assert tiers.of_item(test) == tier


def test_a_quick_test_starts_no_process() -> None:
    with pytest.raises(tiers.Alone, match="give it the mark `test`"):
        subprocess.run(["true"], check=True)


def test_a_quick_test_forks_no_server(tmp_path: Path) -> None:
    from tests.harness import served

    with pytest.raises(tiers.Alone), served(tmp_path / "data"):
        pass
