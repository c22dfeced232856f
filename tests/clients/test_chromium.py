"""A real browser sends what pages make it send. Only the script of an own page changes anything."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clients.chromium import Chromium, chromium, needs_chromium
from tests.harness import Served, basic, served

pytestmark = needs_chromium

#: Chromium sends Sec-Fetch-* to the first (and to https), not to the second.
HOSTS = ("127.0.0.1", "plain.test")

_FORM = """const f = document.createElement('form'), i = document.createElement('iframe');
f.method = 'POST'; f.target = i.name = 'into'; i.onload = () => done('shown'); document.body.append(i, f);"""
#: Scripts that have the page ask for `to + query`, or send `body` to `to`, each as another thing than a call by script.
WITHOUT_LEAVE = {
    "picture": "const i = new Image(); i.onerror = i.onload = () => done('shown'); i.src = to + query;",
    "script": """const i = document.createElement('script');
i.onerror = i.onload = () => done('shown'); i.src = to + query; document.body.append(i);""",
    "frame": """const i = document.createElement('iframe');
i.onload = () => done('shown'); i.src = to + query; document.body.append(i);""",
    "form": f"{_FORM} f.action = to + query; f.submit();",
    "text form": f"""{_FORM} f.enctype = 'text/plain'; f.action = to; const n = document.createElement('input');
n.name = body.slice(0, -1) + ',"x":"'; n.value = '"}}'; f.append(n); f.submit();""",
    "beacon": "done(navigator.sendBeacon(to, body));",
    "call": "fetch(to, {method: 'POST', mode: 'no-cors', credentials: 'include', body}).then(() => done('sent'));",
}
_READY = """const [to, query, body] = values;
document.body ?? document.documentElement.append(document.createElement('body'));"""
_LEAVE = """const f = document.createElement('form'); f.method = 'POST'; f.action = values[0];
document.documentElement.append(f); done(); setTimeout(() => f.submit());"""
_LEFT = "const t = setInterval(() => location.href == values[0] && (clearInterval(t), done()), 20);"
_POST = """const [to, body, headers] = values;
fetch(to, {method: 'POST', credentials: 'include', headers: {'Content-Type': 'application/json', ...headers}, body})
  .then(answer => done(answer.status)).catch(error => done(String(error)));"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("chromium") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.mark.parametrize("host", HOSTS)
def test_nothing_changes_but_by_a_script_of_an_own_page(server: Served, browser: Chromium, host: str) -> None:
    eve = server.call("auth.create_user", {"name": f"eve at {host}"})["id"]
    own = f"http://{host}:{server.port}"
    to, wanted = f"{own}/auth.edit_user", {"user": eve, "role": "admin"}
    query, body = f"?user={eve}&role=admin", json.dumps(wanted)

    def role() -> str:
        return str(server.call("users.get_by_id", {"user": eve})["user"]["role"])

    browser.show(f"{own}/debug.ping")
    assert browser.run(_POST, f"{own}/auth.login", "{}", {"Authorization": basic()}) == 200
    for page in (own, f"http://{host}:{server.files_port}", f"http://evil.test:{server.port}"):
        browser.show(f"{page}/debug.ping")
        for name, script in WITHOUT_LEAVE.items():
            browser.run(_READY + script, to, query, body)
            assert role() == "user", (page, name)
        assert (browser.run(_POST, to, body) == 200) is (page == own)
        assert role() == ("admin" if page == own else "user")
        server.call("auth.edit_user", {"user": eve, "role": "user"})
    browser.show(to + query)
    assert role() == "user"


@pytest.mark.parametrize("host", HOSTS)
def test_no_form_of_another_page_logs_anybody_out(server: Served, browser: Chromium, host: str) -> None:
    own = f"http://{host}:{server.port}"
    browser.show(f"{own}/debug.ping")
    assert browser.run(_POST, f"{own}/auth.login", "{}", {"Authorization": basic()}) == 200
    browser.show(f"http://evil.test:{server.port}/debug.ping")
    browser.run(_LEAVE, f"{own}/login.logout")
    browser.run(_LEFT, f"{own}/login.logout")
    assert browser.run(_POST, f"{own}/users.get_current_user", "{}") == 200
