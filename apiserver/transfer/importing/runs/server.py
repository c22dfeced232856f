"""The server that runs are brought to: its API and its file server, called with one user's access key."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import quote

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from apiserver.common.server_replies import reason, why_silent
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.report import ImportFailed, SourceRefused
from apiserver.transfer.importing.runs.bodies import as_json

_SECONDS = 120.0
#: Bytes of a refusal that are read.
_REFUSAL = 2**16
#: A server that is overloaded or starts anew is asked again: after what it says, or ever longer.
_RETRIES = urllib3.Retry(
    total=12,
    backoff_factor=0.25,
    backoff_max=10,
    status_forcelist=(429, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is, and the access key."""

    api_url: str
    files_url: str
    key: str
    secret: str = field(repr=False)


def address(api_url: str | None, files_url: str | None, environment: Mapping[str, str]) -> Address:
    """The address from the command line, or else from the variables of ClearML's clients, or their configuration file.

    ValueError if there is no access key.
    """
    conf = _configuration(environment)
    key, secret = (
        environment.get(f"CLEARML_API_{name}_KEY") or conf.get(name.lower()) for name in ("ACCESS", "SECRET")
    )
    if not key or not secret:
        raise ValueError("set CLEARML_API_ACCESS_KEY and CLEARML_API_SECRET_KEY, or write them into ~/clearml.conf")
    api = api_url or environment.get("CLEARML_API_HOST") or conf.get("api") or "http://127.0.0.1:8008"
    files = files_url or environment.get("CLEARML_FILES_HOST") or (None if api_url else conf.get("files"))
    for one in (api, files):
        if one and not one.startswith(("http://", "https://")):
            raise ValueError(f"'{one}' is not an address such as http://127.0.0.1:8008")
    return Address(api.rstrip("/"), (files or f"{api.rstrip('/')}/files").rstrip("/"), key, secret)


def _configuration(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in clearml.conf; none without that file. ValueError if it cannot be read."""
    path = Path(environment.get("CLEARML_CONFIG_FILE") or Path(environment.get("HOME", "/"), "clearml.conf"))
    if not path.is_file():
        return {}
    from pyhocon import ConfigFactory
    from pyhocon.exceptions import ConfigException
    from pyparsing import ParseBaseException

    try:
        api = ConfigFactory.parse_file(str(path)).get_config("api")
        paths = {"access": "credentials.access_key", "secret": "credentials.secret_key"}
        paths |= {"api": "api_server", "files": "files_server"}
        return {name: api.get_string(place) for name, place in paths.items() if api.get(place, None)}
    except (ConfigException, ParseBaseException, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


class Readable(Protocol):
    """The content of a file that is sent, perhaps from its beginning again."""

    def read(self, size: int, /) -> bytes: ...
    def tell(self) -> int: ...
    def seek(self, position: int, /) -> int: ...


class Server:
    """The server at an address."""

    def __init__(self, where: Address) -> None:
        self.where = where
        headers = urllib3.make_headers(basic_auth=f"{where.key}:{where.secret}") | {"User-Agent": "apiserver-import"}
        self._pool = urllib3.PoolManager(headers=headers, timeout=_SECONDS)
        self._retries = _RETRIES

    def check(self) -> None:
        """Raise ImportFailed unless the server answers, and knows the access key."""
        self._retries = urllib3.Retry(1)
        self.call("users.get_current_user", {})
        self._retries = _RETRIES

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def call(self, endpoint: str, request: Document) -> Document:
        """The `data` of an endpoint's answer. SourceRefused if the server refuses, ImportFailed if it cannot answer."""
        return self.send(endpoint, as_json(request))

    def send(self, endpoint: str, body: bytes) -> Document:
        """As `call`, of a body."""
        answer = self._request("POST", f"{self.where.api_url}/{endpoint}", body, {"Content-Type": "application/json"})
        self._check(answer, endpoint)
        try:
            data: Document = orjson.loads(answer.data)["data"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise ImportFailed(f"what answers at {self.where.api_url} is no API: {reason(answer.data)}") from None
        return data

    def address_of(self, name: str) -> str:
        """The address of the file of that name."""
        return self.where.files_url + quote(name)

    def has_file(self, url: str, size: int) -> bool:
        """Whether there is a file of `size` bytes at an address of the server."""
        there = self._request("HEAD", url)
        return there.status == 200 and there.headers.get("Content-Length") == str(size)

    def put_file(self, url: str, content: Readable, size: int) -> None:
        """Upload a file of `size` bytes."""
        answer = self._request("PUT", url, content, {"Content-Length": str(size)})
        self._check(answer, url)

    def digests(self, task: str) -> dict[str, str]:
        """The SHA-256 digests of a task's artifacts, by address."""
        asked = {"id": [task], "only_fields": ["execution.artifacts"]}
        (found,) = self.call("tasks.get_all_ex", asked)["tasks"]
        artifacts = found.get("execution", {}).get("artifacts", ())
        return {one["uri"]: one["hash"] for one in artifacts if one.get("uri") and one.get("hash")}

    def fetch(self, url: str, path: Path) -> None:
        """Write what is at an address of the server to a file, which has its name once it is whole.

        Raises OSError, SourceRefused, or ImportFailed if the server cannot answer in that format at all.
        """
        part = path.with_name(f"{path.name}.part")
        try:
            answer = self._pool.request("GET", url, preload_content=False, retries=self._retries)
            try:
                if answer.status == 406:  # a package is missing there, without which it cannot answer so for any task
                    raise ImportFailed(reason(answer.read(_REFUSAL)))
                if answer.status != 200:
                    raise SourceRefused(f"{url} answers {answer.status}: {reason(answer.read(_REFUSAL))}")
                with part.open("wb") as file:
                    shutil.copyfileobj(answer, file)
            finally:
                answer.release_conn()
        except HTTPError as error:
            raise ImportFailed(f"the server at {self.where.api_url} does not answer: {why_silent(error)}") from error
        part.replace(path)

    def _request(
        self, method: str, url: str, body: bytes | Readable | None = None, headers: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        try:
            sent = {**self._pool.headers, **(headers or {})}
            return self._pool.request(method, url, body=cast(Any, body), headers=sent, retries=self._retries)
        except (HTTPError, OSError) as error:
            raise ImportFailed(f"the server at {self.where.api_url} does not answer: {why_silent(error)}") from error

    def _check(self, answer: urllib3.BaseHTTPResponse, what: str) -> None:
        if 200 <= answer.status < 300:
            return
        why = reason(answer.data)
        if answer.status in (401, 403):
            raise ImportFailed(f"the server refuses this access key: {why}")
        if answer.status >= 500 or answer.status == 429:
            raise ImportFailed(f"the server cannot answer now ({answer.status}): {why}")
        raise SourceRefused(f"{what}: {why}")
