"""Scrolling through lists: each call answers the next `size` documents.

The web UI takes a change of the scroll id for a change of the list. So the id stays the same from page to page, and the
server stores its position. It is stored as a document, because another server may answer the next page. A call with an
unknown id, or with another query than before, begins a new scroll with a new id.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.services.backend import Call, documents
from apiserver.services.lists.expiring_ids import new_id, oldest_id
from apiserver.services.lists.paging import DEFAULT_PAGE_SIZE, PageBounds, page_of
from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.documents.query import Less, Update

SCROLLS = "scrolls"
#: How long a scroll is stored after its first page.
KEPT_SECONDS = 24 * 3600

_PAGING = ("page", "page_size", "scroll_id", "refresh_scroll", "size", "only_fields", "projection")


@dataclass(frozen=True, slots=True)
class ListScroll:
    """A caller's way through the documents that match a query."""

    id: str
    query: str
    position: int | None = None
    """How many documents were answered so far; None before the first page."""


@dataclass(frozen=True, slots=True)
class ScrolledPage(PageBounds):
    """A page, and the scroll that it belongs to if the caller scrolls."""

    scroll: ListScroll | None = None


async def scrolled_page(call: Call, request: Mapping[str, Any]) -> ScrolledPage:
    """The page that `page` and `page_size`, or `scroll_id` and `size`, ask for.

    With `refresh_scroll` it is everything that the scroll has answered so far.
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


def scroll_answer(call: Call, page: ScrolledPage, returned: int) -> dict[str, str]:
    """The `{scroll_id}` of an answer if the caller scrolls. The position is stored after the answer was sent."""
    scroll, position = page.scroll, page.skip + returned
    if scroll is None:
        return {}

    async def keep() -> None:
        # Readers are answered even while the store cannot write.
        with contextlib.suppress(DocumentStoreBusy):
            if scroll.position is None:
                await documents(call).delete(SCROLLS, {"id": Less(oldest_id(KEPT_SECONDS))})
                await documents(call).insert(SCROLLS, {"id": scroll.id, "query": scroll.query, "position": position})
            elif scroll.position != position:
                await documents(call).update(SCROLLS, {"id": scroll.id}, Update(set={"position": position}))

    call.afterwards.append(keep)
    return {"scroll_id": scroll.id}


async def _scroll(call: Call, request: Mapping[str, Any]) -> ListScroll:
    """The scroll that the request continues, or a new one."""
    query = _fingerprint(request)
    if scroll_id := request.get("scroll_id"):
        scroll = await documents(call).find_one(SCROLLS, {"id": scroll_id, "query": query})
        if scroll is not None:
            return ListScroll(scroll_id, query, scroll["position"])
    return ListScroll(new_id(), query)


def _fingerprint(request: Mapping[str, Any]) -> str:
    """A hash of the query without its paging: the same for all pages."""
    query = {key: value for key, value in request.items() if key not in _PAGING}
    return hashlib.sha256(orjson.dumps(query, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
