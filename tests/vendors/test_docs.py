"""docs/guides/vendor-apis.md names what there is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from apiserver.server.endpoints import VENDORS
from apiserver.vendors import baseten, modelarts, pai
from apiserver.vendors.monitoring.quantities import Kind, Quantity
from apiserver.vendors.pai import MetricType

TEXT = (Path(__file__).parents[2] / "docs" / "guides" / "vendor-apis.md").read_text("utf-8")


@pytest.mark.parametrize("quantity", Quantity)
def test_every_scalar_that_is_read_is_named(quantity: Quantity) -> None:
    name = quantity.value[1] if quantity.kind is Kind.MACHINE else f"{quantity.kind}_N_{quantity.value[1]}"
    assert f"`{name}`" in TEXT
    assert f"`:monitor:{quantity.kind}`" in TEXT


@pytest.mark.parametrize("vendor", [modelarts, baseten, pai], ids=lambda vendor: str(vendor.__name__))
def test_every_code_is_named(vendor: ModuleType) -> None:
    codes = {answer[1] for answer in (*vendor.ERRORS.values(), vendor.INTERNAL)}
    assert [code for code in codes if f"`{code.replace('{parameter}', '…')}`" not in TEXT] == []


def test_every_path_and_metric_is_named() -> None:
    paths = {route.path.replace(":path}", "}") for vendor in VENDORS for route in vendor.routes}  # type: ignore[attr-defined]
    paths = {path for path in paths if not path.endswith("{path}")}
    assert len(paths) == 4
    assert all(path in TEXT for path in paths)
    assert all(f"`{name}`" in TEXT for name in MetricType)
