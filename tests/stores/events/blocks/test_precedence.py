"""Servers write, compact and delete one series at once, and stop anywhere: no point is lost or doubled.

`EVENTS_EXAMPLES=5000 pytest tests/stores/events/blocks` looks longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from apiserver.events.model import Owner
from apiserver.stores.events.blocks.blocks import Block, Statement, Version
from apiserver.stores.events.blocks.precedence import parts, superseded
from tests.chance import examples

Points = dict[int, int]
ITERATIONS = st.integers(0, 5)
POINTS = st.dictionaries(ITERATIONS, st.integers(0, 9), min_size=1, max_size=3)
#: Which one of several.
NUMBER = st.integers(0, 9)
OWNER = Owner("company", "task")


def a_fragment(id: str, place: int, first: int, last: int) -> Block:
    return Block(OWNER, ("loss", "train"), id, Version(place, 1), first, last, 1)


def a_chunk(id: str, up_to: int, first: int, last: int, place: int | None = None) -> Block:
    """With a place, it brings its points."""
    statement = Statement(up_to, up_to if place is None else None, 0)
    return Block(OWNER, ("loss", "train"), id, Version(place or 0, 1), first, last, 1, statement)


def test_the_example() -> None:
    chunk, early, late = a_chunk("a", 7, 0, 99), a_fragment("f", 5, 90, 120), a_fragment("g", 9, 95, 105)
    assert parts([late, early, chunk]) == [(chunk, 0, 99), (early, 100, 120), (late, 95, 105)]
    assert superseded([late, early, chunk]) == []


def test_the_example_of_a_chunk_that_brings_points() -> None:
    chunk, brings, before = a_chunk("a", 7, 0, 99), a_chunk("b", 6, 50, 149, 8), a_fragment("f", 6, 120, 129)
    assert parts([before, brings, chunk]) == [(chunk, 0, 99), (brings, 50, 149)]
    assert superseded([before, brings, chunk]) == [before]


def test_a_chunk_that_brings_points_counts_until_a_statement_goes_up_to_its_place() -> None:
    brings, early, late = a_chunk("b", 50, 100, 199, 52), a_fragment("f", 51, 90, 110), a_fragment("g", 53, 190, 210)
    assert parts([late, brings, early]) == [(early, 90, 110), (brings, 100, 199), (late, 190, 210)]
    assert superseded([brings, a_chunk("c", 51, 0, 999)]) == []
    assert superseded([brings, a_chunk("c", 52, 0, 999)]) == [brings]
    assert superseded([brings], deleted=51) == []
    assert superseded([brings], deleted=53) == [brings]


def test_a_chunk_supersedes_what_was_written_up_to_its_place() -> None:
    chunk, before, at, after = a_chunk("a", 7, 0, 9), *(a_fragment(f"f{place}", place, 2, 9) for place in (6, 7, 8))
    assert superseded([chunk, before, at, after]) == [before, at]
    assert superseded([chunk, before, at, after], deleted=8) == [chunk, before, at]


def test_a_chunk_that_comes_late_does_not_count_where_another_one_knows_more() -> None:
    late, knows = a_chunk("z", 3, 0, 9), a_chunk("a", 6, 0, 4)
    assert parts([knows, late]) == [(knows, 0, 4), (late, 5, 9)]


def test_chunks_that_were_made_at_once_do_not_supersede_each_other() -> None:
    one, other = a_chunk("a", 7, 0, 9), a_chunk("b", 7, 0, 9)
    assert superseded([one, other]) == [one]


def test_a_chunk_may_count_on_both_sides_of_another_one() -> None:
    wide, narrow = a_chunk("a", 3, 0, 99), a_chunk("b", 5, 40, 59)
    assert parts([wide, narrow]) == [(wide, 0, 39), (narrow, 40, 59), (wide, 60, 99)]
    assert superseded([wide, narrow, a_chunk("c", 6, 0, 99)]) == [wide, narrow]


@dataclass
class Write:
    """A write that the store has given a place, and that others do not see yet."""

    place: int
    block: Block | None
    points: Points = field(default_factory=dict)


class Shard:
    """What a store keeps of one series. A reader sees what there is at a moment."""

    def __init__(self) -> None:
        self.places = 0
        self.under_way: list[Write] = []
        self.blocks: dict[str, Block] = {}
        self.points: dict[str, Points] = {}
        self.deletions: list[int] = []

    def begin(self, points: Points | None, up_to: int | None = None) -> None:
        """A write of points, or with None a deletion, gets its place. With `up_to`, a chunk brings the points."""
        self.places += 1
        place, block = self.places, None
        if points:
            ends, id = (min(points), max(points)), f"f{place * 7 % 10}{place}"
            block = a_fragment(id, place, *ends) if up_to is None else a_chunk(id, up_to, *ends, place)
        self.under_way.append(Write(place, block, points or {}))

    @property
    def ended_up_to(self) -> int:
        """The place up to which every write has ended."""
        return min([write.place for write in self.under_way], default=self.places + 1) - 1

    def end(self, write: Write) -> None:
        """Others see a write from now on."""
        self.under_way.remove(write)
        if write.block is None:
            self.deletions.append(write.place)
        else:
            self.put(write.block, write.points)

    def put(self, block: Block, points: Points) -> None:
        self.blocks[block.id] = block
        self.points[block.id] = points

    def read(self) -> Points:
        found: Points = {}
        for block, first, last in parts(self.blocks.values(), max(self.deletions, default=0)):
            found |= {at: value for at, value in self.points[block.id].items() if first <= at <= last}
        return found


class Servers(RuleBasedStateMachine):
    """Each rule is a step that a server may take, or after which it may stop for good."""

    def __init__(self) -> None:
        super().__init__()
        self.shard = Shard()
        self.ended: list[Write] = []
        self.chunks: list[tuple[Block, Points]] = []
        self.to_bring: list[tuple[Points, int]] = []
        self.deletable: list[str] = []
        self.made = 0

    @rule(points=POINTS)
    def write(self, points: Points) -> None:
        self.shard.begin(points)
        self.end(self.shard.under_way[-1])

    @precondition(lambda self: len(self.shard.under_way) < 3)
    @rule(points=POINTS)
    def begin_to_write(self, points: Points) -> None:
        self.shard.begin(points)

    @rule(points=POINTS)
    def begin_to_bring(self, points: Points) -> None:
        """Ask for the place first, then look whether something is there."""
        up_to, deleted = self.shard.ended_up_to, max(self.shard.deletions, default=0)
        there = parts(self.shard.blocks.values(), deleted)
        if all(last < min(points) or max(points) < first for _, first, last in there):
            self.to_bring.append((points, up_to))

    @precondition(lambda self: self.to_bring and len(self.shard.under_way) < 3)
    @rule(number=NUMBER, ends=st.booleans())
    def bring(self, number: int, ends: bool) -> None:
        self.shard.begin(*self.to_bring.pop(number % len(self.to_bring)))
        if ends:
            self.end(self.shard.under_way[-1])

    @precondition(lambda self: self.ended and len(self.shard.under_way) < 3)
    @rule()
    def begin_to_delete_the_owner(self) -> None:
        self.shard.begin(None)

    @precondition(lambda self: self.shard.under_way)
    @rule(number=NUMBER)
    def end_a_write(self, number: int) -> None:
        self.end(self.shard.under_way[number % len(self.shard.under_way)])

    def end(self, write: Write) -> None:
        self.shard.end(write)
        self.ended.append(write)

    @rule(first=ITERATIONS, count=ITERATIONS)
    def compact(self, first: int, count: int) -> None:
        self.shard.put(*self.compacted(first, first + count))

    @rule(first=ITERATIONS, count=ITERATIONS)
    def begin_to_compact(self, first: int, count: int) -> None:
        self.chunks.append(self.compacted(first, first + count))

    def compacted(self, first: int, last: int) -> tuple[Block, Points]:
        """Ask for the place first, then read."""
        self.made += 1
        chunk = a_chunk(f"c{self.made * 7 % 10}{self.made}", self.shard.ended_up_to, first, last)
        return chunk, {at: value for at, value in self.shard.read().items() if first <= at <= last}

    @precondition(lambda self: self.chunks)
    @rule(number=NUMBER)
    def put_a_chunk(self, number: int) -> None:
        self.shard.put(*self.chunks.pop(number % len(self.chunks)))

    @precondition(lambda self: self.shard.blocks)
    @rule()
    def delete_what_is_superseded(self) -> None:
        for one in superseded([*self.shard.blocks.values()], max(self.shard.deletions, default=0)):
            del self.shard.blocks[one.id]

    @precondition(lambda self: self.shard.blocks)
    @rule()
    def look_for_what_is_superseded(self) -> None:
        found = superseded([*self.shard.blocks.values()], max(self.shard.deletions, default=0))
        self.deletable += [one.id for one in found]

    @precondition(lambda self: self.deletable)
    @rule(number=NUMBER)
    def delete_one_of_these(self, number: int) -> None:
        self.shard.blocks.pop(self.deletable.pop(number % len(self.deletable)), None)

    @invariant()
    def every_point_is_there_once(self) -> None:
        expected: Points = {}
        for write in sorted(self.ended, key=lambda one: one.place):
            expected = expected | write.points if write.block else {}
        assert self.shard.read() == expected


TestServers = Servers.TestCase
TestServers.settings = settings(examples(75), stateful_step_count=50)
