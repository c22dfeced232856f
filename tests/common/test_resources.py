"""Resources: found in a checkout. That an installed package has them is tested by building one (`.ci/smoke`)."""

from __future__ import annotations

import pytest

from apiserver.common import resources


@pytest.mark.parametrize("name", ["schemas", "schemas/events.conf", "migrations"])
def test_what_ships_is_found(name: str) -> None:
    assert resources.path(name).exists()


def test_what_does_not_ship_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="nonsense is missing"):
        resources.path("nonsense")
