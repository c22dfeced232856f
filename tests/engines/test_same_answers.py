"""On Elasticsearch and MongoDB a server answers what it answers on its embedded stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engines.calls import make_all
from tests.harness import running_api

pytestmark = pytest.mark.anyio


async def _answers(folder: Path, **settings: Any) -> dict[str, Any]:
    async with running_api(folder, **settings) as api:
        return await make_all(api)


async def test_every_call_is_answered_as_on_embedded_stores(tmp_path: Path, shared_engines: dict[str, Any]) -> None:
    embedded = await _answers(tmp_path / "embedded")
    assert len(embedded) >= 150
    answered = await _answers(tmp_path / "engines", **shared_engines)
    differ = [name for name in embedded if embedded[name] != answered[name]]
    assert not differ, {name: (embedded[name], answered[name]) for name in differ[:1]}
