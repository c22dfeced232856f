"""When documents are looked at again."""

from __future__ import annotations

from typing import cast

from apiserver.live.task_documents import Looks
from apiserver.stores.documents.base import DocumentStore


class Store:
    """A store that no other server changes."""

    shared = False

    def __init__(self) -> None:
        self.number = 0

    def changes(self, collection: str, fields: object) -> int:
        return self.number


def looks() -> tuple[Store, Looks]:
    store = Store()
    looks = Looks(cast(DocumentStore, store))
    assert looks.begin()
    looks.end()
    looks.fail(0)  # so that the next one need not wait
    return store, looks


def test_nothing_is_looked_at_before_it_may_have_changed() -> None:
    store, again = looks()
    assert not again.begin()
    store.number += 1
    assert again.begin()


def test_the_next_look_waits_a_while() -> None:
    store, again = looks()
    store.number += 1
    again.fail(60)
    assert not again.begin()


def test_a_document_that_is_read_during_a_look_is_looked_at_again() -> None:
    store, again = looks()
    store.number += 1
    assert again.begin()
    again.forget()  # a newcomer's task, of which this look does not know
    again.end()
    again.fail(0)
    assert again.begin()
