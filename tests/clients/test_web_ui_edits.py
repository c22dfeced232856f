"""What people change in the web UI, with the bodies that it sends. Recorded as in web_ui/screens.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.web_ui import serving
from tests.clients.web_ui.browser import Browser
from tests.clients.web_ui.serving import ORIGIN
from tests.clients.web_ui.shapes import misfit
from tests.harness import Served, basic

server = serving.server


@pytest.fixture(scope="module")
def browser(server: Served) -> Iterator[Browser]:
    with Browser(server.api_url, ORIGIN) as browser:
        browser.call("auth.login", headers={"Authorization": basic()})
        yield browser


def new_task(browser: Browser, name: str, project: str | None = None) -> str:
    made = browser.call("tasks.create", {"name": name, "type": "training", "project": project})
    return str(made["id"])


def new_project(browser: Browser, name: str) -> str:
    chosen: dict[str, Any] = {"system_tags": [], "default_output_destination": None}
    return str(browser.call("projects.create", {"name": name, "description": "", **chosen})["id"])


def task(browser: Browser, id: str, *fields: str) -> dict[str, Any]:
    [found] = browser.call("tasks.get_by_id_ex", {"id": [id], "only_fields": list(fields)})["tasks"]
    return dict(found)


def test_the_text_tags_and_parameters_of_a_draft(browser: Browser) -> None:
    draft = new_task(browser, "draft")
    browser.call("tasks.update", {"task": draft, "name": "renamed"})
    browser.call("tasks.update", {"task": draft, "comment": "better"})
    browser.call("tasks.update_tags", {"ids": [draft], "add_tags": ["fresh tag", "other"]})
    browser.call("tasks.update_tags", {"ids": [draft], "remove_tags": ["fresh tag"]})
    given = {"section": "Args", "name": "lr", "value": "0.25", "type": "float", "description": ""}
    typed = {**given, "id": "f49eb1f5-956b-4411-8a0e-648ab9a2a0d5", "isMaximize": False, "isJson": True}
    edited = {"task": draft, "hyperparams": [typed], "replace_hyperparams": "section"}
    assert browser.call("tasks.edit_hyper_params", edited) == {"updated": 1}
    shape = {"name": "renamed", "comment": "better", "tags": ["other"], "hyperparams": {"Args": {"lr": given}}}
    assert misfit(task(browser, draft, *shape), shape) is None
    assert "other" in browser.call("organization.get_tags", {})["tags"]


def test_a_run_is_aborted_reset_and_moved_to_a_new_project(browser: Browser) -> None:
    run = new_task(browser, "run")
    browser.call("tasks.started", {"task": run})
    assert browser.call("tasks.stop_many", {"ids": [run]})["succeeded"][0]["id"] == run
    asked = {"delete_external_artifacts": True, "delete_output_models": True, "return_file_urls": True, "force": True}
    assert browser.call("tasks.reset_many", {"ids": [run], **asked})["succeeded"][0]["id"] == run
    browser.call("tasks.move", {"ids": [run], "project": "", "project_name": "moved/here"})
    assert misfit(task(browser, run, "project.name", "status"), {"project": {"name": "moved/here"}}) is None


def test_a_project_is_renamed_moved_and_deleted(browser: Browser) -> None:
    new_project(browser, "above")
    project = new_project(browser, "made here")
    edited = {"name": "renamed here", "system_tags": [], "default_output_destination": "s3://bucket"}
    browser.call("projects.update", {**edited, "project": project})
    browser.call("projects.move", {"project": project, "new_location": "above"})
    [found] = browser.call("projects.get_all_ex", {"id": [project]})["projects"]
    assert (found["name"], found["default_output_destination"]) == ("above/renamed here", "s3://bucket")
    kinds = ("tasks", "non_archived_tasks", "models", "non_archived_models", "reports", "non_archived_reports")
    counts = dict.fromkeys((*kinds, "datasets", "pipelines"), 0)
    assert misfit(browser.call("projects.validate_delete", {"project": project}), counts) is None
    gone = {"project": project, "delete_contents": True, "delete_external_artifacts": True}
    assert browser.call("projects.delete", gone)["deleted"] == 1


def test_a_queue_and_the_order_of_what_waits_in_it(browser: Browser) -> None:
    queue = browser.call("queues.create", {"name": "gpu queue", "display_name": None})["id"]
    tasks = [new_task(browser, name) for name in "abc"]
    for id in tasks:
        browser.call("tasks.enqueue_many", {"ids": [id], "queue": queue, "validate_tasks": False})

    def names() -> str:
        [found] = browser.call("queues.get_all_ex", {"id": [queue], "only_fields": ["entries"]})["queues"]
        return "".join(entry["task"]["name"] for entry in found["entries"])

    browser.call("queues.move_task_to_back", {"queue": queue, "task": tasks[0]})
    assert names() == "bca"
    browser.call("queues.move_task_to_front", {"queue": queue, "task": tasks[2]})
    assert names() == "cba"
    browser.call("queues.move_task_backward", {"queue": queue, "task": tasks[0], "count": -2})  # dragged up
    assert names() == "acb"
    browser.call("queues.move_task_backward", {"queue": queue, "task": tasks[0], "count": 1})  # dragged down
    assert names() == "cab"
    browser.call("queues.remove_task", {"task": tasks[0], "queue": queue, "update_task_status": True})
    assert (names(), task(browser, tasks[0], "status")["status"]) == ("cb", "created")
    browser.call("queues.update", {"queue": queue, "name": "gpu queue", "display_name": "GPUs of the lab"})
    assert browser.call("queues.clear_queue", {"queue": queue})["removed_tasks"] == [tasks[2], tasks[1]]
    assert browser.call("queues.delete", {"queue": queue}) == {"deleted": 1}


def test_a_report_is_written_moved_published_and_deleted(browser: Browser) -> None:
    asked = {"name": "findings", "comment": "", "project": None, "projectName": "Projects root"}
    report = browser.call("reports.create", asked)["id"]
    fields = ["name", "status", "company.id", "user.id", "comment", "report", "tags", "report_assets", "project.name"]

    def shown() -> dict[str, Any]:
        [found] = browser.call("reports.get_all_ex", {"id": [report], "only_fields": fields})["tasks"]
        return dict(found)

    assert shown()["report_assets"] == []
    content = {"report": "# Text", "comment": "about", "tags": ["t"], "report_assets": ["http://ui/files/a.png"]}
    for name, value in content.items():
        browser.call("reports.update", {"task": report, name: value})
    about = new_project(browser, "about")
    browser.call("reports.move", {"task": report, "project": about, "project_name": "about"})
    browser.call("reports.publish", {"task": report})
    assert misfit(shown(), {**content, "status": "published", "project": {"name": "about/.reports"}}) is None
    assert browser.call("reports.get_tags", {}) == {"tags": ["t"]}
    assert browser.call("reports.archive", {"task": report}) == {"archived": 1}
    assert browser.call("reports.unarchive", {"task": report}) == {"unarchived": 1}
    browser.call("reports.archive", {"task": report})
    assert browser.call("reports.delete", {"task": report}) == {"deleted": 1}


def test_access_keys_are_made_named_and_revoked(browser: Browser) -> None:
    made = browser.call("auth.create_credentials", {})["credentials"]
    assert misfit(made, {"access_key": str, "secret_key": str}) is None
    key = {"access_key": made["access_key"]}
    browser.call("auth.edit_credentials", {**key, "label": "my laptop"})
    labels = {one["access_key"]: one["label"] for one in browser.call("auth.get_credentials", {})["credentials"]}
    assert labels[made["access_key"]] == "my laptop"
    assert browser.call("auth.revoke_credentials", key) == {"revoked": 1}
