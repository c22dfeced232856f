"""Parses the addresses of the distributed engines in the settings. Nothing is sent to them.

Errors never repeat an address, as it may have a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

#: The setting for stores in the data folder, instead of an address.
EMBEDDED = "embedded"
DEFAULT_PREFIX = "events"

_ELASTICSEARCH_FORM = (
    "elasticsearch://[user[:password]@]host[:9200][,host…][/prefix][?tls=true&ca=/path&verify=false&api_key=…]"
)
_MONGO_FORM = "mongodb://[user[:password]@]host[:27017][,host…]/database[?option=…]"
_ELASTICSEARCH_PORT = 9200
_PARAMETERS = ("tls", "ca", "verify", "api_key")
#: Parameters of either engine that hold a secret.
_SECRET_PARAMETERS = ("api_key", "tlscertificatekeyfilepassword", "authmechanismproperties")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")
_MONGO_DATABASE = re.compile(r"[^/\\. \"$*<>:|?\x00]{1,63}")
_ENCODE = "in user and password, write '/', '?', '@', ':' and '%' as %2F, %3F, %40, %3A and %25"
_MASK = "********"


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


def elasticsearch(address: str, *, password: str = "", api_key: str = "") -> ElasticsearchAddress:
    """The parsed address, with `password` and `api_key` if they are given. ValueError says what is wrong with it."""
    parts = _parts(address)
    if parts.scheme != "elasticsearch":
        raise ValueError(f"neither '{EMBEDDED}' nor an address such as {_ELASTICSEARCH_FORM}")
    parameters = _parameters(parts.query)
    hosts = tuple(_host(host) for host in parts.hosts.split(","))
    tls = _flag(parameters, "tls", "ca" in parameters)
    if not tls and {"ca", "verify"} & parameters.keys():
        raise ValueError("'ca' and 'verify' are about TLS, which is off: add tls=true")
    prefix = parts.path or DEFAULT_PREFIX
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"the prefix {prefix!r} is not made of up to 64 lowercase letters, digits, '-' and '_'")
    found = ElasticsearchAddress(
        hosts=tuple(f"{'https' if tls else 'http'}://{host}" for host in hosts),
        prefix=prefix,
        user=parts.user,
        password=_once(parts.password, password, "a password"),
        api_key=_once(parameters.get("api_key", ""), api_key, "an API key"),
        ca=Path(parameters["ca"]) if parameters.get("ca") else None,
        verify=_flag(parameters, "verify", True),
    )
    if bool(found.user) != bool(found.password):
        raise ValueError("a user needs a password, and a password a user")
    if found.user and found.api_key:
        raise ValueError("give a user and password or an API key, not both")
    return found


def mongo(address: str, *, password: str = "") -> str:
    """The address, with the password in it if one is given. ValueError says what is wrong with it."""
    parts = _parts(address)
    if parts.scheme not in ("mongodb", "mongodb+srv"):
        raise ValueError(f"neither '{EMBEDDED}' nor an address such as {_MONGO_FORM}")
    if not parts.hosts:
        raise ValueError("the address names no host")
    if not parts.path:
        raise ValueError("the address ends with no database: add its name as in mongodb://host/apiserver")
    if not _MONGO_DATABASE.fullmatch(unquote(parts.path)):
        raise ValueError(f"{unquote(parts.path)!r} cannot be the name of a database")
    if not password:
        return address
    if not parts.user:
        raise ValueError("a password needs a user in the address, as in mongodb://user@host/apiserver")
    whole = _once(parts.password, password, "a password")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{quote(parts.user, safe='')}:{quote(whole, safe='')}@{parts.hosts}/{parts.path}{query}"


def masked(address: str) -> str:
    """The address with its secrets hidden."""
    head, separator, rest = address.partition("://")
    if not separator:
        return address
    authority, slash, tail = _split_authority(rest)
    userinfo, at, hosts = authority.rpartition("@")
    if ":" in userinfo:
        userinfo = f"{userinfo.partition(':')[0]}:{_MASK}"
    path, question, query = tail.partition("?")
    parameters = [item.partition("=") for item in query.split("&")]
    shown = "&".join(
        f"{name}{equals}{_MASK if value and name.lower() in _SECRET_PARAMETERS else value}"
        for name, equals, value in parameters
    )
    return f"{head}://{userinfo}{at}{hosts}{slash}{path}{question}{shown}"


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str
    user: str
    password: str
    hosts: str
    path: str
    query: str


def _parts(address: str) -> _Parts:
    """The parts of scheme://user:password@hosts/path?query. User and password are decoded. Missing parts are empty."""
    scheme, _, rest = address.partition("://")
    authority, _, tail = _split_authority(rest)
    userinfo, _, hosts = authority.rpartition("@")
    user, _, password = userinfo.partition(":")
    path, _, query = tail.partition("?")
    if "@" in path:
        raise ValueError(_ENCODE)
    return _Parts(scheme, unquote(user), unquote(password), hosts, path.strip("/"), query)


def _split_authority(rest: str) -> tuple[str, str, str]:
    """The text before the first "/" or "?"; that "/", or "" for a "?"; and the rest, which includes the "?"."""
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    slash = rest[end : end + 1] if rest[end : end + 1] == "/" else ""
    return rest[:end], slash, rest[end + len(slash) :]


def _parameters(query: str) -> dict[str, str]:
    items = (item.partition("=") for item in query.split("&") if item)
    parameters = {unquote(name): unquote(value) for name, _, value in items}
    unknown = sorted(parameters.keys() - set(_PARAMETERS))
    if unknown:
        raise ValueError(f"there is no parameter {unknown[0]!r}; there are {', '.join(_PARAMETERS)}")
    return parameters


def _host(host: str) -> str:
    found = _HOST.fullmatch(host)
    if not found or not 0 < int(found[2] or _ELASTICSEARCH_PORT) < 65536:
        raise ValueError(
            f"each host is a name or address with or without a port, as in node-1:9200,node-2:9200; {_ENCODE}"
        )
    return f"{found[1]}:{found[2] or _ELASTICSEARCH_PORT}"


def _flag(parameters: dict[str, str], name: str, default: bool) -> bool:
    value = parameters.get(name)
    if value is None:
        return default
    if value not in ("true", "false"):
        raise ValueError(f"'{name}' is true or false")
    return value == "true"


def _once(inside: str, beside: str, what: str) -> str:
    if inside and beside:
        raise ValueError(f"{what} is in the address and in a setting of its own: give it once")
    return inside or beside
