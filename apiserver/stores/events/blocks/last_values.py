"""The last values of series: only the last stretches are read, of all series at once.

Where blocks overlap, there may be fewer points than these blocks have. So if values are missing then, the stretches
before are read, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, takewhile

from apiserver.common.off_loop import off_loop
from apiserver.stores.events.blocks.encoding import curves_of
from apiserver.stores.events.blocks.loading import Loader, in_all
from apiserver.stores.events.blocks.stretches import OfSeries, Stretch, numbered, size_of
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.parts import in_parts


async def last_values(loader: Loader, found: OfSeries, n: int) -> dict[Name, list[float]]:
    """The last `n` values by iteration of each series, oldest first."""
    values: dict[Name, list[float]] = {name: [] for name in found}
    left = dict(found)
    while left:
        ends = {name: _end(some, n - len(values[name])) for name, some in left.items()}
        for part in in_parts(ends.items(), lambda one: size_of(one[1]), loader.bounds.points_at_a_time):
            names, some = zip(*part, strict=True)
            for number, more in (await _read(loader, some, n)).items():
                values[names[number]] = [*more, *values[names[number]]][-n:]
        rest = {name: some[: -len(ends[name])] for name, some in left.items() if len(values[name]) < n}
        left = {name: some for name, some in rest.items() if some}
    return values


def _end(stretches: Sequence[Stretch], missing: int) -> Sequence[Stretch]:
    """The last stretches of a series: as few as have so many points together, or all of them."""
    sizes = accumulate(one.size for one in reversed(stretches))
    taken = 1 + sum(1 for _ in takewhile(lambda size: size < missing, sizes))
    return stretches[-taken:]


async def _read(loader: Loader, series: Sequence[Sequence[Stretch]], n: int) -> dict[int, list[float]]:
    """The last `n` values in the stretches of each series, or all, by the number of the series."""
    loaded = await loader.curves(chain.from_iterable(series))

    def values() -> dict[int, list[float]]:
        numbers, curve, starts = in_all(numbered(series), loaded, curves_of)
        stops = [*starts[1:].tolist(), len(curve.values)]
        ends = zip(numbers.tolist(), starts.tolist(), stops, strict=True)
        return {number: curve.values[max(start, stop - n) : stop].tolist() for number, start, stop in ends}

    return await off_loop(sum(map(size_of, series)), values)
