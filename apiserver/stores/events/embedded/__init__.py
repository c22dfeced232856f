"""The embedded event store: columns in a journal, in memory and in one SQLite file."""

from apiserver.stores.events.embedded.store import EmbeddedEventStore

__all__ = ["EmbeddedEventStore"]
