"""How every `get_all` turns its request into a query of documents: filter, fields, order and page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.common import answers
from apiserver.services.lists.conditions import QuerySpec, build_filter
from apiserver.services.lists.fields import Fields
from apiserver.services.lists.order import sort_of
from apiserver.services.lists.paging import PageBounds
from apiserver.stores.documents.query import Filter, FindQuery, all_of


def list_query(
    request: Mapping[str, Any], spec: QuerySpec, fields: Fields, page: PageBounds, *also: Filter
) -> FindQuery:
    """The query for a page of the documents that a request asks for, and that meet `also`."""
    filter = all_of([build_filter(request, spec), *also])
    return FindQuery(filter, fields.read, sort_of(request), page.skip, page.limit, answers.counter())
