"""What tests leave to `make longer`: it runs what has the mark `longer`, which all other runs leave out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def beyond(some: Collection[Any], every: Iterable[Any]) -> list[Any]:
    """All values as parameters of a test. `make check` tests some of them, and `make longer` the others."""
    values = [*every]
    assert all(value in values for value in some)
    return [value if value in some else pytest.param(value, marks=pytest.mark.longer) for value in values]
