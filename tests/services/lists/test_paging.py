"""From requests to pages."""

from __future__ import annotations

from apiserver.services.lists.paging import PageBounds, page_of


def test_pages() -> None:
    assert page_of({}) == PageBounds(0, 500)
    assert page_of({"page": 3, "page_size": 20}) == PageBounds(60, 20)
