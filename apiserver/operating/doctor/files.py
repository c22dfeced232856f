"""Compares files on disk with the tasks, models and events that name them.

A file may be named by any host, as a server has several names. So a file counts as mentioned if its path is in a URL of
any host; and it counts as missing only if the URL's host is one of this server's.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from apiserver.events.model import Owner
from apiserver.fileserver.addresses import LOCAL, UNSENT, names_of, paths_of
from apiserver.operating.doctor.kept import Kept
from apiserver.stores.documents.inspection import DocumentInspection
from apiserver.stores.events.inspection import EventInspection
from apiserver.stores.files.listing import ListedFile, each_file
from apiserver.stores.files.names import InvalidName, disk_folder, disk_path
from apiserver.stores.inspection import Finding

#: A whole JSON text that is a URL, and a URL within a text.
_TEXT = re.compile(rb'"(https?://(?:[^"\\]|\\.)*)"')
_WITHIN = re.compile(rb'https?://[^\s"\\<>()\']+')
#: Collections that name files, beside the collections of files that are to be deleted or were.
_NOT_NAMING = ("deleted_files", "file_deletions", "file_hosts", "credentials", "sessions")


class Mentioned:
    """Paths of files that something names. Each takes some 60 bytes, as it is kept as a number."""

    def __init__(self) -> None:
        self._paths: set[int] = set()

    def add_texts(self, texts: Iterable[bytes]) -> None:
        """Add the paths in all URLs in these pieces of JSON."""
        for text in texts:
            if b"http" in text:
                for url in _urls_in(text):
                    self.add_url(url)

    def add_url(self, url: str) -> None:
        """Add the paths that the file of a URL may have, whatever its host is."""
        for name in paths_of(url):
            self.add_name(name)

    def add_name(self, name: str) -> None:
        """Add the file of this name."""
        try:
            self._paths.add(_number(str(disk_path(name))))
        except InvalidName:
            return

    def __contains__(self, file: ListedFile) -> bool:
        return _number(file.path) in self._paths


def _number(path: str) -> int:
    return int.from_bytes(blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _urls_in(text: bytes) -> Iterator[str]:
    for match in _TEXT.finditer(text):
        try:
            yield str(orjson.loads(match.group()))
        except orjson.JSONDecodeError:
            continue
    for match in _WITHIN.finditer(text):
        yield match.group().decode("utf-8", "replace")


async def add_documents(mentioned: Mentioned, documents: DocumentInspection) -> None:
    """Add what all documents name, and the files that are to be deleted anyway."""
    for part in await documents.held():
        if part.what == "documents" and part.name not in _NOT_NAMING:
            async for texts in documents.texts(part.name):
                mentioned.add_texts(texts)
    async for some in documents.each("file_deletions", ["name"]):
        for one in some:
            mentioned.add_name(str(one.get("name", "")))


class FilesOfOwners:
    """Adds files to the usage of their owners, and counts the files that nothing mentions."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._places = {owner: n for n, owner in enumerate(kept.usage.owners)}
        self.number = self.unmentioned = self.unmentioned_bytes = 0
        self.largest: list[tuple[int, str]] = []
        """Bytes and names of the largest files that nothing mentions."""

    def add(self, folder: Path, mentioned: Mentioned | None) -> None:
        """Add all files in a folder."""
        for file in each_file(folder):
            self.number += 1
            self._kept.file_bytes[self._owner(file)] += file.bytes
            if mentioned is not None and file not in mentioned:
                self.unmentioned += 1
                self.unmentioned_bytes += file.bytes
                self.largest = sorted([*self.largest, (file.bytes, file.name)], reverse=True)[:3]

    def _owner(self, file: ListedFile) -> int:
        """The place of the task in the file's name, which the SDK writes as `/project/task.id/artifacts/…`; or -1."""
        for part in file.parts[:-1]:
            place = self._places.get(Owner(file.company, part.rpartition(".")[2]))
            if place is not None:
                return place
        return -1


async def files_of(
    folder: Path, events: EventInspection, documents: DocumentInspection, kept: Kept, *, looking: bool
) -> FilesOfOwners:
    """Add the files to the usage. With `looking`, also count the files that nothing mentions, if that can be told."""
    mentioned = None
    samples = events.texts() if looking else None
    if samples is not None:
        mentioned = Mentioned()
        await add_documents(mentioned, documents)
        async for texts in samples:
            await asyncio.to_thread(mentioned.add_texts, texts)
    files = FilesOfOwners(kept)
    await asyncio.to_thread(files.add, folder, mentioned)
    return files


class NamedFiles:
    """Looks for the files of this server that models and artifacts name."""

    def __init__(self, folder: Path, documents: DocumentInspection) -> None:
        """`folder`: the folder of files."""
        self._folder = folder
        self._documents = documents
        self.unsent = 0
        """Files that did not come: their uploads go on, or have failed."""
        self.first_unsent = ""
        """The model or artifact whose file is the first of them."""

    async def missing(self) -> AsyncIterator[Finding]:
        """The files that a task or a model names, and the folder lacks."""
        hosts: dict[str, set[str]] = defaultdict(lambda: set(LOCAL))
        async for page in self._documents.each("file_hosts", ["company", "host"]):
            for document in page:
                hosts[str(document.get("company"))].add(str(document.get("host")))
        for collection, kind, fields in (
            ("models", "model", ["company", "uri"]),
            ("tasks", "task", ["company", "execution", "status"]),
        ):
            async for page in self._documents.each(collection, fields):
                for document in page:
                    company = str(document.get("company", ""))
                    for what, url in _files_of(document):
                        names = names_of(url, hosts[company])
                        if not names or any(_is_there(self._folder, company, name) for name in names):
                            continue
                        thing = f"{what}{kind} {document['id']}"
                        if document.get("status") == "in_progress" or UNSENT.intersection(names):
                            self.unsent += 1
                            self.first_unsent = self.first_unsent or thing
                            continue
                        yield Finding(
                            *("files", "missing-file", f"{collection}/{document['id']}"),
                            f"the file of {thing} is missing: {names[-1]}",
                            "it was lost, or it never came: the SDK names an artifact before it uploads the file, which"
                            " may fail, or be refused by a quota or a full disk. Upload it again, restore it from a"
                            " backup, or delete what names it",
                        )


def _files_of(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The files of a model or a task: how each is called in a message, and its URL."""
    if isinstance(document.get("uri"), str):
        yield "", document["uri"]
    execution = document.get("execution")
    artifacts = execution.get("artifacts") if isinstance(execution, dict) else None
    found = artifacts.values() if isinstance(artifacts, dict) else artifacts or ()
    for one in found:
        if isinstance(one, dict) and isinstance(one.get("uri"), str):
            yield f"the artifact {one.get('key')} of ", one["uri"]


def _is_there(folder: Path, company: str, name: str) -> bool:
    try:
        return (folder / disk_folder(company) / disk_path(name)).is_file()
    except (InvalidName, OSError):
        return False
