"""The names of series, and which of them a selection picks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import chain

from apiserver.events.model import Selection

Name = tuple[str, str]  # metric, variant
Matcher = Callable[[str, str], bool]


def matcher(selection: Selection) -> Matcher:
    """Whether a series is selected; quick also for long selections."""
    if not selection:
        return lambda metric, variant: True
    variants: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for one in selection:
        variants[one.metric].append(one.variants)
    whole = {metric for metric, some in variants.items() if not all(some)}

    @cache
    def union(*some: tuple[str, ...]) -> frozenset[str]:  # a thousand metrics with the same thousand variants have one
        return frozenset(chain(*some))

    single = {metric: union(*some) for metric, some in variants.items()}
    return lambda metric, variant: metric in whole or variant in single.get(metric, ())
