"""What every engine of events or documents tells of itself before its store is opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.inspection import Inspection, Scrubbed
from apiserver.stores.migrations import Step, Target
from apiserver.stores.snapshots import Snapshot

if TYPE_CHECKING:
    from apiserver.stores.events.base import EventStoreMoment

Store_co = TypeVar("Store_co", covariant=True)


class Engine(ABC, Generic[Store_co]):
    """An engine under the settings of one server. Making one checks its settings, and connects to nothing.

    Its module imports the client library only inside functions, as the command line reads the module at each start.
    """

    form: ClassVar[str] = "embedded"
    """What its addresses look like, for people."""
    shared: ClassVar[bool] = False
    """Whether several server processes can use the same store."""

    def __init__(self, settings: Settings, places: set[str]) -> None:
        """`places`: where its data are. If two engines have a place in common, they have the same data.

        A subclass takes the settings alone. ValueError says what is wrong with one of them, but never repeats an
        address, which may have a secret.
        """
        self.settings = settings
        self.places = places

    @abstractmethod
    def store(self, folder: DataFolder) -> Store_co:
        """The store, not open yet."""

    def snapshot(self, folder: DataFolder) -> Snapshot | None:
        """A moment of what the engine keeps in the folder, for backups; None if it keeps nothing there.

        Raises SnapshotError. A process whose own stores are open must not call it (`stores/sqlite_pages.py` says why).
        """
        return None

    def moment(self) -> EventStoreMoment | None:
        """The events at one moment, not open yet, for backups of what an engine keeps elsewhere than in the folder.

        None: the engine keeps its events in the folder, or keeps none.
        """
        return None

    def inspection(self, folder: DataFolder) -> AbstractAsyncContextManager[Inspection] | None:
        """A look at what the engine keeps, for `apiserver doctor`, while servers may use it; None: it shows nothing.

        An engine of events shows a `stores/events/inspection.py:EventInspection`, one of documents a
        `stores/documents/inspection.py:DocumentInspection`. Entering it raises the errors of the engine's store.
        """
        return None

    async def advice(self) -> list[str]:
        """What people should set in the engine itself, in a sentence each. An engine that does not answer gets none."""
        return []

    def scrub(self, folder: DataFolder) -> Callable[[str], Scrubbed] | None:
        """Checks a little of what is kept, in a thread, behind a place that it answered before; "": from the beginning.

        It raises the errors of the engine's store. None: the engine watches over its files itself.
        """
        return None

    def schema(self) -> AbstractAsyncContextManager[tuple[Target, list[Step]]] | None:
        """The schema and its steps, for `apiserver migrate`; None if the store migrates itself when it is opened."""
        return None
