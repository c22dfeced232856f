"""Parses addresses of Elasticsearch: elasticsearch://[user[:password]@]host[:9200][,host…][/prefix][?…]."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from apiserver.settings.engine_addresses import ENCODE, once, parts_of

DEFAULT_PREFIX = "events"

_PORT = 9200
_PARAMETERS = ("tls", "ca", "verify", "api_key")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class ElasticsearchAddress:
    """The nodes of one cluster, the prefix of our indices in it, and the credentials.

    `hosts` are URLs ("https://node-1:9200"); all indices are named `prefix` + "-…". Either user and password, or an API
    key, or neither. `ca` is a file of the certificates that are trusted (None: those of the system).
    """

    hosts: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca: Path | None = None
    verify: bool = True


def elasticsearch_address(address: str, *, password: str = "", api_key: str = "") -> ElasticsearchAddress:
    """The parsed address, with `password` and `api_key` if they are given. ValueError says what is wrong with it."""
    parts = parts_of(address)
    parameters = _parameters(parts.query)
    hosts = tuple(_host(host) for host in parts.hosts.split(","))
    tls = _flag(parameters, "tls", "ca" in parameters)
    if not tls and {"ca", "verify"} & parameters.keys():
        raise ValueError("'ca' and 'verify' are about TLS, which is off: add tls=true")
    prefix = parts.path or DEFAULT_PREFIX
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"the prefix {prefix!r} is not made of up to 64 lowercase letters, digits, '-' and '_'")
    parsed = ElasticsearchAddress(
        hosts=tuple(f"{'https' if tls else 'http'}://{host}" for host in hosts),
        prefix=prefix,
        user=parts.user,
        password=once(parts.password, password, "a password"),
        api_key=once(parameters.get("api_key", ""), api_key, "an API key"),
        ca=Path(parameters["ca"]) if parameters.get("ca") else None,
        verify=_flag(parameters, "verify", True),
    )
    if bool(parsed.user) != bool(parsed.password):
        raise ValueError("a user needs a password, and a password a user")
    if parsed.user and parsed.api_key:
        raise ValueError("give a user and password or an API key, not both")
    return parsed


def _parameters(query: str) -> dict[str, str]:
    items = (item.partition("=") for item in query.split("&") if item)
    parameters = {unquote(name): unquote(value) for name, _, value in items}
    unknown = sorted(parameters.keys() - set(_PARAMETERS))
    if unknown:
        raise ValueError(f"there is no parameter {unknown[0]!r}; there are {', '.join(_PARAMETERS)}")
    return parameters


def _host(host: str) -> str:
    match = _HOST.fullmatch(host)
    if not match or not 0 < int(match[2] or _PORT) < 65536:
        raise ValueError(
            f"each host is a name or address with or without a port, as in node-1:9200,node-2:9200; {ENCODE}"
        )
    return f"{match[1]}:{match[2] or _PORT}"


def _flag(parameters: dict[str, str], name: str, default: bool) -> bool:
    value = parameters.get(name)
    if value is None:
        return default
    if value not in ("true", "false"):
        raise ValueError(f"'{name}' is true or false")
    return value == "true"
