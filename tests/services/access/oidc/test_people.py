"""Who may come in by way of the provider, as which user, in which role and company."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver import cli
from apiserver.operating.audit.reading import Wanted, read
from apiserver.services.access.credentials import add_user, delete_user
from apiserver.services.access.identities import PROVIDER_LINKS
from apiserver.services.access.oidc.people import link_user, unlink_user
from apiserver.settings.values import Domain
from apiserver.stores.documents.query import Update
from tests.harness import Api, new_user
from tests.services.access.oidc.conftest import GROUPS, Browser

pytestmark = pytest.mark.anyio


async def refused(browser: Browser) -> str:
    answer = await browser.sign_in()
    assert answer.status_code == 403
    assert not await browser.is_signed_in()
    return str(answer.json()["meta"]["result_msg"])


async def test_somebody_new_is_added_as_the_provider_says(browser: Browser) -> None:
    browser.liar.person |= {"given_name": "Ada", "family_name": "Lovelace\n"}
    await browser.sign_in()
    user = await browser.user()
    shown = ("name", "given_name", "family_name", "role")
    assert [user[field] for field in shown] == ["ada", "Ada", "Lovelace", "user"]


async def test_names_that_others_have_lead_to_nobody_else(browser: Browser, api: Api) -> None:
    """An admin of the same name and address is somebody else, whatever the provider says of their address."""
    admin, _ = await new_user(api, "ada", "admin")
    await new_user(api, "ada@example.org", "admin")
    browser.liar.person |= {"email_verified": True}
    await browser.sign_in()
    user = await browser.user()
    assert user["id"] != admin
    assert user["name"].startswith("ada ")
    assert user["role"] == "user"


async def test_another_person_is_another_user(browser: Browser, other: Browser) -> None:
    await browser.sign_in()
    browser.liar.person |= {"sub": "another"}
    await other.sign_in()
    assert (await other.user())["id"] != (await browser.user())["id"]


@pytest.mark.parametrize("person", [{}, {"preferred_username": "\n"}, {"preferred_username": 5, "name": ["x"]}])
async def test_a_person_without_a_name_has_one_here(browser: Browser, person: dict[str, Any]) -> None:
    browser.liar.person = {"sub": "5", **person}
    await browser.sign_in()
    assert (await browser.user())["name"].startswith("user ")


async def test_what_the_token_lacks_comes_from_userinfo(browser: Browser) -> None:
    browser.liar.person = {"sub": "5"}
    browser.liar.userinfo = {"preferred_username": "grace"}
    await browser.sign_in()
    assert (await browser.user())["name"] == "grace"


async def test_a_user_of_another_company_who_has_the_id_is_not_signed_in(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    documents, user = api.backend.documents, await browser.user()
    await browser.ask("auth.logout", {})
    await documents.update("users", {"id": user["id"]}, Update(set={"company": "another company"}))
    assert "a user of another company has the id" in await refused(browser)


async def test_nobody_can_know_the_id_of_somebody_who_comes_later(browser: Browser, other: Browser, api: Api) -> None:
    """So no other company can occupy it."""
    await browser.sign_in()
    user = await browser.user()
    await delete_user(api.backend.documents, user["company"]["id"], user["id"])
    await other.sign_in()
    assert (await other.user())["id"] != user["id"]


# --- groups and domains -----------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"oidc_groups": GROUPS}])
@pytest.mark.parametrize(
    ("groups", "role", "company"),
    [
        (["people"], "user", "d1e5c0a8f00d4e0ab1e0c0ffee000001"),
        (["people", "boss"], "admin", "d1e5c0a8f00d4e0ab1e0c0ffee000001"),
        (["other lab", "people"], "user", "another company"),
        ("people", "user", "d1e5c0a8f00d4e0ab1e0c0ffee000001"),
    ],
)
async def test_groups_give_role_and_company(browser: Browser, groups: Any, role: str, company: str) -> None:
    browser.liar.person["groups"] = groups
    await browser.sign_in()
    user = await browser.user()
    assert (user["role"], user["company"]["id"]) == (role, company)


@pytest.mark.parametrize("settings", [{"oidc_groups": GROUPS}])
@pytest.mark.parametrize("groups", [None, [], "", ["strangers"], ["*"], {"people": 1}, [["people"]], 5])
async def test_who_is_in_no_group_does_not_come_in(browser: Browser, api: Api, groups: Any) -> None:
    browser.liar.person["groups"] = groups
    before = await api.backend.documents.count("users", {})
    assert "none of the groups" in await refused(browser)
    assert await api.backend.documents.count("users", {}) == before


@pytest.mark.parametrize("settings", [{"oidc_groups": GROUPS}])
async def test_who_changes_groups_changes_roles_and_who_leaves_stays_out(browser: Browser, other: Browser) -> None:
    browser.liar.person["groups"] = ["boss"]
    await browser.sign_in()
    assert (await browser.user())["role"] == "admin"
    browser.liar.person["groups"] = ["people"]
    await other.sign_in()
    assert (await other.user())["role"] == "user"
    assert (await browser.user())["role"] == "user"
    browser.liar.person["groups"] = []
    other.client.cookies.clear()
    await refused(other)


@pytest.mark.parametrize("settings", [{"oidc_groups": GROUPS, "oidc_groups_claim": "realm_access.roles"}])
async def test_groups_may_be_in_a_claim_of_a_claim(browser: Browser) -> None:
    browser.liar.person["realm_access"] = {"roles": ["boss"]}
    await browser.sign_in()
    assert (await browser.user())["role"] == "admin"


@pytest.mark.parametrize("settings", [{"oidc_email_domains": (Domain("example.org"),)}])
async def test_only_verified_addresses_of_the_domains_come_in(browser: Browser) -> None:
    for person in ({}, {"email_verified": False}, {"email_verified": 1.5}, {"email_verified": True, "email": None}):
        browser.liar.claims = person
        assert "verified" in await refused(browser)
    for email in ("ada@evil.example", "ada@example.org.evil.example", "example.org", "ada@sub.example.org", "a@b@c"):
        browser.liar.claims = {"email_verified": True, "email": email}
        assert "none of the domains" in await refused(browser)
    browser.liar.claims = {"email_verified": True, "email": "Ada@Example.ORG"}
    assert (await browser.sign_in()).status_code == 200


# --- links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"sign_up": False}])
async def test_where_nobody_is_added_an_admin_links_people(browser: Browser, api: Api) -> None:
    assert "by your id there: 8f2a" in await refused(browser)
    id, _ = await new_user(api, "Ada L.")
    [user] = await api.backend.documents.find("users", {"id": id})
    await link_user(api.backend.documents, user, browser.liar.issuer, "8f2a")
    await browser.sign_in()
    assert (await browser.user())["id"] == id


@pytest.mark.test
def test_commands_link_and_unlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(tmp_path / "data")]
    (tmp_path / "data").mkdir()
    assert cli.main(["user", "add", "ada", *data]) == 0
    assert cli.main(["user", "add", "robot", "--service", *data]) == 0
    assert cli.main(["user", "link", "ada", "8f2a", *data]) == 1
    assert "oidc_issuer" in capsys.readouterr().err
    monkeypatch.setenv("APISERVER_OIDC_ISSUER", "https://id.example.org")
    monkeypatch.setenv("APISERVER_OIDC_CLIENT_ID", "events")
    assert cli.main(["user", "unlink", "ada", *data]) == 1
    assert cli.main(["user", "link", "ada", "8f2a", *data]) == 0
    assert cli.main(["user", "link", "robot", "8f2a", *data]) == 1
    assert cli.main(["user", "link", "nobody", "8f2a", *data]) == 1
    assert cli.main(["user", "unlink", "ada", *data]) == 0
    assert cli.main(["user", "unlink", "ada", *data]) == 1
    noted = [(line["action"], line["what"]) for line in read(tmp_path / "data" / "audit", Wanted())]
    assert noted[:2] == [
        ("user.unlink_provider", {"name": "ada"}),
        ("user.link_provider", {"name": "ada", "provider": "https://id.example.org", "subject": "8f2a"}),
    ]


async def test_without_the_link_the_session_ends(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    user = await browser.user()
    assert await unlink_user(api.backend.documents, user["company"]["id"], user["id"]) == 1
    assert not await browser.is_signed_in()


async def test_whose_link_leads_to_another_user_is_signed_out(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    id, _ = await new_user(api, "Ada L.")
    [user] = await api.backend.documents.find("users", {"id": id})
    await link_user(api.backend.documents, user, browser.liar.issuer, "8f2a")
    assert not await browser.is_signed_in()
    await browser.sign_in()
    assert (await browser.user())["id"] == id


async def test_nobody_signs_in_as_a_service_account(browser: Browser, api: Api) -> None:
    documents, company = api.backend.documents, api.company
    robot = await add_user(documents, company, "robot", service=True)
    await link_user(documents, robot, browser.liar.issuer, "8f2a")
    assert "account for programs" in await refused(browser)


async def test_a_user_who_is_deleted_is_signed_out_and_their_link_is_gone(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    user = await browser.user()
    await delete_user(api.backend.documents, user["company"]["id"], user["id"])
    assert not await browser.is_signed_in()
    assert await api.backend.documents.count(PROVIDER_LINKS, {}) == 0
