"""What of requests comes into the audit log, what does not, and who reads it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.common.passwords import hash_password
from apiserver.common.times import utc_now
from apiserver.operating.audit.actions import ACTIONS, COUNTED
from apiserver.operating.audit.checking import check
from apiserver.operating.audit.entries import Entry
from apiserver.operating.audit.files import AuditFiles, files_of
from apiserver.operating.audit.log import AuditBounds, AuditLog
from apiserver.operating.audit.reading import Wanted, check_time, read
from apiserver.operating.doctor.examination import examine
from apiserver.server.bounds import Bounds
from apiserver.services.access import credentials
from apiserver.services.access.password_login import set_password
from apiserver.services.bounds import CallBounds
from apiserver.settings.settings import Settings
from tests.harness import ADMIN_KEY, ADMIN_SECRET, CHEAP, Api, bearer, new_user, running_api, wait_until
from tests.services.generated import ENDPOINTS

pytestmark = [pytest.mark.anyio, pytest.mark.own_api]

Line = dict[str, Any]

#: Their names are like those of calls that are told, but they only read, prepare, or choose how pages look.
NOT_TOLD = {"auth.begin_provider_login", "organization.prepare_download_for_get_all", "users.set_preferences"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "audit"


def lines(folder: Path, count: int, action: str) -> list[Line]:
    """The lines of an action, the oldest first, as soon as there are so many."""
    found: list[Line] = []

    def are_there() -> bool:
        found[:] = [line for line in read(folder, Wanted()) if line["action"] == action][::-1]
        return len(found) >= count

    wait_until(are_there)
    assert len(found) == count
    return found


def content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in files_of(folder))


def test_every_endpoint_that_deletes_publishes_or_changes_access_is_named() -> None:
    words = ("delete", "publish", "public", "private", "reset", "revoke", "merge", "set_ready", "clear_")
    fields: dict[str, set[str]] = {}
    for endpoint in ENDPOINTS:
        fields.setdefault(endpoint.name, set()).update(endpoint.request.get("properties", {}))
        service, _, action = endpoint.name.partition(".")
        of_access = service in ("auth", "users", "storage", "login") and not endpoint.reads
        changes = not endpoint.reads and any(word in action for word in words)
        matters = of_access or changes or "download" in action
        assert endpoint.name in ACTIONS or not matters or endpoint.name in NOT_TOLD, endpoint.name
    for name, shown in ACTIONS.items():
        assert set(shown) <= fields[name], name
    assert set(ACTIONS) >= COUNTED
    assert {"link", "token", "secret", "password", "aws", "google", "azure"}.isdisjoint(
        field for shown in ACTIONS.values() for field in shown
    )


async def test_who_did_what_from_where_and_how_it_was_answered(api: Api, folder: Path) -> None:
    task = (await api.call("tasks.create", {"name": "x", "type": "training"}))["id"]
    await api.call("tasks.delete", {"task": task})
    await api.call("tasks.delete", {"task": task}, expect=400)
    done, failed = lines(folder, 2, "tasks.delete")
    assert (done["name"], done["key"], done["address"]) == ("admin", ADMIN_KEY, "127.0.0.1")
    assert (done["what"], done["code"], failed["code"]) == ({"task": task}, 200, 400)
    assert done["company"] == api.company
    assert check(folder).well


async def test_the_start_tells_settings_without_secrets(api: Api, folder: Path) -> None:
    [start] = lines(folder, 1, "server.start")
    assert start["what"]["admin_key"] == ADMIN_KEY
    assert start["what"]["admin_secret"] == "********"
    assert "port" not in start["what"]


async def test_sign_ins_and_those_that_failed(api: Api, folder: Path) -> None:
    user = await credentials.add_user(api.backend.documents, api.company, "alice")
    await set_password(api.backend.documents, user, hash_password("correct horse", CHEAP))
    token = (await api.call("auth.login", auth=("alice", "correct horse")))["token"]
    api.client.cookies.clear()
    [signed_in] = lines(folder, 1, "auth.login")
    assert (signed_in["user"], signed_in["name"], signed_in["key"]) == (user["id"], "alice", "password")
    await api.call("auth.login", auth=("alice", "hunter2"), expect=401)
    await api.call("tasks.get_all", auth=("0123456789ABCDEF0123", "x"), expect=401)
    await api.call("auth.login", auth=("my password in the wrong field", "x"), expect=401)
    await api.call("tasks.get_all", auth=None, headers=bearer("nonsense"), expect=401)
    await api.call("tasks.get_all", auth=None, expect=401)
    await api.raw("GET", "/data/projects", auth=None, headers={"authorization": "Digest x"})
    refused = lines(folder, 4, "auth.refused")
    assert [(line["name"], line["key"], line["what"]["asked"]) for line in refused] == [
        ("alice", "", "auth.login"),
        ("", "0123456789ABCDEF0123", "tasks.get_all"),
        ("", "", "tasks.get_all"),
        ("", "", "GET /data/projects"),
    ]
    await api.call("auth.logout", auth=None, headers=bearer(token))
    lines(folder, 1, "auth.logout")
    kept = content(folder)
    for secret in (b"hunter2", b"my password", b"correct horse", token.encode(), b"nonsense", ADMIN_SECRET.encode()):
        assert secret not in kept


@pytest.mark.test
async def test_nothing_that_a_stranger_chooses_makes_lines(api: Api, folder: Path) -> None:
    for number in range(30):
        await api.raw("GET", "/data/projects", auth=None, headers={"authorization": f"Word{number} x"})
        await api.raw("GET", f"/data/{number}", auth=None, headers=bearer(f"token {number}"))
    for number in range(5):
        await api.raw("GET", "/data/projects", auth=(f"{number:020}", "x"))
    refused = lines(folder, 3, "auth.refused")
    assert [line["what"]["by"] for line in refused] == ["other", "bearer", "basic"]


async def test_what_a_key_does_not_allow_is_told_once(api: Api, folder: Path) -> None:
    eve, key = await new_user(api, "eve")
    for _ in range(5):
        await api.call("users.delete", {"user": eve}, auth=key, expect=403)
    [line] = lines(folder, 1, "call.refused")
    assert (line["name"], line["code"], line["what"]["asked"], line["times"]) == ("eve", 403, "users.delete", 1)


async def test_new_keys_and_users_without_their_secrets(api: Api, folder: Path) -> None:
    made = (await api.call("auth.create_credentials", {"label": "CI", "scopes": ["read"]}))["credentials"]
    user = (await api.call("auth.create_user", {"name": "bob\n\x1b[2J"}))["id"]
    await api.call("users.delete", {"user": user})
    [key] = lines(folder, 1, "auth.create_credentials")
    assert key["what"] == {"label": "CI", "scopes": ["read"]}
    lines(folder, 1, "users.delete")
    await api.call("storage.set_settings", {"aws": {"key": "k", "secret": "a secret of S3"}})
    [settings] = lines(folder, 1, "storage.set_settings")
    assert settings["what"] == {}
    kept = content(folder)
    assert made["secret_key"].encode() not in kept
    assert b"a secret of S3" not in kept


async def test_files_exports_and_links(api: Api, folder: Path) -> None:
    await api.raw("PUT", "/files/a/b", content=b"x")
    await api.raw("DELETE", "/files/a/b")
    await api.raw("GET", "/data/projects.csv")
    await api.raw("GET", "/data/projects.csv")
    await api.raw("GET", "/data/projects")
    task = (await api.call("tasks.create", {"name": "x", "type": "training"}))["id"]
    link = await api.raw("POST", "/data/links", json={"address": f"/data/tasks/{task}/log"})
    assert link.status_code == 200
    [deleted] = lines(folder, 1, "files.delete")
    assert (deleted["what"], deleted["name"]) == ({"file": "/files/a/b"}, "admin")
    [export] = lines(folder, 1, "data.export")
    assert export["what"] == {"address": "/data/projects.csv"}
    lines(folder, 1, "data.link")


async def test_reads_and_events_are_not_told(api: Api, folder: Path) -> None:
    task = (await api.call("tasks.create", {"name": "x", "type": "training"}))["id"]
    event = {"task": task, "type": "training_stats_scalar", "metric": "m", "variant": "v", "value": 1, "iter": 1}
    await api.call("events.add", event)
    await api.call("tasks.get_all")
    await api.call("tasks.delete", {"task": task})
    lines(folder, 1, "tasks.delete")
    assert {line["action"] for line in read(folder, Wanted())} == {"server.start", "tasks.delete"}


async def test_who_acts_for_another_user_is_named(api: Api, folder: Path) -> None:
    bob, _ = await new_user(api, "bob")
    [admin] = [user["id"] for user in (await api.call("users.get_all"))["users"] if user["name"] == "admin"]
    await api.call("auth.create_credentials", headers={"x-clearml-impersonate-as": bob})
    [made] = lines(folder, 1, "auth.create_credentials")
    assert (made["user"], made["what"]["acted_by"]) == (bob, admin)


@pytest.mark.test
@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("endpoint", ["auth.login", "auth.get_token_for_user"])
async def test_who_acts_for_another_user_is_named_with_tokens_that_they_get_so(
    api: Api, folder: Path, endpoint: str, renewed: bool
) -> None:
    bob, _ = await new_user(api, "bob")
    admin = (await api.call("users.get_current_user"))["user"]["id"]
    if endpoint == "auth.login":
        token = (await api.call(endpoint, headers={"x-clearml-impersonate-as": bob}))["token"]
    else:
        token = (await api.call(endpoint, {"user": bob}))["token"]
    if renewed:
        token = (await api.call("auth.login", auth=None, headers={"authorization": f"Bearer {token}"}))["token"]
    await api.call("auth.create_credentials", auth=None, headers={"authorization": f"Bearer {token}"})
    [made] = lines(folder, 1, "auth.create_credentials")
    assert (made["user"], made["what"].get("acted_by")) == (bob, admin)


@pytest.mark.bounds(Bounds(calls=CallBounds(audit_seconds=-1)))
async def test_looking_through_it_ends(api: Api, folder: Path) -> None:
    lines(folder, 1, "server.start")
    answer = await api.raw("GET", "/data/audit")
    assert (answer.status_code, "say since" in answer.text) == (503, True)


async def test_admins_read_it_page_by_page(api: Api) -> None:
    for number in range(5):
        await api.call("auth.create_credentials", {"label": f"key {number}"})
    lines(api.backend.settings.data / "audit", 5, "auth.create_credentials")
    path = "/data/audit.ndjson?action=auth.create&limit=2"
    first = [json.loads(line) for line in (await api.raw("GET", path)).text.splitlines()]
    assert [line["what"]["label"] for line in first] == ["key 4", "key 3"]
    second = (await api.raw("GET", f"{path}&before={first[-1]['n']}")).text.splitlines()
    assert [json.loads(line)["what"]["label"] for line in second] == ["key 2", "key 1"]
    _, key = await new_user(api, "eve")
    _, reading = await new_user(api, "reader", "admin")
    assert (await api.raw("GET", path, auth=key)).status_code == 403
    assert (await api.raw("GET", path, auth=None)).status_code == 401
    made = (await api.call("auth.create_credentials", {"scopes": ["write"]}, auth=reading))["credentials"]
    assert (await api.raw("GET", path, auth=(made["access_key"], made["secret_key"]))).status_code == 403
    task = (await api.call("tasks.create", {"name": "x", "type": "training"}))["id"]
    link = (await api.raw("POST", "/data/links", json={"address": f"/data/tasks/{task}/log"})).json()
    assert (await api.raw("GET", f"/data/audit?token={link['token']}", auth=None)).status_code == 403
    documents = api.backend.documents
    await documents.insert("companies", [{"id": "another", "name": "another"}])
    _, theirs = await credentials.create_user(documents, "another", "mallory", "admin")
    await api.call("tasks.get_all", auth=None, headers=bearer("of a stranger"), expect=401)
    await api.call("auth.create_credentials", auth=(theirs.key, theirs.secret))
    lines(api.backend.settings.data / "audit", 1, "auth.refused")
    lines(api.backend.settings.data / "audit", 7, "auth.create_credentials")
    of_theirs = await api.raw("GET", "/data/audit.ndjson", auth=(theirs.key, theirs.secret))
    assert [json.loads(line)["name"] for line in of_theirs.text.splitlines()] == ["mallory"]
    told = {json.loads(line)["action"] for line in (await api.raw("GET", "/data/audit.ndjson")).text.splitlines()}
    assert {"server.start", "auth.refused"} <= told


@pytest.fixture
async def silent(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path / "data", audit="off") as api:
        yield api


async def test_it_can_be_turned_off(silent: Api, folder: Path) -> None:
    await silent.call("auth.create_credentials")
    assert content(folder) == b""
    assert (await silent.raw("GET", "/data/audit")).status_code == 404


async def test_it_can_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_api(tmp_path / "data", audit="stdout") as api:
        await api.call("auth.create_credentials")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["action"] for line in printed] == ["server.start", "auth.create_credentials", "server.stop"]
    assert content(tmp_path / "data" / "audit") == b""


def test_a_full_disk_keeps_lines_waiting_and_tells_what_was_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = True
    append = AuditFiles.append

    def refuse(self: AuditFiles, entries: list[Entry]) -> None:
        if full:
            raise OSError("no space")
        append(self, entries)

    monkeypatch.setattr(AuditFiles, "append", refuse)
    audit = AuditLog(Settings(data=tmp_path), folder, AuditBounds(waiting=3, again_seconds=0.01))
    audit.open()
    for number in range(5):
        audit.add(Entry(f"action {number}"))
    assert (audit.waiting, audit.lost) == (3, 2)
    full = False
    [lost] = lines(folder, 1, "audit.lost")
    assert lost["times"] == 2
    audit.close()
    assert [line["action"] for line in read(folder, Wanted())][::-1] == [
        "action 0",
        "action 1",
        "action 2",
        "audit.lost",
    ]


def test_what_happens_often_is_counted(folder: Path, tmp_path: Path) -> None:
    audit = AuditLog(Settings(data=tmp_path), folder)
    audit.open()
    for _ in range(100):
        audit.count("guess", Entry("auth.refused", 401))
    audit.count("other guess", Entry("auth.refused", 401, address="192.0.2.1"))
    lines(folder, 2, "auth.refused")
    audit.close()
    assert [line["times"] for line in lines(folder, 3, "auth.refused")] == [1, 1, 99]


def test_strangers_make_few_lines_and_hide_nobody(folder: Path, tmp_path: Path) -> None:
    audit = AuditLog(Settings(data=tmp_path), folder, AuditBounds(counted=10, counted_of_strangers=5))
    audit.open()
    for number in range(100):
        audit.count(number, Entry("auth.refused", 401), by_stranger=True)
    for number in range(30):
        audit.count(number, Entry("auth.login", user=f"user {number}"))
    audit.close()
    assert len(lines(folder, 5, "auth.refused")) == 5
    assert sum(line["times"] for line in lines(folder, 2, "audit.others")) == 95
    assert {line["user"] for line in lines(folder, 30, "auth.login")} == {f"user {number}" for number in range(30)}


@pytest.mark.test
@pytest.mark.parametrize("since", ["yesterday", "2026-13-45", "2026-11-24 15:00", "15:00"])
async def test_what_is_no_time_is_refused(api: Api, since: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = await api.raw("GET", f"/data/audit.csv?since={since}")
    assert (answer.status_code, "since" in answer.text, "2026-11-24T15" in answer.text) == (400, True, True)
    assert main(["audit", "--data", str(api.backend.settings.data), "--since", since]) == 2
    assert f"--since: '{since}' is no time in UTC" in capsys.readouterr().err


@pytest.mark.parametrize(
    "since", ["2026", "2026-11-24T15", "2026-11-24T15:02:11.1", "2026-11-24T15:02:11.104225+00:00"]
)
def test_a_time_and_its_beginnings_are_taken(since: str) -> None:
    check_time(since)


def test_fewer_lines_than_none_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["audit", "--limit", "-5"])
    assert "argument --limit: '-5' is not a whole number from 0" in capsys.readouterr().err


@pytest.mark.test
async def test_what_limits_a_key_of_the_command_line_is_told(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    project = (await api.call("projects.create", {"name": "lab/mine", "description": ""}))["id"]
    data = api.backend.settings.data
    limits = ["--scopes", "read,events", "--days", "1", "--data", str(data)]
    for command, named in ((["user", "add", "ann"], "lab/mine"), (["user", "key", "ann"], project)):
        assert await asyncio.to_thread(main, [*command, "--project", "lab/mind", *limits]) == 1
        assert "--project: there is no project 'lab/mind'" in capsys.readouterr().err
        assert await asyncio.to_thread(main, [*command, "--project", named, *limits]) == 0
        [line] = lines(data / "audit", 1, ".".join(command[:2]))
        assert (line["what"]["scopes"], line["what"]["project"]) == (["read", "events"], project)
        assert line["what"]["expires"] > utc_now()


@pytest.mark.test
def test_the_command_prints_and_checks_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", str(folder.parent)]
    folder.parent.mkdir()
    assert main(["user", "add", "eve\x1b[2K", *data]) == 0
    assert '"secret_key"' in capsys.readouterr().out
    assert main(["user", "revoke", "nothing", *data]) == 1
    capsys.readouterr()
    assert main(["audit", *data]) == 0
    said = capsys.readouterr().out
    assert " 200 user.add by " in said
    assert "on the command line {" in said  # a command comes from no address, so none is told
    assert "\x1b" not in said
    assert main(["audit", "--json", "--action", "user.", *data]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["what"]["name"] == "eve\x1b[2K"
    assert main(["audit", "--check", *data]) == 0
    assert "numbers 1 to 1" in capsys.readouterr().out
    [path] = folder.glob("*.ndjson")
    path.write_bytes(path.read_bytes().replace(b'"n":1', b'"n":1,"x":1').replace(b"0" * 64, b"1" * 64))
    assert main(["audit", "--check", *data]) == 1
    assert "does not carry the hash" in capsys.readouterr().err


async def test_no_basic_header_breaks_it(api: Api, folder: Path) -> None:
    headers = ("Basic", "Basic !", "Basic =", "Basic //8=", f"Bearer {'x' * 10_000}", "Digest x", "Basic x:y")
    for header in headers:
        await api.raw("POST", "/tasks.get_all", auth=None, headers={"authorization": header})
    assert check(folder).well


async def test_the_doctor_checks_it(tmp_path: Path, folder: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        await api.call("auth.create_credentials", {"label": "CI"})
        settings = api.backend.settings
    assert (await examine(settings, checking=True, most=1, say=lambda line: None)).findings == []
    [path] = files_of(folder)
    path.write_bytes(content(folder).replace(b"CI", b"IC"))
    [found] = (await examine(settings, checking=True, most=1, say=lambda line: None)).findings
    assert (found.store, found.kind) == ("audit", "broken-audit")
