"""What holds for every class of a store of events."""

from __future__ import annotations

import inspect

import pytest

from apiserver.stores.events.base import EventStore
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.plain_event_store import PlainEventStore


@pytest.mark.parametrize("store", [EmbeddedEventStore, ElasticsearchEventStore, PlainEventStore])
def test_arguments_are_called_as_the_protocol_calls_them(store: type) -> None:
    """A caller may name them, and mypy lets a class call them otherwise."""
    for name, method in inspect.getmembers(EventStore, inspect.isfunction):
        if not name.startswith("_"):
            assert _arguments(getattr(store, name)) == _arguments(method), name


def _arguments(method: object) -> list[str]:
    assert callable(method)
    return list(inspect.signature(method).parameters)
