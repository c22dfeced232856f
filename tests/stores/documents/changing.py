"""Updating a store and, by the dialect alone, the documents that it must hold then."""

from __future__ import annotations

import copy

import pytest

from apiserver.stores.documents.base import DocumentStore, InvalidDocument, InvalidFilter
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.query import Document, Filter, Update


async def changed(store: DocumentStore, model: list[Document], filter: Filter, update: Update) -> list[Document]:
    """Update the store; return the documents as they must be now."""
    condition, after = parse_filter(filter), copy.deepcopy(model)
    matches = [document for document in after if meets(condition)(document)]
    try:
        parsed = ParsedUpdate(copy.deepcopy(update))
        for document in matches:
            parsed.apply(document)
    except InvalidFilter:
        with pytest.raises((InvalidFilter, InvalidDocument)):
            await store.update("things", filter, update, many=True)
        return model
    try:
        assert await store.update("things", filter, update, many=True) == len(matches)
    except InvalidDocument:
        assert any(isinstance(document.get("key"), dict | list) for document in after)
        return model
    return after
