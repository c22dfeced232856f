"""What every server has from its start on, over the SQLite document store."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from apiserver.services.access import credentials, defaults, identities
from apiserver.services.access.key_uses import KeyUses
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.services.access.conftest import SETTINGS, name_of

pytestmark = pytest.mark.anyio


async def test_first_start_makes_an_admin_whose_key_works(documents: DocumentStore) -> None:
    made = await defaults.ensure_admin(documents, SETTINGS)

    assert made is not None
    identity = await identities.lookup(documents, KeyUses(documents))(made.key, made.secret, "")
    assert identity is not None
    assert (identity.company, identity.role, identity.user_name) == ("c0ffee", "admin", "admin")
    assert (identity.company_name, identity.key) == ("default", made.key)


async def test_second_start_makes_nothing(documents: DocumentStore) -> None:
    await defaults.ensure_admin(documents, SETTINGS)
    before = await documents.find("credentials", {})

    await defaults.ensure_defaults(documents, SETTINGS)
    assert await defaults.ensure_admin(documents, SETTINGS) is None

    assert await documents.find("credentials", {}) == before
    assert [await documents.count(name, {}) for name in ("users", "queues", "companies")] == [1, 1, 1]


async def test_a_start_with_all_there_writes_nothing(tmp_path: Path) -> None:
    settings = Settings(company="c0ffee", admin_key="key", admin_secret="secret")
    for _ in range(2):
        documents = SqliteDocumentStore(tmp_path / "documents.db")
        await documents.open()
        await defaults.ensure_defaults(documents, settings)
        await defaults.ensure_admin(documents, settings)
        written = (tmp_path / "documents.db-wal").stat().st_size
        await documents.close()
    assert written == 0


async def test_a_renamed_admin_stays_the_admin(documents: DocumentStore) -> None:
    await defaults.ensure_admin(documents, SETTINGS)
    [admin] = await credentials.list_users(documents, "c0ffee")
    assert await credentials.update_user(documents, "c0ffee", admin["id"], {"name": "root"}) == 1

    assert await defaults.ensure_admin(documents, SETTINGS) is None
    assert [user["name"] for user in await credentials.list_users(documents, "c0ffee")] == ["root"]


async def test_an_admin_without_any_key_gets_a_new_one(documents: DocumentStore) -> None:
    made = await defaults.ensure_admin(documents, SETTINGS)
    assert made is not None
    await credentials.revoke(documents, "c0ffee", made.key)

    again = await defaults.ensure_admin(documents, SETTINGS)
    assert again is not None
    assert again.key != made.key
    assert await name_of(identities.lookup(documents, KeyUses(documents)), again) == "admin"


async def test_secrets_are_not_stored_nor_shown(documents: DocumentStore) -> None:
    made = await defaults.ensure_admin(documents, SETTINGS)

    assert made is not None
    assert len(made.secret) >= 43
    assert made.secret not in repr(made)
    assert made.secret not in str(await documents.find("credentials", {}))


async def test_settings_fix_the_admins_key_also_on_an_existing_folder(documents: DocumentStore) -> None:
    made = await defaults.ensure_admin(documents, SETTINGS)
    fixed = dataclasses.replace(SETTINGS, admin_key="FIXED", admin_secret="first secret")
    identify = identities.lookup(documents, KeyUses(documents))

    assert await defaults.ensure_admin(documents, fixed) == credentials.Credential("FIXED", "first secret")
    assert await defaults.ensure_admin(documents, fixed) is None

    assert made is not None
    assert await name_of(identify, made) == "admin"
    assert await name_of(identify, credentials.Credential("FIXED", "first secret")) == "admin"


async def test_a_changed_setting_takes_the_earlier_pair_out_of_use(documents: DocumentStore) -> None:
    identify = identities.lookup(documents, KeyUses(documents))
    await defaults.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key="A", admin_secret="one"))
    assert await name_of(identify, credentials.Credential("A", "one")) == "admin"

    await defaults.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key="A", admin_secret="two"))
    assert await identify("A", "one", "") is None
    assert await name_of(identify, credentials.Credential("A", "two")) == "admin"

    await defaults.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key="B", admin_secret="three"))
    assert await identify("A", "two", "") is None
    assert await name_of(identify, credentials.Credential("B", "three")) == "admin"


@pytest.mark.parametrize("settings", [SETTINGS, dataclasses.replace(SETTINGS, admin_key="A", admin_secret="one")])
async def test_servers_that_start_at_once_make_one_key(documents: DocumentStore, settings: Settings) -> None:
    made = await asyncio.gather(*(defaults.ensure_admin(documents, settings) for _ in range(8)))
    assert await documents.count("credentials", {}) == 1
    identify = identities.lookup(documents, KeyUses(documents))
    [pair] = {pair for pair in made if pair is not None}
    assert await name_of(identify, pair) == "admin"


@pytest.mark.parametrize(("key", "secret"), [("only a key", ""), ("", "only a secret")])
async def test_half_a_pair_in_the_settings_is_refused(documents: DocumentStore, key: str, secret: str) -> None:
    with pytest.raises(ValueError, match="together"):
        await defaults.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key=key, admin_secret=secret))


async def test_the_default_queue_is_there(documents: DocumentStore) -> None:
    [queue] = await documents.find("queues", {})
    assert (queue["name"], queue["system_tags"], queue["entries"]) == ("default", ["default"], [])
