"""The order that a `get_all` asks for by `order_by`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from apiserver.services.documents.keys import escape_path
from apiserver.services.lists.limits import MOST_SORTED, at_most

#: The path of one whole hyperparameter or metadata item.
_PARAMETER = re.compile(r"hyperparams\.[^.]+\.[^.]+|metadata\.[^.]+")


def sort_of(
    request: Mapping[str, Any], default: tuple[tuple[str, int], ...] = (("created", 1),)
) -> list[tuple[str, int]]:
    """The sort order that `order_by` asks for ("-" before a field: descending). Parameters sort by their values."""
    fields = request.get("order_by") or []
    fields = at_most(MOST_SORTED, [fields] if isinstance(fields, str) else fields, "order_by")
    return [
        (f"{path}.value" if _PARAMETER.fullmatch(path) else path, -1 if field.startswith("-") else 1)
        for field in fields
        if (path := escape_path(field.lstrip("-"))) and not path.startswith("@")
    ] or list(default)
