"""Finds what is wrong with the settings of retention before anything is to be deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from apiserver.common.extras import installed_by
from apiserver.operating.retention.run import RetentionError
from apiserver.settings.retention_rules import RetentionRule
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore


async def warnings(settings: Settings, documents: DocumentStore) -> list[str]:
    """The warnings of a starting server about retention: a sentence each."""
    sentences = await unknown_projects(settings.retention, documents)
    if settings.retention and settings.retention_every:
        try:
            await asyncio.to_thread(check_archive, settings)
        except RetentionError as error:
            sentences.append(str(error))
    return sentences


async def unknown_projects(rules: Sequence[RetentionRule], documents: DocumentStore) -> list[str]:
    """The rules whose project is not there, in a sentence each. It may be made later."""
    return [
        f"retention: rule {number}: there is no project {rule.project!r}"
        for number, rule in enumerate(rules, 1)
        if rule.project and "*" not in rule.project and not await documents.count("projects", {"name": rule.project})
    ]


def check_archive(settings: Settings) -> None:
    """RetentionError if there is to be an archive that cannot be written. The folder is not made yet."""
    if not settings.retention_archive:
        return
    if find_spec("arro3") is None:
        raise RetentionError(f"the archive needs the extra parquet: {installed_by('parquet')}")
    folder = Path(settings.retention_archive)
    try:
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        with TemporaryFile(dir=nearest) as file:
            file.write(b"x")
    except OSError as error:
        raise RetentionError(f"retention_archive: {str(folder)!r} cannot be written to: {error.strerror}") from error
