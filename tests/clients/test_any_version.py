"""The SDKs of the last five years do the main job, models included: each logs a run, and reads it back.

The oldest, one of the middle and the newest are in `make check`, the others in `make longer`. Those of a test run at
once, as an SDK spends most of its time waiting by a schedule of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import pytest

from tests.clients.sdk import ROOT, Sdk, newest_version, old_versions, python_with, sdk_with
from tests.harness import Served
from tests.longer import beyond

COMPATIBILITY = ROOT / "docs" / "reference" / "compatibility.md"
VERSIONS = [*old_versions(), newest_version()]
SOME = [VERSIONS[0], VERSIONS[len(VERSIONS) // 2], VERSIONS[-1]]
OTHERS = [version for version in VERSIONS if version not in SOME]
#: The newest API version that SDKs ask for, by the first that does.
API = {(1, 0): "2.13", (1, 6): "2.20", (1, 10): "2.23"}
#: What SDKs learned to read later on, by the first that can.
LATER: dict[tuple[int, int], dict[str, Any]] = {
    (1, 1): {"plots": ["confusion", "curve", "weights"]},
    (1, 6): {"single": {"best": 0.95}, "metadata": "0.9"},
}
PARAMETERS = {"Args/lr": "0.1", "Args/layer.size": "64", "Args/$cost": "x"}

Outcome = dict[str, Any] | Exception


@pytest.mark.parametrize("versions", beyond([SOME], [SOME, OTHERS]), ids=["some", "others"])
def test_every_version_logs_a_run_and_reads_it_back(
    server: Served, tmp_path: Path, subtests: pytest.Subtests, versions: list[str]
) -> None:
    pythons = {version: python_with(version) for version in versions}
    sdks = {}
    for version, python in pythons.items():
        if isinstance(python, Path):
            home = tmp_path / version
            home.mkdir()
            sdks[version] = sdk_with(python, server, home)
    server.call("projects.create", {"name": "any version"})  # two SDKs that do this at once hinder each other
    outcomes = all_at_once(sdks, "any_train.py", {version: [version] for version in sdks})
    runs = {version: run for version, run in outcomes.items() if not isinstance(run, Exception)}
    ids = {version: [version, run["task"], run["model"]] for version, run in runs.items()}
    outcomes |= all_at_once(sdks, "any_read_back.py", ids)

    for version, python in pythons.items():
        with subtests.test(version=version):
            if isinstance(python, str):
                pytest.skip(python)
            seen = outcomes[version]
            if isinstance(seen, Exception):
                raise seen
            check(version, runs[version], seen)
            check_kept(server, runs[version])


def test_the_documents_say_which_versions_are_tested() -> None:
    rows = re.findall(r"^\| ([0-9.]+) \| [^|]+ \| ([0-9.]+) \|", COMPATIBILITY.read_text(), re.MULTILINE)
    assert rows == [(version, api_of(version)) for version in VERSIONS]


@pytest.mark.parametrize("version", old_versions())
def test_versions_are_what_their_requirements_say(version: str) -> None:
    requirements = (ROOT / "requirements" / "old-clients" / f"{version}.txt").read_text()
    assert requirements.startswith(f"clearml=={version} --hash=")


def all_at_once(sdks: Mapping[str, Sdk], script: str, arguments: Mapping[str, list[str]]) -> dict[str, Outcome]:
    """Run a script with several SDKs; what each said in the end, or why it did not come that far."""
    processes = {version: sdks[version].start(script, *given) for version, given in arguments.items()}
    outcomes: dict[str, Outcome] = {}
    try:
        for version, process in processes.items():
            try:
                outcomes[version] = Sdk.finish(process)
            except (AssertionError, TimeoutExpired) as error:
                outcomes[version] = error
    finally:
        for process in processes.values():
            Sdk.kill(process)
    return outcomes


def api_of(version: str) -> str:
    """The newest API version that this SDK asks for."""
    return API[max(first for first in API if first <= numbers(version))]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def check(version: str, run: dict[str, Any], seen: dict[str, Any]) -> None:
    """What an SDK of this version read back is what it logged."""
    console = "\n".join(seen.pop("console"))
    assert console.count("a console line") == 1
    assert console.count("reported text") == 1
    assert seen.pop("comment").startswith("a comment")
    later = {
        name: what for first, learned in LATER.items() if first <= numbers(version) for name, what in learned.items()
    }
    assert seen == later | {
        "version": version,
        "api": api_of(version),
        "status": "completed",
        "name": version,
        "project": "any version",
        "tags": ["nightly"],
        "parameters": PARAMETERS,
        "configuration": "depth = 3",
        "last_iteration": 19,
        "scalars": {"loss": ["train"]},
        "loss": {"name": "train", "x": list(range(20)), "y": [pytest.approx(1 / (n + 1)) for n in range(20)]},
        "last": {"last": pytest.approx(0.05), "min": pytest.approx(0.05), "max": 1.0},
        "artifacts": ["data", "numbers"],
        "data": {"answer": 42},
        "numbers": [0, 1, 2, 3, 4],
        "models": [run["origin"], run["model"]],
        "model": {
            "name": f"model of {version}",
            "framework": "PyTorch",
            "labels": {"cat": 1, "dog": 2},
            "design": {"layers": [1, 2]},
            "weights": 1400,
            "published": False,
        },
        "queried": [run["model"]],
        "found": [run["task"]],
        "by_name": run["task"],
        "clone": {
            "parameters": PARAMETERS,
            "inputs": [run["origin"]],
            "status": "created",
            "queued": "queued",
            "deleted": True,
        },
    }


def check_kept(server: Served, run: dict[str, Any]) -> None:
    """What SDKs do not read back is there, too: of images they give only the URL."""
    images = server.call("events.debug_images", {"metrics": [{"task": run["task"], "metric": "images"}]})
    ((image,),) = [of_iteration["events"] for of_iteration in images["metrics"][0]["iterations"]]
    assert (image["iter"], image["variant"]) == (2, "grey")
    with server.client() as client:
        assert client.get(image["url"]).content[:3] in (b"\xff\xd8\xff", b"\x89PN")
