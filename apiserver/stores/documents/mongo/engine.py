"""MongoDB as an engine of documents."""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from urllib.parse import quote, unquote

from apiserver.settings.engine_addresses import once, parts_of
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.engine import Engine
from apiserver.stores.inspection import Inspection
from apiserver.stores.migrations import Step, Target

_DATABASE = re.compile(r"[^/\\. \"$*<>:|?\x00]{1,63}")


class MongoEngine(Engine[DocumentStore]):
    """The collections of one database."""

    form = "mongodb://[user[:password]@]host[:27017][,host…]/database[?option=…]"
    shared = True

    def __init__(self, settings: Settings) -> None:
        self.uri = mongo_uri(settings.documents, password=settings.documents_password)
        super().__init__(settings, {self.uri})

    def store(self, folder: DataFolder) -> DocumentStore:
        from apiserver.stores.documents.mongo.store import MongoDocumentStore

        return MongoDocumentStore(self.uri, migrate=self.settings.migrate_at_start)

    def inspection(self, folder: DataFolder) -> AbstractAsyncContextManager[Inspection]:
        from apiserver.stores.documents.inspection import looking_through
        from apiserver.stores.documents.mongo.store import MongoDocumentStore

        return looking_through(MongoDocumentStore(self.uri, migrate=False))

    def schema(self) -> AbstractAsyncContextManager[tuple[Target, list[Step]]]:
        from apiserver.stores.documents.mongo.migrations import schema_at

        return schema_at(self.uri)


def mongo_uri(address: str, *, password: str = "") -> str:
    """The address, with the password in it if one is given. ValueError says what is wrong with it."""
    parts = parts_of(address)
    if not parts.hosts:
        raise ValueError("the address names no host")
    if not parts.path:
        raise ValueError("the address ends with no database: add its name as in mongodb://host/apiserver")
    if not _DATABASE.fullmatch(unquote(parts.path)):
        raise ValueError(f"{unquote(parts.path)!r} cannot be the name of a database")
    if not password:
        return address
    if not parts.user:
        raise ValueError("a password needs a user in the address, as in mongodb://user@host/apiserver")
    whole = once(parts.password, password, "a password")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{quote(parts.user, safe='')}:{quote(whole, safe='')}@{parts.hosts}/{parts.path}{query}"
