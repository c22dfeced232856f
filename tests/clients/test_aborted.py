"""A run that is aborted while it has an abort callback, and the file of its checkpoint, which two models have."""

from __future__ import annotations

import json

import pytest

from tests.clients.sdk import Sdk
from tests.harness import Served, wait_until

pytestmark = pytest.mark.check


def test_the_checkpoint_of_the_callback_is_linked_and_outlives_its_model(sdk: Sdk, server: Served) -> None:
    run = sdk.start("aborted.py")
    try:
        output, errors = run.communicate(timeout=180)
    finally:
        sdk.kill(run)
    task = json.loads(next(line for line in output.splitlines() if line.startswith("{")))["task"]
    found = server.call("tasks.get_by_id", {"task": task})["task"]
    assert (found["status"], found["status_reason"]) == ("stopped", "USER ABORTED"), errors
    assert found["hyperparams"]["General"]["aborted"]["value"] == "True"
    [first] = [one["model"] for one in found["models"]["output"]]

    uri = server.call("models.get_by_id", {"model": first})["model"]["uri"]
    second = server.call("models.create", {"name": "the same file", "uri": uri})["id"]
    seen = sdk.run("shared_weights.py", first, second)
    assert seen == {"first": True, "weights": "weights", "second": True}
    files = server.data / "files"
    wait_until(lambda: not [file for file in files.rglob("*.bin") if file.is_file()])
