"""An SQLite document store with what every server has; and a server where failed attempts to sign in stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from apiserver.rpc.auth import Lookup
from apiserver.services.access import defaults
from apiserver.services.access.credentials import Credential
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.harness import CHEAP_PASSWORDS

SETTINGS = Settings(company="c0ffee")


#: However slow the machine is, no failed attempt is forgotten while a test makes more of them.
FAILURES_STAY = replace(CHEAP_PASSWORDS, clock=lambda: 0.0)


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentStore]:
    store = SqliteDocumentStore(tmp_path / "documents.db")
    await store.open()
    await defaults.ensure_defaults(store, SETTINGS)
    yield store
    await store.close()


async def name_of(identify: Lookup, pair: Credential) -> str | None:
    """The name of the user to whom a key and its secret belong; None if they are nobody's."""
    identity = await identify(pair.key, pair.secret, "")
    return identity.user_name if identity else None
