"""Scrolling through lists: `size` documents a call, each going on where the last one ended.

The web UI takes a list for changed when its scroll id does, so an id stays the same from page to page and the server
keeps how far it has come: in the documents, because the next page may be another server's to answer. An id that is not
known any more begins anew under another one, as does one that comes with another query.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver import answers
from apiserver.services.backend import Call, documents
from apiserver.services.expiring import new_id, oldest_id
from apiserver.services.queries import DEFAULT_PAGE_SIZE, Page, leave_out, page_of, sort_of
from apiserver.stores.documents.base import Document, DocumentStoreBusy, Filter
from apiserver.stores.documents.scoped import VisibleDocuments

SCROLLS = "scrolls"
#: How long a scroll is kept after its first page.
KEPT_SECONDS = 24 * 3600

_PAGING = ("page", "page_size", "scroll_id", "refresh_scroll", "size", "only_fields", "projection")


@dataclass(frozen=True, slots=True)
class Scroll:
    """A walk through what a query matches."""

    id: str
    query: str
    position: int | None = None
    """How many documents the caller has seen; None before the first page."""


@dataclass(frozen=True, slots=True)
class ScrolledPage(Page):
    """A page, and the scroll that it belongs to when the caller scrolls."""

    scroll: Scroll | None = None


async def scrolled_page(call: Call, request: Mapping[str, Any]) -> ScrolledPage:
    """The page that `page` and `page_size`, or `scroll_id` and `size`, ask for.

    With `refresh_scroll` it is all that the scroll has answered so far, once more.
    """
    if request.get("scroll_id") is None and request.get("size") is None:
        page = page_of(request)
        return ScrolledPage(page.skip, page.limit)
    size = request.get("size") or DEFAULT_PAGE_SIZE
    scroll = await _scroll(call, request)
    seen = scroll.position or 0
    return (
        ScrolledPage(0, max(seen, size), scroll) if request.get("refresh_scroll") else ScrolledPage(seen, size, scroll)
    )


async def find_page(
    view: VisibleDocuments,
    collection: str,
    request: Mapping[str, Any],
    page: Page,
    wanted: Filter,
    projection: Sequence[str] | None,
) -> list[Document]:
    """The documents of a page of those wanted, in the order of a request, and without what its `-fields` leave out."""
    found = await view.find(
        collection,
        wanted,
        projection=projection,
        sort=sort_of(request),
        skip=page.skip,
        limit=page.limit,
        counted=answers.counter(),
    )
    leave_out(request, found)
    return found


def scroll_answer(call: Call, page: ScrolledPage, returned: int) -> dict[str, str]:
    """What a list answers beside its documents: `{scroll_id}` if the caller scrolls. Its position is kept later."""
    scroll, position = page.scroll, page.skip + returned
    if scroll is None:
        return {}

    async def keep() -> None:
        # Whoever reads is answered even while nothing can be written.
        with contextlib.suppress(DocumentStoreBusy):
            if scroll.position is None:
                await documents(call).delete(SCROLLS, {"id": {"$lt": oldest_id(KEPT_SECONDS)}})
                await documents(call).insert(SCROLLS, {"id": scroll.id, "query": scroll.query, "position": position})
            elif scroll.position != position:
                await documents(call).update(SCROLLS, {"id": scroll.id}, {"$set": {"position": position}})

    call.afterwards.append(keep)
    return {"scroll_id": scroll.id}


async def _scroll(call: Call, request: Mapping[str, Any]) -> Scroll:
    """The scroll that the request goes on with, or a new one."""
    query = _fingerprint(request)
    if scroll_id := request.get("scroll_id"):
        found = await documents(call).find_one(SCROLLS, {"id": scroll_id, "query": query})
        if found is not None:
            return Scroll(scroll_id, query, found["position"])
    return Scroll(new_id(), query)


def _fingerprint(request: Mapping[str, Any]) -> str:
    """Names what a request asks for, whichever page of it."""
    query = {key: value for key, value in request.items() if key not in _PAGING}
    return hashlib.sha256(orjson.dumps(query, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
