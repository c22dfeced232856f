"""The files of tasks and models that are deleted or reset. The server deletes the files that it stores itself.

The SDK deletes a task's artifacts and models itself if its user wants that, and the files of its events. The web UI
deletes none. Only clients can delete files in object stores, so the answer names those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from urllib.parse import unquote, urlsplit

from apiserver.events.file_urls import urls_in
from apiserver.events.model import EventType, Owner, SamplePosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.fileserver.addresses import UNSENT, paths_of, task_of
from apiserver.rpc.reply import is_sdk
from apiserver.services.backend import Call
from apiserver.services.projects.files import may_use_file
from apiserver.stores.documents.query import Document, In, NotIn
from apiserver.stores.documents.scoped import CompanyDocuments

#: How many images, and how many plots, are read at once. A plot may have megabytes.
_PAGES = ((EventType.IMAGE, 1000), (EventType.PLOT, 50))


async def event_urls(call: Call, owners: Iterable[Owner]) -> set[str]:
    """The URLs of the files that the owners' debug images and plots show."""
    urls: set[str] = set()
    for owner in owners:
        for type, size in _PAGES:
            after: SamplePosition | None = None
            while page := await call.backend.events.samples(SeriesQuery(owner, type), PageQuery(size, after)):
                urls |= await asyncio.to_thread(urls_in, page)
                after = page[-1].position
    return urls


async def delete_replaced(call: Call, model: Document, uri: str) -> None:
    """Have the file of a draft deleted in some days, if an upload of its task has replaced it: the model gets `uri`.

    A file that does not lie in the folder of the task may be anybody's, so it stays.
    """
    before, after = paths_of(model.get("uri") or ""), paths_of(uri)
    is_own = any(task_of(path) == model["task"] for path in before) if model.get("task") else False
    is_sent = not any(path.endswith(tuple(UNSENT)) for path in after)
    if is_own and is_sent and not before & after and not model.get("ready"):
        await call.backend.file_deletions.add_replaced(
            call.identity.company, model["uri"], call.headers.get("host", "")
        )


async def delete_files(
    call: Call, *, shown: Collection[str], made: Collection[str], models: Collection[str] = ()
) -> None:
    """Have the server delete those of the files that it stores: `shown` by events, and `made` (artifacts and models).

    Files of other models than `models`, which are being deleted, stay. The deletions are stored when this returns, so
    they are done even after a crash.
    """
    company = CompanyDocuments(call.backend.documents, call.identity.company)
    urls = set(shown)
    if made and not is_sdk(call.headers):  # the SDK deletes them itself, if its user wants that
        others = {"uri": In(sorted(made)), "id": NotIn(sorted(models))}
        urls |= set(made) - {model["uri"] for model in await company.find("models", others, projection=["uri"])}
    if call.identity.grant.project is not None:
        urls = {url for url in urls if await may_use_file(call.backend, call.identity, _path_of(url))}
    if urls:
        await call.backend.file_deletions.add(call.identity.company, urls, call.headers.get("host", ""))


def _path_of(url: str) -> str:
    """The decoded path of a URL; "" if it is none, such as `http://[x`: clients report what they like."""
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""
