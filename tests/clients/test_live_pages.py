"""A real browser follows a task as the guide says, and comes back by itself when the server has restarted."""

from __future__ import annotations

from pathlib import Path

from docs.site.pages import DOCS
from tests.clients.chromium import chromium, needs_chromium
from tests.docs.test_tutorial import blocks
from tests.harness import Served, basic

pytestmark = needs_chromium

_LOGIN = """const headers = {'Content-Type': 'application/json', Authorization: values[0]};
fetch('/auth.login', {method: 'POST', headers, body: '{}'}).then(answer => done(answer.status));"""
_FOLLOW = """window.told = []; window.follow = follow;
window.stream = follow(values[0], (name, data) => told.push([name, data.task])); done();"""
_UNTIL = (
    "const t = setInterval(() => told.some(([name]) => values.includes(name)) && (clearInterval(t), done(told)), 20);"
)


def test_a_page_follows_a_task_over_a_restart(server: Served, tmp_path: Path) -> None:
    task = server.call("tasks.create", {"name": "train", "type": "training"})["id"]
    (follow,) = [block.text for block in blocks(DOCS / "guides" / "live.md") if block.language == "js"]
    with chromium() as browser:
        browser.show(f"{server.api_url}/debug.ping")
        assert browser.run(_LOGIN, basic()) == 200
        browser.run(f"{follow}\n{_FOLLOW}", f"/data/live?task={task}")
        assert browser.run(_UNTIL, "status") == [["status", task]]
        server.call("events.add", {"type": "log", "task": task, "msg": "a line"})
        assert browser.run(_UNTIL, "log")[-1] == ["log", task]
        server.kill()
        server.start()
        server.call("tasks.started", {"task": task})
        point = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": "v", "iter": 1, "value": 1}
        server.call("events.add", point)
        browser.run(_UNTIL, "scalars", "reset")  # a new process may not know what the task had before
