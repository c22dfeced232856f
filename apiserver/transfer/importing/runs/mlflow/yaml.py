"""Reads MLflow's `meta.yaml`: one level of names with texts, numbers, or nothing."""

from __future__ import annotations

import yaml

#: Parses in C where PyYAML has that, some ten times as fast.
_LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
#: A token costs as much as it is deep: 36 s for 100,000 times "[".
_DEEPEST = 50


def flat_yaml(text: str) -> dict[str, str]:
    """The texts and numbers of a mapping as they are written; "" stands for nothing. Raises ValueError.

    Nested values are left out, and aliases are not followed, so nothing grows.
    """
    entries: dict[str, str] = {}
    depth, name = 0, None
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if depth == 1 and isinstance(event, yaml.NodeEvent):
                value = _value(event)
                if name is None:
                    name = value or ""
                else:
                    if value is not None:
                        entries[name] = value
                    name = None
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError("it is nested too deep")
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    return entries


def _value(event: yaml.NodeEvent) -> str | None:
    """The text of a scalar; None for anything else."""
    if not isinstance(event, yaml.ScalarEvent):
        return None
    is_nothing = not event.style and event.value in ("null", "~")
    return "" if is_nothing else str(event.value)
