"""Users and access keys, over the SQLite document store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from apiserver.rpc.call import Identity
from apiserver.services.access import credentials, defaults, identities
from apiserver.services.access.key_uses import KeyUses
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.query import Document, Filter
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.services.access.conftest import SETTINGS, name_of

pytestmark = pytest.mark.anyio


async def test_wrong_secrets_and_keys_are_nobodys(documents: DocumentStore) -> None:
    made = await defaults.ensure_admin(documents, SETTINGS)
    identify = identities.lookup(documents, KeyUses(documents))

    assert made is not None
    for _ in range(2):  # the second time with the right pair remembered
        assert await identify(made.key, made.secret + "x", "") is None
        assert await identify(made.key, "\udcff", "") is None
        assert await identify("nobody", made.secret, "") is None
        assert await name_of(identify, made) == "admin"


async def test_known_keys_are_not_read_again(documents: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await defaults.ensure_admin(documents, SETTINGS)
    identify = identities.lookup(documents, KeyUses(documents))
    assert made is not None
    first = await identify(made.key, made.secret, "")

    async def fail(*args: object, **options: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(documents, "find_one", fail)
    assert await identify(made.key, made.secret, "") == first


async def test_what_another_process_changes_is_noticed(
    tmp_path: Path, documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = await credentials.create_user(documents, "c0ffee", "eve")
    later, find_one = 0.0, documents.find_one
    identities.bound_cache(documents, clock=lambda: time.monotonic() + later)
    identify, read = identities.lookup(documents, KeyUses(documents)), 0

    async def counted(*args: Any, **options: Any) -> Document | None:
        nonlocal read
        read += 1
        return await find_one(*args, **options)

    monkeypatch.setattr(documents, "find_one", counted)
    assert await name_of(identify, made) == "eve"
    assert read
    read, later = 0, identities.CACHED_SECONDS + 1
    assert await name_of(identify, made) == "eve"
    assert not read

    other = SqliteDocumentStore(tmp_path / "documents.db")
    await other.open()
    assert await credentials.revoke(other, "c0ffee", made.key) == 1
    await other.close()
    later *= 2
    assert await identify(made.key, made.secret, "") is None


async def test_a_revoked_key_ends_at_once(documents: DocumentStore) -> None:
    _, made = await credentials.create_user(documents, "c0ffee", "eve")
    identify = identities.lookup(documents, KeyUses(documents))
    assert await name_of(identify, made) == "eve"

    assert await credentials.revoke(documents, "c0ffee", made.key, user="somebody else") == 0
    assert await credentials.revoke(documents, "another company", made.key) == 0
    assert await name_of(identify, made) == "eve"

    assert await credentials.revoke(documents, "c0ffee", made.key) == 1
    assert await identify(made.key, made.secret, "") is None


async def test_tokens_of_one_key_have_their_session_alone_read_and_end_with_the_key(
    documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, made = await credentials.create_user(documents, "c0ffee", "eve")
    current, find_one = identities.current(documents, KeyUses(documents)), documents.find_one
    tokens = [Identity(user["id"], "c0ffee", key=made.key, session=f"session {number}") for number in range(3)]
    read: list[str] = []

    async def noted(collection: str, *args: Any, **options: Any) -> Document | None:
        read.append(collection)
        return await find_one(collection, *args, **options)

    monkeypatch.setattr(documents, "find_one", noted)
    assert await current(tokens[0])
    assert {"credentials", "users"} < set(read)
    read.clear()
    assert await current(tokens[1])
    assert read == ["ended_sessions", "sessions"]

    assert await credentials.revoke(documents, "c0ffee", made.key) == 1
    assert [await current(token) for token in tokens] == [None] * 3


async def test_an_answer_that_was_under_way_during_a_revoke_is_not_remembered(
    documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = await credentials.create_user(documents, "c0ffee", "eve")
    identify = identities.lookup(documents, KeyUses(documents))
    read = documents.find_one

    async def slow(collection: str, *args: object, **options: object) -> object:
        found = await read(collection, *args, **options)  # type: ignore[arg-type]
        if collection == "companies":
            await credentials.revoke(documents, "c0ffee", made.key)
        return found

    monkeypatch.setattr(documents, "find_one", slow)
    await identify(made.key, made.secret, "")
    monkeypatch.undo()
    assert await identify(made.key, made.secret, "") is None


async def test_rotate_a_key_replaces_that_one(documents: DocumentStore) -> None:
    user, first = await credentials.create_user(documents, "c0ffee", "eve")
    second = await credentials.create_credential(documents, user, label="laptop")
    identify = identities.lookup(documents, KeyUses(documents))
    assert await name_of(identify, second) == "eve"

    rotated = await credentials.rotate(documents, "c0ffee", second.key)

    assert await identify(second.key, second.secret, "") is None
    assert await name_of(identify, first) == "eve"
    identity = await identify(rotated.key, rotated.secret, "")
    assert identity is not None
    assert identity.user == user["id"]
    labels = [key["label"] for key in (await credentials.list_users(documents, "c0ffee"))[0]["credentials"]]
    assert labels == [None, "laptop"]


@pytest.mark.parametrize("by", ["id", "name"])
async def test_rotate_a_user_replaces_all_keys(documents: DocumentStore, by: str) -> None:
    user, first = await credentials.create_user(documents, "c0ffee", "eve")
    second = await credentials.create_credential(documents, user)
    identify = identities.lookup(documents, KeyUses(documents))

    rotated = await credentials.rotate(documents, "c0ffee", user[by])

    assert await identify(first.key, first.secret, "") is None
    assert await identify(second.key, second.secret, "") is None
    assert await name_of(identify, rotated) == "eve"


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
    identities.bound_cache(documents, most=2)
    pairs = [(await credentials.create_user(documents, "c0ffee", f"user {n}"))[1] for n in range(4)]
    identify = identities.lookup(documents, KeyUses(documents))
    read, found = list[str](), documents.find_one

    async def noted(collection: str, filter: Filter, **options: Any) -> Document | None:
        if collection == "credentials":
            assert isinstance(filter, dict)
            read.append(filter["key"])
        return await found(collection, filter, **options)

    monkeypatch.setattr(documents, "find_one", noted)
    first, second, third, fourth = [pair.key for pair in pairs]
    for number in (0, 1, 2, 3, 2, 3, 0, 3, 2):
        assert await name_of(identify, pairs[number]) == f"user {number}"
    assert read == [first, second, third, fourth, first, third]
