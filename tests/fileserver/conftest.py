"""A file server on its own, with two users of different companies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from apiserver.fileserver.deletions import FileDeletions
from apiserver.fileserver.links import FileLinks
from apiserver.fileserver.server import FileServer
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.call import Identity
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from apiserver.stores.files.disk import FileStore

MAX_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Files:
    """The file server behind an HTTP client, and the folder it keeps files in."""

    app: FileServer
    store: FileStore
    authenticator: Authenticator
    deletions: FileDeletions
    links: FileLinks
    client: httpx.AsyncClient
    folder: Path
    token: str
    other_token: str

    def kept(self) -> list[Path]:
        """Every file on disk, uploads under way included."""
        return [path for path in self.folder.rglob("*") if path.is_file() and path.name != "lock"]


@pytest.fixture
async def files(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Files]:
    async def lookup(key: str, secret: str, client: str) -> Identity | None:
        return Identity(user="u", company="c1") if (key, secret) == ("key", "secret") else None

    store = FileStore(tmp_path / "files", max_bytes=MAX_BYTES)
    await store.open()
    authenticator = Authenticator("s" * 32, lookup, allowed_origins=["http://ui"])
    documents = SqliteDocumentStore(tmp_path_factory.mktemp("documents") / "documents.db")
    await documents.open()
    deletions = FileDeletions(store, documents)
    links = FileLinks("s" * 32)
    app = FileServer(store, authenticator, deletions, links)
    token = authenticator.issue(Identity(user="u", company="c1"), 3600)
    other_token = authenticator.issue(Identity(user="o", company="c2"), 3600)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://files", headers=headers
    ) as client:
        yield Files(app, store, authenticator, deletions, links, client, tmp_path / "files", token, other_token)
    await store.close()
    await documents.close()
