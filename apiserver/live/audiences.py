"""Which tasks each audience watches, the status of each, and what each audience has to be told next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from apiserver.events.model import Owner
from apiserver.live import telling
from apiserver.live.statuses import Status
from apiserver.live.telling import Event
from apiserver.live.watchers import Audience, Subscription


class Audiences:
    """The audiences of one company.

    It alone changes an audience's tasks, and so its mark: the exclusive or of its tasks' marks.

        an audience watches tasks a and b    mark = a ^ b
        the status of a changes to a'        mark = a ^ b ^ (a ^ a') = a' ^ b
        b leaves                             mark = a'
    """

    def __init__(self) -> None:
        self._joinable: dict[Subscription, Audience] = {}
        self._open: set[Audience] = set()
        self._of_task: defaultdict[str, set[Audience]] = defaultdict(set)
        self._statuses: dict[str, Status] = {}
        """Of each task in `_of_task`."""
        self._due: set[Audience] = set()

    def __iter__(self) -> Iterator[Audience]:
        return iter(self._open)

    def __contains__(self, audience: Audience) -> bool:
        return audience in self._open

    # --- audiences -----------------------------------------------------------------------------------

    def of(self, asked: Subscription) -> Audience | None:
        """The audience of a subscription, for a newcomer. If a task is missing, None: the task may be there now."""
        audience = self._joinable.get(asked)
        return None if audience is None or audience.missing else audience

    def open(self, asked: Subscription, statuses: Mapping[str, Status]) -> Audience:
        """A new audience for a subscription, which watches the tasks that have statuses."""
        audience = self._joinable[asked] = Audience(asked, asked.tasks - statuses.keys())
        self._open.add(audience)
        for id, status in statuses.items():
            self._watch(audience, id, status)
        return audience

    def retire(self, audience: Audience) -> None:
        """Nobody is in this audience any more."""
        self._close_to_newcomers(audience)
        self._open.discard(audience)
        for id in list(audience.tasks):
            self._unwatch(audience, id)

    def _close_to_newcomers(self, audience: Audience) -> None:
        if self._joinable.get(audience.asked) is audience:
            del self._joinable[audience.asked]

    # --- tasks ---------------------------------------------------------------------------------------

    @property
    def tasks(self) -> Collection[str]:
        """The tasks that anybody watches."""
        return self._of_task.keys()

    def owners(self, tasks: Iterable[str]) -> set[Owner]:
        """The owners of these tasks' events."""
        return {Owner(self._statuses[id].company, id) for id in tasks}

    def status(self, id: str) -> Status | None:
        """The status of a task that anybody watches; None of others."""
        return self._statuses.get(id)

    def statuses(self, tasks: Iterable[str]) -> list[Event]:
        """The events that tell the statuses of these tasks, but for tasks that nobody watches any more."""
        return [self._statuses[id].event for id in tasks if id in self._statuses]

    def enter(self, audience: Audience, id: str, status: Status) -> None:
        """A task came into a project that the audience watches."""
        self._watch(audience, id, status)
        self._tell(audience, self._statuses[id].event)

    def leave(self, audience: Audience, id: str) -> None:
        """A task left the projects that the audience watches."""
        self._unwatch(audience, id)
        self._tell(audience, telling.gone(id))

    def update(self, id: str, status: Status) -> None:
        """Note the status of a watched task, and tell its audiences if it is another one than before."""
        before, self._statuses[id] = self._statuses[id], status
        if before.mark == status.mark:
            return
        self.tell(id, status.event)
        for audience in self._of_task[id]:
            audience.mark ^= before.mark ^ status.mark

    def lose(self, id: str) -> None:
        """There is no such task any more. Newcomers who name it get an audience of their own."""
        self.tell(id, telling.gone(id))
        for audience in list(self._of_task[id]):
            self._unwatch(audience, id)
            if id in audience.asked.tasks:
                self._close_to_newcomers(audience)

    def _watch(self, audience: Audience, id: str, status: Status) -> None:
        audience.tasks.add(id)
        self._of_task[id].add(audience)
        audience.mark ^= self._statuses.setdefault(id, status).mark

    def _unwatch(self, audience: Audience, id: str) -> None:
        audience.tasks.discard(id)
        audience.mark ^= self._statuses[id].mark
        self._of_task[id].discard(audience)
        if not self._of_task[id]:
            del self._of_task[id], self._statuses[id]

    # --- telling -------------------------------------------------------------------------------------

    def tell(self, task: str, *events: Event) -> None:
        """Tell these events to all who watch the task, in the next chunk."""
        for audience in self._of_task.get(task, ()):
            self._tell(audience, *events)

    def _tell(self, audience: Audience, *events: Event) -> None:
        audience.due += events
        self._due.add(audience)

    def take_due(self) -> set[Audience]:
        """Return the audiences that have events due, once: the caller tells them."""
        due, self._due = self._due, set()
        return due
