"""The page that a `get_all` asks for by `page` and `page_size`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.common.errors import validation_error

#: How many documents a page has if the request does not say.
DEFAULT_PAGE_SIZE = 500
#: The largest number of documents to skip: stores count in 64 bits.
FURTHEST = 2**62


@dataclass(frozen=True, slots=True)
class PageBounds:
    """Which of the matching documents are answered."""

    skip: int
    limit: int


def page_of(request: Mapping[str, Any]) -> PageBounds:
    """The page that `page` and `page_size` ask for."""
    size = request.get("page_size") or DEFAULT_PAGE_SIZE
    skip = (request.get("page") or 0) * size
    if skip > FURTHEST:
        raise validation_error("is too large", field="page")
    return PageBounds(skip, size)
