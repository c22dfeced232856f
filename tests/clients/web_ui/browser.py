"""A browser that shows the web UI: it calls the API from the UI's origin, and keeps the cookie that it is given."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import httpx

from tests.harness import PATIENCE

#: Newer than any there is, as the UI asks for it.
VERSION = "999.0"


class Browser:
    """One that shows a UI of `origin`, another one than the API's."""

    def __init__(self, api_url: str, origin: str) -> None:
        self.origin = origin
        headers = {"Origin": origin, "Referer": f"{origin}/", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}
        # Without TLS, for which it would read certificates for long.
        self._client = httpx.Client(base_url=api_url, headers=headers, timeout=PATIENCE, verify=False)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def send(self, endpoint: str, body: Any = None, headers: dict[str, str] | None = None) -> httpx.Response:
        """POST `body` as JSON; None: nothing, and no Content-Type."""
        return self._client.post(f"/v{VERSION}/{endpoint}", json=body, headers=headers)

    def call(self, endpoint: str, body: Any = None, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """`data` of the answer, which the browser must let the UI read."""
        response = self.send(endpoint, body, headers)
        assert response.status_code == 200, f"{endpoint} {body}: {response.text[:1000]}"
        assert response.headers["Access-Control-Allow-Origin"] == self.origin
        assert response.headers["Access-Control-Allow-Credentials"] == "true"
        data: dict[str, Any] = response.json()["data"]
        return data

    def preflight(self, endpoint: str, *headers: str) -> httpx.Response:
        """What a browser asks before it sends JSON, or these headers, to another origin."""
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": ", ".join(headers)}
        return self._client.options(f"/v{VERSION}/{endpoint}", headers=asked)

    def cookies(self) -> dict[str, str]:
        """The cookies that it keeps, by name."""
        return dict(self._client.cookies)
