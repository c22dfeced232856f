"""Checks of events: what a read may answer, by what was sent, deleted and acknowledged before it and meanwhile.

Each client numbers its batches. A read tells how many events of each batch are there. The times of the calls say
whether a batch must be there, may be there, or must not be. For example, with times from left to right:

    write 1   ├────┤ done            read A has to answer 1, may answer 2 (it may have been done before A was), and must
    write 2       ├────── unknown    not answer 3. If it answers 2, a later read of the same client has to answer 2.
    read A           ├───┤
    write 3                 ├──┤     An event that was sent again after no answer came is there once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.robustness.history.operations import History, Operation, Outcome

#: The events of one batch of one client to one task.
Batch = tuple[str, int]


@dataclass(slots=True)
class _Sent:
    """What is known of a batch. A client may have sent it several times."""

    began: float
    acknowledged: float = math.inf
    """When it was acknowledged first."""
    at: str = ""
    """The server that acknowledged it first."""
    may_be_there: bool = False

    def add(self, call: Operation) -> None:
        """One more attempt."""
        self.may_be_there |= call.outcome is not Outcome.REFUSED
        if call.is_done and call.ended < self.acknowledged:
            self.acknowledged, self.at = call.ended, call.server


def wrong_events(history: History, strict: Collection[str], events: Mapping[str, int]) -> list[str]:
    """What reads answered that they must not have.

    strict: the servers that see at once what others acknowledged. events: how many events of each kind a batch has. A
    read asks for one kind.
    """
    wrong: list[str] = []
    deletions, reads = history.by_target("delete events"), history.by_target("read events")
    for task, writes in history.by_target("write").items():
        sent, of_task = _sent(writes), deletions.get(task, [])
        seen: dict[tuple[str, str], tuple[Operation, Mapping[Batch, int]]] = {}
        done = [one for one in reads.get(task, []) if one.is_done]
        for read in sorted(done, key=lambda one: one.ended):
            found: Mapping[Batch, int] = read.answer
            wrong += [f"{why}: {read}" for why in _of_read(read, found, sent, of_task, strict, events[read.what])]
            before = seen.get((read.client, read.what))
            if before is not None and not _deleted_between(of_task, before[0].began, read.ended):
                gone = [batch for batch in before[1] if batch not in found]
                if gone:
                    wrong.append(f"batches {gone[:5]} are gone, which a read before had shown: {read}")
            seen[read.client, read.what] = (read, found)
    return wrong


def _sent(writes: Iterable[Operation]) -> dict[Batch, _Sent]:
    found: dict[Batch, _Sent] = {}
    for call in writes:  # a client's calls are in their order: the first one that sent a batch began first
        found.setdefault((call.client, call.what), _Sent(call.began)).add(call)
    return found


def _of_read(
    read: Operation,
    found: Mapping[Batch, int],
    sent: Mapping[Batch, _Sent],
    deletions: Sequence[Operation],
    strict: Collection[str],
    events: int,
) -> Iterable[str]:
    """What is wrong with one answer."""
    for batch, count in found.items():
        known = sent.get(batch)
        if known is None or not known.may_be_there or known.began > read.ended:
            yield f"batch {batch} is there, and was not sent"
        elif count > events:
            yield f"batch {batch} has {count} events, and {events} were sent"
        elif _deleted_for_sure(known, read, deletions):
            yield f"batch {batch} is there, and was deleted"
    sees_all = read.server in strict
    for batch, known in sent.items():
        if known.acknowledged < read.began and (sees_all or known.at == read.server):
            if _deleted_between(deletions, known.began, read.ended):
                continue
            if found.get(batch, 0) < events:
                yield f"batch {batch} was acknowledged, and {found.get(batch, 0)} of {events} events are there"


def _deleted_between(deletions: Iterable[Operation], began: float, ended: float) -> bool:
    """Whether a deletion may have been done in this time."""
    return any(one.outcome is not Outcome.REFUSED and one.began < ended and one.ended > began for one in deletions)


def _deleted_for_sure(batch: _Sent, read: Operation, deletions: Iterable[Operation]) -> bool:
    """Whether a batch was acknowledged before a deletion began that was done before the read."""
    return any(one.is_done and batch.acknowledged < one.began and one.ended < read.began for one in deletions)


def wrong_newest(history: History, strict: Collection[str]) -> list[str]:
    """Reads that answer an old value of a point.

    Each client overwrites a point of its own again and again, with greater and greater numbers. A read answers the
    number of each client. It has to be at least the last one that was acknowledged before the read began.
    """
    wrong = []
    writes, deletions = history.by_target("write"), history.by_target("delete events")
    for read in history.by("read newest"):
        if not read.is_done or read.on in deletions:
            continue
        to_task = writes.get(read.on, [])
        for client in sorted({one.client for one in to_task}):
            calls = [one for one in to_task if one.client == client]
            known = [one for one in calls if one.is_done and one.ended < read.began]
            least = max((one.what for one in known if read.server in strict or one.server == read.server), default=-1)
            most = max((one.what for one in calls if one.began < read.ended), default=-1)
            if not least <= read.answer.get(client, -1) <= most:
                wrong.append(f"the newest point of {client} has to be {least} to {most}: {read}")
    return wrong
