"""Users and access keys, over the SQLite document store."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.services.access import credentials, identities
from apiserver.settings import Settings
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.sqlite import SqliteDocumentStore

pytestmark = pytest.mark.anyio

SETTINGS = Settings(company="c0ffee")


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentStore]:
    store = SqliteDocumentStore(tmp_path / "documents.db")
    await store.open()
    await credentials.ensure_defaults(store, SETTINGS)
    yield store
    await store.close()


async def test_first_start_makes_an_admin_whose_key_works(documents: DocumentStore) -> None:
    made = await credentials.ensure_admin(documents, SETTINGS)

    assert made is not None
    identity = await identities.lookup(documents)(made.key, made.secret)
    assert identity is not None
    assert (identity.company, identity.role, identity.user_name) == ("c0ffee", "admin", "admin")
    assert (identity.company_name, identity.key) == ("default", made.key)


async def test_second_start_makes_nothing(documents: DocumentStore) -> None:
    await credentials.ensure_admin(documents, SETTINGS)
    before = await documents.find("credentials", {})

    await credentials.ensure_defaults(documents, SETTINGS)
    assert await credentials.ensure_admin(documents, SETTINGS) is None

    assert await documents.find("credentials", {}) == before
    assert [await documents.count(name, {}) for name in ("users", "queues", "companies")] == [1, 1, 1]


async def test_a_start_with_all_there_writes_nothing(tmp_path: Path) -> None:
    settings = Settings(company="c0ffee", admin_key="key", admin_secret="secret")
    for _ in range(2):
        documents = SqliteDocumentStore(tmp_path / "documents.db")
        await documents.open()
        await credentials.ensure_defaults(documents, settings)
        await credentials.ensure_admin(documents, settings)
        written = (tmp_path / "documents.db-wal").stat().st_size
        await documents.close()
    assert written == 0


async def test_a_renamed_admin_stays_the_admin(documents: DocumentStore) -> None:
    await credentials.ensure_admin(documents, SETTINGS)
    [admin] = await credentials.list_users(documents, "c0ffee")
    assert await credentials.update_user(documents, "c0ffee", admin["id"], {"name": "root"}) == 1

    assert await credentials.ensure_admin(documents, SETTINGS) is None
    assert [user["name"] for user in await credentials.list_users(documents, "c0ffee")] == ["root"]


async def test_an_admin_without_any_key_gets_a_new_one(documents: DocumentStore) -> None:
    made = await credentials.ensure_admin(documents, SETTINGS)
    assert made is not None
    await credentials.revoke(documents, "c0ffee", made.key)

    again = await credentials.ensure_admin(documents, SETTINGS)
    assert again is not None
    assert await identities.lookup(documents)(again.key, again.secret) is not None


async def test_secrets_are_not_stored_nor_shown(documents: DocumentStore) -> None:
    made = await credentials.ensure_admin(documents, SETTINGS)

    assert made is not None
    assert len(made.secret) >= 43
    assert made.secret not in repr(made)
    assert made.secret not in str(await documents.find("credentials", {}))


async def test_settings_fix_the_admins_key_also_on_an_existing_folder(documents: DocumentStore) -> None:
    made = await credentials.ensure_admin(documents, SETTINGS)
    fixed = dataclasses.replace(SETTINGS, admin_key="FIXED", admin_secret="first secret")
    identify = identities.lookup(documents)

    assert await credentials.ensure_admin(documents, fixed) == credentials.Credential("FIXED", "first secret")
    assert await credentials.ensure_admin(documents, fixed) is None

    assert made is not None
    assert await identify(made.key, made.secret) is not None
    identity = await identify("FIXED", "first secret")
    assert identity is not None
    assert identity.role == "admin"


async def test_a_changed_setting_takes_the_earlier_pair_out_of_use(documents: DocumentStore) -> None:
    identify = identities.lookup(documents)
    await credentials.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key="A", admin_secret="one"))
    assert await identify("A", "one") is not None

    await credentials.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key="A", admin_secret="two"))
    assert await identify("A", "one") is None
    assert await identify("A", "two") is not None

    await credentials.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key="B", admin_secret="three"))
    assert await identify("A", "two") is None
    assert await identify("B", "three") is not None


@pytest.mark.parametrize("settings", [SETTINGS, dataclasses.replace(SETTINGS, admin_key="A", admin_secret="one")])
async def test_servers_that_start_at_once_make_one_key(documents: DocumentStore, settings: Settings) -> None:
    made = await asyncio.gather(*(credentials.ensure_admin(documents, settings) for _ in range(8)))
    assert await documents.count("credentials", {}) == 1
    identify = identities.lookup(documents)
    pairs = {pair for pair in made if pair is not None}
    assert len(pairs) == 1
    assert all([await identify(pair.key, pair.secret) for pair in pairs])


@pytest.mark.parametrize(("key", "secret"), [("only a key", ""), ("", "only a secret")])
async def test_half_a_pair_in_the_settings_is_refused(documents: DocumentStore, key: str, secret: str) -> None:
    with pytest.raises(ValueError, match="together"):
        await credentials.ensure_admin(documents, dataclasses.replace(SETTINGS, admin_key=key, admin_secret=secret))


async def test_wrong_secrets_and_keys_are_nobodys(documents: DocumentStore) -> None:
    made = await credentials.ensure_admin(documents, SETTINGS)
    identify = identities.lookup(documents)

    assert made is not None
    for _ in range(2):  # the second time with the right pair remembered
        assert await identify(made.key, made.secret + "x") is None
        assert await identify(made.key, "\udcff") is None
        assert await identify("nobody", made.secret) is None
        assert await identify(made.key, made.secret) is not None


async def test_known_keys_are_not_read_again(documents: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await credentials.ensure_admin(documents, SETTINGS)
    identify = identities.lookup(documents)
    assert made is not None
    first = await identify(made.key, made.secret)

    async def fail(*args: object, **options: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(documents, "find_one", fail)
    assert await identify(made.key, made.secret) == first


async def test_a_revoked_key_ends_at_once(documents: DocumentStore) -> None:
    _, made = await credentials.create_user(documents, "c0ffee", "eve")
    identify = identities.lookup(documents)
    assert await identify(made.key, made.secret) is not None

    assert await credentials.revoke(documents, "c0ffee", made.key, user="somebody else") == 0
    assert await credentials.revoke(documents, "another company", made.key) == 0
    assert await identify(made.key, made.secret) is not None

    assert await credentials.revoke(documents, "c0ffee", made.key) == 1
    assert await identify(made.key, made.secret) is None


async def test_an_answer_that_was_under_way_during_a_revoke_is_not_remembered(
    documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = await credentials.create_user(documents, "c0ffee", "eve")
    identify = identities.lookup(documents)
    read = documents.find_one

    async def slow(collection: str, *args: object, **options: object) -> object:
        found = await read(collection, *args, **options)  # type: ignore[arg-type]
        if collection == "companies":
            await credentials.revoke(documents, "c0ffee", made.key)
        return found

    monkeypatch.setattr(documents, "find_one", slow)
    await identify(made.key, made.secret)
    monkeypatch.undo()
    assert await identify(made.key, made.secret) is None


async def test_rotate_a_key_replaces_that_one(documents: DocumentStore) -> None:
    user, first = await credentials.create_user(documents, "c0ffee", "eve")
    second = await credentials.create_credential(documents, user, label="laptop")
    identify = identities.lookup(documents)
    assert await identify(second.key, second.secret) is not None

    rotated = await credentials.rotate(documents, "c0ffee", second.key)

    assert await identify(second.key, second.secret) is None
    assert await identify(first.key, first.secret) is not None
    identity = await identify(rotated.key, rotated.secret)
    assert identity is not None
    assert identity.user == user["id"]
    labels = [key["label"] for key in (await credentials.list_users(documents, "c0ffee"))[0]["credentials"]]
    assert labels == [None, "laptop"]


@pytest.mark.parametrize("by", ["id", "name"])
async def test_rotate_a_user_replaces_all_keys(documents: DocumentStore, by: str) -> None:
    user, first = await credentials.create_user(documents, "c0ffee", "eve")
    second = await credentials.create_credential(documents, user)
    identify = identities.lookup(documents)

    rotated = await credentials.rotate(documents, "c0ffee", user[by])

    assert await identify(first.key, first.secret) is None
    assert await identify(second.key, second.secret) is None
    assert await identify(rotated.key, rotated.secret) is not None


async def test_rotate_of_nobody_is_an_error(documents: DocumentStore) -> None:
    with pytest.raises(credentials.UnknownUser):
        await credentials.rotate(documents, "c0ffee", "nobody")


async def test_names_are_unique_in_a_company(documents: DocumentStore) -> None:
    await credentials.create_user(documents, "c0ffee", "eve")
    await credentials.create_user(documents, "another company", "eve")
    with pytest.raises(DuplicateDocument):
        await credentials.create_user(documents, "c0ffee", "eve")


async def test_unknown_roles_are_refused(documents: DocumentStore) -> None:
    with pytest.raises(ValueError, match="role"):
        await credentials.create_user(documents, "c0ffee", "eve", "emperor")


async def test_the_cache_is_bounded(documents: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "REMEMBERED", 2)
    pairs = [(await credentials.create_user(documents, "c0ffee", f"user {n}"))[1] for n in range(4)]
    identify = identities.lookup(documents)

    for pair in [*pairs, *pairs]:
        assert await identify(pair.key, pair.secret) is not None
    assert len(identities._memories[documents].found) == 2


async def test_the_default_queue_is_there(documents: DocumentStore) -> None:
    [queue] = await documents.find("queues", {})
    assert (queue["name"], queue["system_tags"], queue["entries"]) == ("default", ["default"], [])
