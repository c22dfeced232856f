"""Loads the stores of several servers, knows what was acknowledged, and tells whether they have exactly that.

A writer's batch n is the same whenever it is made: a point on each of its next iterations (sometimes many of them), a
point that overwrites one of an earlier batch, and log lines that share one timestamp. Readers look at everything again
and again. They must find what their server acknowledged before they began, nothing twice, and only what was sent.
Deleters fill an owner and delete all that it has, again and again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from apiserver.events.model import EventBatch, EventType, LogLine, LogPosition, Owner, ScalarPoints, ScalarPosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from tests.contract.event_stores import batch, lines, scalars

FIRST_TIME = 1_700_000_000_000
_POINTS, _MANY, _LINES = 10, 300, 3
_RISEN, _OVERWRITTEN = "risen", "overwritten"
#: So many iterations are overwritten again and again.
_PERIOD = 7
_PAGE = 5000
#: Seconds between two calls of a writer, a reader or a worker, so that nodes have time for their own work.
_PAUSE = 0.03
#: Seconds that anything is waited for: nodes that start leave little of a small machine to others.
_PATIENCE = 600

Result = TypeVar("Result")
#: Values of points by iterations.
Curve = dict[int, float]


class Store(Protocol):
    """What the load asks of a server's store; an EventStore has all of it."""

    async def add(self, batch: EventBatch) -> object: ...

    async def delete(self, owners: Sequence[Owner]) -> object: ...

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints: ...

    async def log_lines(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> list[LogLine]: ...

    async def log_count(self, series: SeriesQuery) -> int: ...


@dataclass(eq=False, kw_only=True)
class Caller:
    """Calls a store again and again."""

    store: Store
    done: int = 0
    """How many calls have ended well."""
    refused: int = 0
    """How often it was told to come back."""

    async def answer(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """The answer to a call, which is made again while the store is busy. A call that hangs is a TimeoutError."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                try:
                    found = await call()
                except EventStoreBusy:
                    self.refused += 1
                    await asyncio.sleep(_PAUSE)
                else:
                    self.done += 1
                    return found

    async def step(self) -> None:
        raise NotImplementedError


@dataclass(eq=False, kw_only=True)
class Writer(Caller):
    """Adds its batches one after another to an owner; several writers may share an owner."""

    owner: Owner
    name: str
    firsts: list[int] = field(default_factory=lambda: [0])
    """Batch n has the iterations from firsts[n] up to, and without, firsts[n + 1]."""
    overwrites: bool = True
    """Whether its batches have points that overwrite those of earlier ones."""

    async def step(self) -> None:
        made = self._batch(self.done)
        await self.answer(lambda: self.store.add(made))

    def _batch(self, n: int) -> EventBatch:
        first = self.firsts[n]
        if n + 1 == len(self.firsts):
            self.firsts.append(first + (_MANY if n % 20 == 19 else _POINTS))
        iters = range(first, self.firsts[n + 1])
        variant, owner, texts, digest = self.name, self.owner, self._texts(n), f"{self.name} {n}".encode()
        overwriting = scalars([n], iters=[n % _PERIOD], metric=_OVERWRITTEN, variant=variant, owner=owner)
        return batch(
            scalars([*map(_value, iters)], iters=iters, metric=_RISEN, variant=variant, owner=owner),
            *([overwriting] if self.overwrites else []),
            lines(texts, timestamps=[FIRST_TIME + n] * len(texts), digest=digest, variant=variant, owner=owner),
        )

    def _texts(self, n: int) -> list[str]:
        return [f"{self.name} {n}.{line}" for line in range(_LINES)]

    def check(self, found: Contents, least: int, most: int, first: int = 0) -> None:
        """Assert that all of the first `least` batches is there, and nothing but of the first `most`.

        first: those before this one were deleted.
        """
        risen = found.curves.get((_RISEN, self.name), {})
        assert risen == {iter: _value(iter) for iter in risen}
        assert risen.keys() >= {*range(self.firsts[first], self.firsts[least])}, "points are missing"
        assert risen.keys() <= {*range(self.firsts[first], self.firsts[most])}, "there are points that were not sent"
        overwritten = found.curves.get((_OVERWRITTEN, self.name), {})
        for iter in range(_PERIOD if self.overwrites else 0):
            newest = max(range(iter, least, _PERIOD), default=-1)
            value = overwritten.get(iter, -1)
            assert newest <= value < max(most, 1), "an older point has replaced a newer one"
            assert value in (-1, *range(iter, most, _PERIOD))
        sent = [text for n in range(first, most) for text in self._texts(n)]
        known = {*found.texts}
        assert known >= {text for n in range(first, least) for text in self._texts(n)}, "lines are missing"
        of_it = [text for text in found.texts if text.startswith(f"{self.name} ")]
        assert of_it == [text for text in sent if text in known], "lines are not in order"


def _value(iter: int) -> float:
    return (iter * 2_654_435_761 % 1_000_003) / 8


@dataclass(slots=True)
class Contents:
    """All that a store has of an owner."""

    curves: dict[tuple[str, str], Curve]
    """By metric and variant."""
    texts: list[str]


_NOTHING = Contents({}, [])


async def contents(store: Store, owner: Owner) -> Contents:
    """Read everything of an owner. AssertionError: something is there twice."""
    found = Contents({}, [])
    async for page in _point_pages(store, SeriesQuery(owner, EventType.SCALAR)):
        for series, iter, value in zip(page.series.tolist(), page.iters.tolist(), page.values.tolist(), strict=True):
            curve = found.curves.setdefault(page.names[series], {})
            assert iter not in curve, f"iteration {iter} is there twice"
            curve[iter] = value
    async for some in _line_pages(store, SeriesQuery(owner, EventType.LOG)):
        found.texts += [line.message for line in some]
    [(most, count)] = Counter(found.texts).most_common(1) or [("", 1)]
    assert count == 1, f"the line '{most}' is there {count} times"
    return found


async def _point_pages(store: Store, series: SeriesQuery) -> AsyncIterator[ScalarPoints]:
    """Pages of points up to one that is not full: writers go on, so there may always be more."""
    after: ScalarPosition | None = None
    while True:
        page = await store.scalar_points(series, PageQuery(_PAGE, after))
        yield page
        if len(page.iters) < _PAGE:
            return
        after = ScalarPosition(int(page.iters[-1]), *page.names[int(page.series[-1])])


async def _line_pages(store: Store, series: SeriesQuery) -> AsyncIterator[list[LogLine]]:
    after: LogPosition | None = None
    while True:
        page = await store.log_lines(series, PageQuery(_PAGE, after))
        yield page
        if len(page) < _PAGE:
            return
        after = page[-1].position


@dataclass(eq=False, kw_only=True)
class Reader(Caller):
    """Reads everything of each owner from one store, and checks it."""

    writers: Sequence[Writer]
    sees_all: bool = False
    """Whether the store must see at once what other servers acknowledged."""

    async def step(self) -> None:
        for owner in {writer.owner: None for writer in self.writers}:
            every = [writer for writer in self.writers if writer.owner == owner]
            least = [writer.done if self.sees_all or writer.store is self.store else 0 for writer in every]
            found = await self.answer(partial(contents, self.store, owner))
            for writer, acknowledged in zip(every, least, strict=True):
                writer.check(found, acknowledged, len(writer.firsts) - 1)


@dataclass(eq=False, kw_only=True)
class Deleter(Caller):
    """Fills an owner of its own and deletes all that it has. The store shows a batch, and then nothing."""

    writer: Writer
    """It writes for this owner, overwrites nothing, and calls the same store."""

    async def step(self) -> None:
        owner, first = self.writer.owner, self.writer.done
        await self.writer.step()
        found = await self.answer(partial(contents, self.store, owner))
        self.writer.check(found, first + 1, first + 1, first)
        await self.answer(lambda: self.store.delete([owner]))
        assert await self.answer(partial(contents, self.store, owner)) == _NOTHING


@dataclass(eq=False, kw_only=True)
class Worker(Caller):
    """Does work of a server in the background, such as compaction."""

    work: Callable[[], Awaitable[None]]

    async def step(self) -> None:
        await self.answer(self.work)


class Load:
    """Writers, readers, deleters and workers of several servers, and whoever waits for them."""

    def __init__(
        self, writers: Sequence[Writer], others: Sequence[Caller], another: AbstractAsyncContextManager[Store]
    ) -> None:
        self.writers = writers
        self._callers = [*writers, *others]
        self._another = another
        """The store of a server that begins when all others have ended."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All call while inside. What goes wrong in one of them ends all.

        Writers end with an acknowledged batch. Then another server must have exactly what was acknowledged.
        """
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for caller in self._callers:
                group.create_task(_repeat(caller, stop))
            yield
            stop.set()
        async with self._another as store:
            await self._check(store)

    async def goes_on(self, batches: int = 20) -> None:
        """Return when each has done more, and writers so many batches."""
        goals = [(caller, caller.done + (batches if isinstance(caller, Writer) else 2)) for caller in self._callers]
        await until(lambda: all(caller.done >= goal for caller, goal in goals))

    async def is_refused(self, times: int = 5) -> None:
        """Return when each writer was told to come back so many times."""
        goals = [(writer, writer.refused + times) for writer in self.writers]
        await until(lambda: all(writer.refused >= goal for writer, goal in goals))

    async def _check(self, store: Store) -> None:
        for owner in {writer.owner: None for writer in self.writers}:
            found = await contents(store, owner)
            of_owner = [writer for writer in self.writers if writer.owner == owner]
            for writer in of_owner:
                writer.check(found, writer.done, writer.done)
            assert len(found.texts) == sum(writer.done for writer in of_owner) * _LINES
            assert await store.log_count(SeriesQuery(owner, EventType.LOG)) == len(found.texts)
        for caller in self._callers:
            if isinstance(caller, Deleter):
                assert await contents(store, caller.writer.owner) == _NOTHING


async def _repeat(caller: Caller, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await caller.step()
        await asyncio.sleep(_PAUSE)


async def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(_PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is waited for may happen in a node
            await asyncio.sleep(0.02)
