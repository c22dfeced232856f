"""The document store of the settings, opened for a command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from apiserver.cli.command import CommandError
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores.engines import document_engine

if TYPE_CHECKING:
    from apiserver.stores.data_folder import DataFolder
    from apiserver.stores.documents.base import DocumentStore

Result = TypeVar("Result")


def ready_folder(settings: Settings) -> DataFolder:
    """The data folder; DataFolderError if it is not there, cannot be used, or is a newer release's."""
    from apiserver.stores import formats
    from apiserver.stores.data_folder import DataFolder

    folder = DataFolder(settings.data)
    folder.require()
    folder.make()
    formats.require(settings)
    return folder


def with_documents(settings: Settings, work: Callable[[DocumentStore], Awaitable[Result]]) -> Result:
    """The result of `work`, which gets the opened document store of the settings. A server may be running on it."""
    from apiserver.services.access.defaults import ensure_defaults
    from apiserver.stores.data_folder import DataFolder, DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError

    async def run() -> Result:
        folder = ready_folder(settings) if settings.documents == EMBEDDED else DataFolder(settings.data)
        documents = document_engine(settings).store(folder)
        await documents.open()
        try:
            await ensure_defaults(documents, settings)
            return await work(documents)
        finally:
            await documents.close()

    try:
        return asyncio.run(run())
    except (DataFolderError, DocumentStoreError) as error:
        raise CommandError(str(error)) from error
