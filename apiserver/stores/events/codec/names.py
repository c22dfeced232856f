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
    for names in selection:
        variants[names.metric].append(names.variants)
    whole = {metric for metric, variants_of_metric in variants.items() if not all(variants_of_metric)}

    @cache
    def union(*parts: tuple[str, ...]) -> frozenset[str]:  # a thousand metrics with the same thousand variants have one
        return frozenset(chain(*parts))

    single = {metric: union(*variants_of_metric) for metric, variants_of_metric in variants.items()}
    return lambda metric, variant: metric in whole or variant in single.get(metric, ())
