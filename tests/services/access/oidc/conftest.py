"""A provider that may lie, and a server whose people sign in there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver.server.bounds import Bounds
from apiserver.settings.values import GroupRole
from tests.harness import Api, api_client, running_api
from tests.services.access.oidc.liar import CLIENT, SECRET, Liar, running_liar

#: What a browser says of a script of the server's own page.
OWN = {"origin": "http://testserver"}
GROUPS = (GroupRole("boss", "admin"), GroupRole("other lab", company="another company"), GroupRole("people"))


def settings_of(liar: Liar) -> dict[str, Any]:
    return {"oidc_issuer": liar.issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET, "oidc_name": "Lab ID"}


@dataclass(slots=True)
class Browser:
    """Somebody's browser, with its cookies."""

    client: httpx.AsyncClient
    liar: Liar
    came_back: dict[str, str] = field(default_factory=dict)
    """What the provider last sent it back with."""

    async def ask(self, endpoint: str, body: Mapping[str, Any], headers: Mapping[str, str] = OWN) -> httpx.Response:
        return await self.client.post(f"/{endpoint}", json=dict(body), headers=dict(headers))

    async def begin(self, next: str = "/") -> httpx.Response:
        return await self.ask("auth.begin_provider_login", {"next": next})

    async def go(self, next: str = "/") -> dict[str, str]:
        """Begin, and sign in at the provider."""
        answer = await self.begin(next)
        assert answer.status_code == 200, answer.text
        self.came_back = self.liar.sign_in(answer.json()["data"]["url"])
        return self.came_back

    async def finish(self, **changed: Any) -> httpx.Response:
        said = {**self.came_back, **changed}
        return await self.ask("auth.finish_provider_login", {k: v for k, v in said.items() if v is not None})

    async def sign_in(self, next: str = "/") -> httpx.Response:
        await self.go(next)
        return await self.finish()

    async def user(self) -> dict[str, Any]:
        """Who is signed in."""
        answer = await self.ask("users.get_current_user", {})
        assert answer.status_code == 200, answer.text
        user: dict[str, Any] = answer.json()["data"]["user"]
        return user

    async def is_signed_in(self) -> bool:
        return (await self.ask("users.get_current_user", {})).status_code == 200


@pytest.fixture
async def liar() -> AsyncIterator[Liar]:
    async with running_liar() as running:
        yield running


@pytest.fixture
async def settings() -> dict[str, Any]:
    """Settings beside those of the provider: tests override it."""
    return {}


@pytest.fixture
async def api(tmp_path: Path, liar: Liar, settings: dict[str, Any], bounds: Bounds | None) -> AsyncIterator[Api]:
    async with running_api(tmp_path / "data", bounds, **settings_of(liar), **settings) as running:
        yield running


@pytest.fixture
async def browser(api: Api, liar: Liar) -> AsyncIterator[Browser]:
    async with api_client(api.app) as client:
        yield Browser(client, liar)


@pytest.fixture
async def other(api: Api, liar: Liar) -> AsyncIterator[Browser]:
    async with api_client(api.app) as client:
        yield Browser(client, liar)
