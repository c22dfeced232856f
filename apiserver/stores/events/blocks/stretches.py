"""One series of blocks as readers see it: stretches of iterations, each with the parts of blocks that count there.

Stretches do not overlap. For example:

    chunk a       iterations 0 to 99      stretch 0 to 99: a, alone
    chunk b       100 to 199              stretch 100 to 210: b, and over it f
    fragment f    150 to 210
    fragment g    300                     stretch 300: g, alone

Where a block is alone, it tells how many points there are, and its sums may stand for them. Elsewhere, points have to
be read and laid over each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from apiserver.events.model import SINGLE_VALUE_ITERATION
from apiserver.events.queries import Range
from apiserver.stores.events.blocks.blocks import Block, Found
from apiserver.stores.events.blocks.precedence import BlockPart, parts
from apiserver.stores.events.codec.names import Name


class Stretch(NamedTuple):
    """Parts of blocks that overlap. If several have a point of an iteration, that of the last counts."""

    first: int
    last: int
    parts: Sequence[BlockPart]

    @property
    def alone(self) -> Block | None:
        """The only block, if there is one, and if it counts on all of its iterations."""
        block = self.parts[0].block
        whole = len(self.parts) == 1 and self.first == block.first and self.last == block.last
        return block if whole else None

    @property
    def chunk(self) -> Block | None:
        """The only block, if it is a chunk. It has columns that tell of its points."""
        block = self.alone
        return block if block is not None and block.statement is not None else None

    @property
    def may_have_single_value(self) -> bool:
        """Whether the iteration of single values is among these."""
        return self.first <= SINGLE_VALUE_ITERATION <= self.last

    def meets(self, range: Range) -> bool:
        """Whether they have iterations in common."""
        return self.first <= range.greatest and range.least <= self.last

    @property
    def size(self) -> int:
        """The number of points; if no block is alone, there may be fewer."""
        return sum([part.block.count for part in self.parts])


def size_of(some: Sequence[Stretch]) -> int:
    """The number of points of the stretches of a series, as `Stretch.size` has it."""
    return sum([one.size for one in some])


#: The stretches of each series, ascending; series by name.
OfSeries = Mapping[Name, Sequence[Stretch]]


class Numbered(NamedTuple):
    """A stretch of the series with this number."""

    series: int
    stretch: Stretch


def numbered(series: Iterable[Sequence[Stretch]]) -> list[Numbered]:
    """All stretches, with the numbers of their series: 0, 1, 2 …"""
    return [Numbered(number, one) for number, some in enumerate(series) for one in some]


def stretches(found: Found) -> OfSeries:
    """The stretches of each series of which something counts."""
    by_name: dict[Name, list[Block]] = {}
    for block in found.counting:
        by_name.setdefault(block.series, []).append(block)
    return {name: _stretches(by_name[name]) for name in sorted(by_name)}


def _stretches(blocks: Sequence[Block]) -> list[Stretch]:
    ascending = sorted(blocks, key=lambda one: one.first) if len(blocks) > 1 else blocks
    if all(one.last < next.first for one, next in pairwise(ascending)):
        return [Stretch(one.first, one.last, (BlockPart(one, one.first, one.last),)) for one in ascending]
    counting = parts(blocks)
    groups: list[tuple[int, int, list[int]]] = []
    for number in sorted(range(len(counting)), key=lambda number: counting[number].first):
        _, first, last = counting[number]
        if groups and first <= groups[-1][1]:
            begin, end, numbers = groups[-1]
            groups[-1] = (begin, max(end, last), [*numbers, number])
        else:
            groups.append((first, last, [number]))
    return [Stretch(first, last, [counting[one] for one in sorted(numbers)]) for first, last, numbers in groups]
