"""Ranges of numbers, for groups of tasks by a value that differs in nearly all of them, such as a learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby


def ranges_of(texts: Iterable[str], count: int) -> dict[str, str]:
    """For each text that is a number, the name of its range: `0.001 … 0.01`, or `0.1` of a single value.

    There are at most `count` ranges, with about as many of the texts in each. Equal numbers are in the same one. The
    ranges follow each other from the least number to the greatest, and so do the entries of the answer.
    """
    numbers = sorted((number, text) for text in texts if (number := _number(text)) is not None)
    ranges: dict[int, list[tuple[float, str]]] = {}
    before = 0
    for _, same in groupby(numbers, key=lambda pair: pair[0]):
        equal = list(same)
        middle = before + len(equal) / 2
        ranges.setdefault(int(middle / len(numbers) * count), []).extend(equal)
        before += len(equal)
    short = _names(ranges.values(), 4)
    names = short if len(set(short)) == len(short) else _names(ranges.values(), 17)
    return {text: name for name, equal in zip(names, ranges.values(), strict=True) for _, text in equal}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _names(ranges: Iterable[list[tuple[float, str]]], digits: int) -> list[str]:
    ends = [tuple(f"{number:.{digits}g}" for number, _ in (some[0], some[-1])) for some in ranges]
    return [least if least == greatest else f"{least} … {greatest}" for least, greatest in ends]
