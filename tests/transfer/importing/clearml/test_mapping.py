"""Documents of ClearML's server as ours, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.services.tasks.task_documents import answered
from apiserver.transfer.importing.clearml.mapping import others, people, tasks
from apiserver.transfer.importing.clearml.mapping.common import Context
from apiserver.transfer.importing.clearml.mongodb import plain
from apiserver.transfer.importing.clearml.urls import replacements
from tests.transfer.importing.clearml import clearml_server as there

CONTEXT = Context("home", replacements(["http://old:8081=https://new"]))


def task(**fields: Any) -> dict[str, Any]:
    """As clients get it."""
    return answered(tasks.task(plain(there.task(**fields)), CONTEXT))


def test_a_task_keeps_what_it_is() -> None:
    found = task()
    for name in ("name", "type", "status", "status_reason", "comment", "parent", "project", "system_tags"):
        assert found[name] == there.task()[name]
    assert found["tags"] == ["x", "y"]
    for name in ("created", "started", "completed", "last_update", "last_change", "status_changed"):
        assert found[name] == there.TIME_TEXT
    assert found["id"] == there.TASK
    assert found["script"]["diff"] == "- a"
    assert found["script"]["repository"] == ""
    assert found["last_metrics"] == there.task()["last_metrics"]
    assert found["has_x_axis_labels"] is True
    assert found["models"]["output"] == [{"name": "out", "model": there.MODEL, "updated": there.TIME_TEXT}]
    assert found["active_duration"] == 17
    assert "unique_metrics" not in found


def test_retention_counts_the_age_of_a_task_from_the_import() -> None:
    assert tasks.task(plain(there.task()), CONTEXT)["imported"] == CONTEXT.now


def test_names_are_those_that_users_gave() -> None:
    found = task()
    section = found["hyperparams"]["Gen.eral"]
    assert {name: item["value"] for name, item in section.items()} == {"a.b": "1", "%_$x": "2", "__dunder": "3"}
    assert section["a.b"] == {"section": "Gen.eral", "name": "a.b", "value": "1", "type": "int"}
    assert found["configuration"] == {"conf.ig": {"name": "conf.ig", "value": "text", "type": "dict"}}
    assert found["container"] == {"image": "ubuntu", "setup__script": None}
    assert found["runtime"] == {"progress": "50", "a.b": "set by edit_runtime", "_pid": 3, "raw.key": 1}
    assert found["execution"]["model_labels"] == {"cat.x": 1}


def test_artifacts_are_a_list_and_elsewhere() -> None:
    found = task(report="![](http://old:8081/i.png)", report_assets=["http://old:8081/i.png"])
    alpha, zeta = found["execution"]["artifacts"]
    assert (alpha["key"], alpha["uri"]) == ("alpha", "s3://b/a.npz")
    assert (zeta["key"], zeta["uri"], zeta["display_data"]) == ("zeta", "https://new/a/z.json", [["a.b", 1]])
    assert found["output"]["destination"] == "https://new/out"
    assert found["report"] == "![](https://new/i.png)"
    assert found["report_assets"] == ["https://new/i.png"]


def test_a_task_of_the_least_has_what_every_task_has() -> None:
    found = answered(tasks.task(plain({"_id": "t", "company": "c", "name": "n", "created": there.TIME}), CONTEXT))
    assert found["execution"]["artifacts"] == []
    assert found["models"] == {"input": [], "output": []}
    assert found["hyperparams"] == found["last_metrics"] == found["runtime"] == {}
    assert found["last_update"] == there.TIME_TEXT


@pytest.mark.parametrize(("origin", "company"), [("origin", "origin"), (None, "home")])
def test_what_is_public_stays_with_its_company(origin: str | None, company: str) -> None:
    found = tasks.task(plain(there.task(company="", company_origin=origin)), CONTEXT)
    assert (found["company"], found["public"]) == (company, True)
    assert "company_origin" not in found


def test_a_model() -> None:
    found = answered(others.model(plain(there.model()), CONTEXT))
    assert found["metadata"] == {"acc.key": {"key": "acc.key", "type": "float", "value": "0.9"}}
    assert found["labels"] == {"cat.x": 1, "dog": 2}
    assert found["design"] == {"layers": {"a.b": 3}}
    assert found["uri"] == "https://new/m/weights.bin"
    assert (found["ready"], found["task"], found["created"]) == (True, there.TASK, there.TIME_TEXT)


def test_a_project_and_a_queue() -> None:
    project = {"_id": "p", "company": "c", "name": "a/b", "created": there.TIME, "parent": "q", "path": ["q"]}
    found = others.project(plain(project), CONTEXT)
    assert (found["basename"], found["parent"], found["path"], found["description"]) == ("b", "q", ["q"], "")
    queue = others.queue(plain(there.queue("t2", "t1")), CONTEXT)
    assert queue["entries"] == [{"task": task, "added": there.TIME_TEXT} for task in ("t2", "t1")]
    assert queue["metadata"] == {"k%2Ek": {"key": "k.k", "type": "str", "value": "v"}}


def test_settings_of_storage_are_named_as_their_company() -> None:
    stored = {"_id": "x", "company": "c", "aws": {"_cls": "AWSSettings", "key": "k", "secret": "s", "buckets": []}}
    assert others.storage_settings(plain({**stored, "last_update": there.TIME}), CONTEXT) == {
        "id": "c",
        "company": "c",
        "aws": {"key": "k", "secret": "s", "buckets": []},
        "last_update": there.TIME_TEXT,
    }


def person(account: dict[str, Any] | None, profile: dict[str, Any] | None = None) -> people.Person | None:
    return people.person(profile, account)


@pytest.mark.parametrize(
    ("role", "mapped"), [("admin", "admin"), ("root", "admin"), ("user", "user"), ("guest", "user")]
)
def test_roles(role: str, mapped: str) -> None:
    found = person(there.account("a", role), {"_id": "a", "company": "c", "name": "Ann"})
    assert found is not None
    assert (found.user["role"], found.user["name"], found.user["email"]) == (mapped, "Ann", "a@x.org")


def test_keys_of_services_and_those_that_everybody_knows_are_left() -> None:
    assert person(there.account("s", "system", there.key("k", "s"))) is None
    agent = there.account("__agent__", "admin", there.key("k", "s"), name="agent", autocreated=True)
    found = person(agent)
    assert found is not None
    assert found.user["role"] == "user"
    assert [credential["key"] for credential in found.credentials] == ["k"]
    known = there.key("EGRTCO8JMSIGI6S39GTP43NFWXDQOW", "s")
    found = person(there.account("t", "user", known), {"_id": "t", "company": "c", "name": "n"})
    assert found is not None
    assert (found.credentials, list(found.left)) == ([], [known["key"]])


@pytest.mark.parametrize(("stored", "kept"), [('{"a": 1}', '{"a":1}'), ({"a": 1}, '{"a":1}'), ("", "{}"), (None, "{}")])
def test_preferences_are_text(stored: Any, kept: str) -> None:
    found = person(None, {"_id": "a", "company": "c", "name": "n", "preferences": stored})
    assert found is not None
    assert found.user["preferences"] == kept
