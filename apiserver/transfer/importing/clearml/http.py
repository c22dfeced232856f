"""Plain HTTP with JSON bodies, over the transport that Elasticsearch's client uses; answers stay bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from elastic_transport import AsyncTransport, HttpHeaders, JsonSerializer, NodeConfig, TransportError, client_utils

from apiserver.common.server_replies import reason
from apiserver.transfer.importing.report import ImportFailed, SourceRefused

_TIMEOUT = 120.0
_JSON = "application/json"


class _Bytes(JsonSerializer):
    def loads(self, data: bytes) -> bytes:
        return data


class Http:
    """Sends requests to any of several equal hosts; `name` is what error messages call them."""

    def __init__(self, name: str, hosts: Sequence[str], *, ca: Path | None = None, verify: bool = True) -> None:
        self._name = name
        self._headers = HttpHeaders({"accept": _JSON, "content-type": _JSON})
        self._transport = AsyncTransport(
            [_node(host, ca, verify) for host in hosts],
            serializers={_JSON: _Bytes()},
            retry_on_timeout=True,
            meta_header=False,
        )

    def authorize(self, authorization: str) -> None:
        """Send this Authorization header from now on."""
        self._headers["authorization"] = authorization

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def ask(self, method: str, target: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object in the answer; ImportFailed if there is none."""
        with self._errors():
            answer: dict[str, Any] = orjson.loads(await self.send(method, target, body))
        return answer

    async def send(self, method: str, target: str, body: Mapping[str, Any] | None = None) -> bytes:
        """The body of the answer; SourceRefused if it is an error, ImportFailed if there is no answer."""
        with self._errors():
            answer = await self._transport.perform_request(
                method,
                target,
                headers=self._headers,
                body=None if body is None else orjson.dumps(body),
                request_timeout=_TIMEOUT,
            )
        found = answer.body if isinstance(answer.body, bytes) else b""
        if not 200 <= answer.meta.status < 300:
            raise SourceRefused(f"{self._name} answers {answer.meta.status} to {target}: {reason(found)}")
        return found

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (TransportError, OSError, orjson.JSONDecodeError) as error:
            raise ImportFailed(f"{self._name}: {error}") from error


def basic(user: str, password: str) -> str:
    """The Authorization header of a user and their password, for `authorize`."""
    return client_utils.basic_auth_to_header((user, password))


def _node(host: str, ca: Path | None, verify: bool) -> NodeConfig:
    secure: dict[str, Any] = {"verify_certs": verify, "ssl_show_warn": False, "ca_certs": str(ca) if ca else None}
    options = {name: value for name, value in secure.items() if value is not None} if host.startswith("https:") else {}
    node: NodeConfig = client_utils.url_to_node_config(host, use_default_ports_for_scheme=True).replace(**options)
    return node
