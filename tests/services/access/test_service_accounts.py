"""Service accounts: programs call as them by access key, and no person signs in."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from apiserver.cli import main
from apiserver.common import times
from apiserver.common.passwords import hash_password
from apiserver.services.access import credentials
from apiserver.services.access.fixed_users import WEB_UI
from apiserver.services.access.password_login import set_password
from apiserver.services.access.sign_in_links import new_path
from tests.harness import CHEAP, Api, new_user, running_api

pytestmark = pytest.mark.anyio


async def service(api: Api, role: str = "user") -> str:
    answer = await api.call("auth.create_user", {"name": "the nightly job", "role": role, "service": True})
    return str(answer["id"])


async def test_a_service_account_is_shown_and_has_keys(api: Api) -> None:
    documents, id = api.backend.documents, await service(api)
    [shown] = [user for user in (await api.call("users.get_all"))["users"] if user["id"] == id]
    assert shown["service"] is True
    user = await documents.find_one("users", {"id": id})
    assert user is not None
    made = await credentials.create_credential(documents, user)
    await api.call("auth.login", auth=(made.key, made.secret))


@pytest.mark.own_api
async def test_no_password_opens_a_service_account(api: Api) -> None:
    documents, id = api.backend.documents, await service(api)
    user = await documents.find_one("users", {"id": id})
    assert user is not None
    await set_password(documents, user, hash_password("correct horse", CHEAP))
    answer = await api.call("auth.login", auth=("the nightly job", "correct horse"), expect=401)
    assert answer["meta"]["result_subcode"] == 22


@pytest.mark.test
async def test_no_link_and_no_name_alone_sign_in_as_one(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", login="simple") as api:
        id = await service(api)
        page = (WEB_UI.key, WEB_UI.secret)
        await api.call("auth.login", auth=page, headers={"x-clearml-impersonate-as": id}, expect=400)
        eve, _ = await new_user(api, "eve")
        await api.call("auth.login", auth=page, headers={"x-clearml-impersonate-as": eve})
        company = api.company
        user, _ = await credentials.create_user(api.backend.documents, "another", "robot", "admin", service=True)
        with pytest.raises(LookupError):
            await new_path(api.backend.documents, "another")
        assert user["company"] != company


async def test_only_admins_add_service_accounts(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", login="simple") as api:
        page = (WEB_UI.key, WEB_UI.secret)
        await api.call("auth.create_user", {"name": "robot", "service": True}, auth=page, expect=403)
        _, key = await new_user(api, "eve")
        await api.call("auth.create_user", {"name": "robot", "service": True}, auth=key, expect=403)


def test_the_list_of_users_says_which_keys_have_expired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ["--data", str(tmp_path)]
    assert main(["user", "add", "robot", "--days", "1", *data]) == 0
    monkeypatch.setattr(times, "utc_now", lambda: times.from_now(2 * 24 * 3600))
    capsys.readouterr()
    assert main(["user", "list", *data]) == 0
    assert "(expired on 20" in capsys.readouterr().out


@pytest.mark.test
def test_who_prints_a_key_is_told_that_the_server_has_another_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server's ports may come from its own environment, which the command does not have."""
    data = ["--data", str(tmp_path)]
    assert main(["user", "add", "alice", *data]) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "address").write_text("http://127.0.0.1:8008")
    assert main(["user", "key", "alice", *data]) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "address").write_text("http://127.0.0.1:9008")
    for command in (["add", "bob"], ["key", "alice"], ["rotate", "alice"]):
        assert main(["user", *command, *data]) == 0
        said = capsys.readouterr()
        assert '"http://127.0.0.1:8008"' in said.out
        assert said.err.startswith("note: the server of this data folder started at http://127.0.0.1:9008. ")


@pytest.mark.test
def test_the_command_line_makes_them_and_keys_with_scopes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ["--data", str(tmp_path)]
    assert main(["user", "add", "robot", "--service", "--scopes", "read,events", "--days", "1", *data]) == 0
    assert main(["user", "key", "robot", "--label", "a second one", *data]) == 0
    capsys.readouterr()
    assert main(["user", "list", *data]) == 0
    said = capsys.readouterr().out
    assert said.startswith("robot (user, service account): ")
    assert "(for read, events; until 20" in said
    assert said.endswith("(a second one)\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse\n"))
    assert main(["user", "password", "robot", *data]) == 1
    assert main(["user", "key", "robot", "--scopes", "everything", *data]) == 1
    assert main(["user", "key", "robot", "--days", "0", *data]) == 1
    assert main(["user", "key", "nobody", *data]) == 1
