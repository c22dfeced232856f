"""Types that values of settings have, and how each is read of text, of a table in TOML, or of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NewType

from apiserver.common import passwords
from apiserver.common.ip_addresses import Network
from apiserver.settings.retention_rules import RetentionRule, rules_of

#: The part of an e-mail address behind the "@", in lower case.
Domain = NewType("Domain", str)


@dataclass(frozen=True, slots=True)
class FixedUser:
    """A user in the settings, who logs in with a password."""

    name: str
    password: str = field(repr=False)
    """The hash of the password, as `apiserver user hash` prints it."""
    role: str = "user"
    given_name: str = ""
    family_name: str = ""
    email: str = ""
    id: str = ""
    """The id of an existing user who gets this name and password."""


@dataclass(frozen=True, slots=True)
class GroupRole:
    """What members of a group of the provider are here."""

    group: str
    """The group's name as the provider says it; `*` for everybody."""
    role: str = "user"
    company: str = ""
    """The id of a company; the default company if it is empty."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much a task, project, user or company may have; 0: as much as it likes."""

    of: str
    """What it is for: one of QUOTAS_OF."""
    id: str = ""
    """For which one: then this quota is in place of the one for all others."""
    bytes: int = 0
    """Bytes of its events and files, on disk."""
    series: int = 0
    """Scalar series, and series of plots, images and vectors."""
    events_per_second: int = 0


QUOTAS_OF = ("task", "project", "user", "company")
#: Units of sizes, in bytes.
_UNITS = {"b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for unit, base in (("b", 1000), ("ib", 1024))
}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)

#: The roles that settings may give.
_ROLES = ("user", "admin")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _whole_number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"{value!r} is not a whole number")
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number") from None


def _yes_or_no(value: object) -> bool:
    if value not in (True, False, "true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return value in (True, "true")


def _path(value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not _text(value):
        raise ValueError("the path is empty")
    return Path(_text(value))


def _origins(value: object) -> tuple[str, ...]:
    """Web origins: comma-separated text, or a list of texts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError(f"{value!r} is not a list of origins")
    origins = tuple(_text(item).strip().rstrip("/") for item in items if item != "")
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if scheme not in ("http", "https") or not separator or not host or "/" in host or "*" in host:
            raise ValueError(f"{origin!r} is not an origin such as https://ui.example.org")
    return origins


def _networks(value: object) -> tuple[Network, ...]:
    """Addresses and networks: comma-separated text, or a list of texts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError(f"{value!r} is not a list of addresses and networks")
    return tuple(ip_network(_text(item).strip()) for item in items if item != "")


def _users(value: object) -> tuple[FixedUser, ...]:
    """Users with passwords."""
    if isinstance(value, tuple):
        return value
    users = tuple(_user(item) for item in _tables(value, "users"))
    if len({user.name for user in users}) < len(users):
        raise ValueError("two users have the same name")
    return users


def _user(item: object) -> FixedUser:
    table = _table(item, FixedUser, "a user", "name = …, password = …")
    passwords.check_name(table.get("name", ""))
    if table.get("role", "user") not in _ROLES:
        raise ValueError(f"{table['name']}: role: neither user nor admin")
    try:
        passwords.check_hash(table.get("password", ""))
    except ValueError as error:
        raise ValueError(f"{table['name']}: password: {error}") from None
    return FixedUser(**table)


def _groups(value: object) -> tuple[GroupRole, ...]:
    """What groups of the provider are here."""
    if isinstance(value, tuple):
        return value
    return tuple(_group(item) for item in _tables(value, "groups"))


def _group(item: object) -> GroupRole:
    table = _table(item, GroupRole, "a group", "group = …, role = …")
    if not table.get("group"):
        raise ValueError("a group needs its name, as in {group = …, role = …}")
    if table.get("role", "user") not in _ROLES:
        raise ValueError(f"{table['group']}: role: neither user nor admin")
    return GroupRole(**table)


def _quotas(value: object) -> tuple[Quota, ...]:
    """Bounds of what is kept and sent."""
    if isinstance(value, tuple):
        return value
    quotas: dict[tuple[str, str], Quota] = {}
    for number, item in enumerate(_tables(value, "quotas"), 1):
        try:
            quota = _quota(item)
            if (quota.of, quota.id) in quotas:
                raise ValueError("one before it is for the same: give all bounds in one")
        except ValueError as error:
            raise ValueError(f"quota {number}: {error}") from None
        quotas[quota.of, quota.id] = quota
    return tuple(quotas.values())


def _quota(item: object) -> Quota:
    if not isinstance(item, dict):
        raise ValueError("a quota is a table, such as {of = task, series = 100000}")
    names = [known.name for known in fields(Quota)]
    if unknown := item.keys() - set(names):
        raise ValueError(f"a quota has no field {min(unknown)}, only {', '.join(names)}")
    if "of" not in item:
        raise ValueError(f"of: it is missing; give one of {', '.join(QUOTAS_OF)}")
    if item["of"] not in QUOTAS_OF:
        raise ValueError(f"of: {repr(item['of'])[:60]} is none of {', '.join(QUOTAS_OF)}")
    bounds = {name: _bound(name, value) for name, value in item.items() if name not in ("of", "id")}
    if not any(bounds.values()):
        bounded = "give bytes, series or events_per_second, of 1 or more"
        raise ValueError(f"the quota of a {item['of']} bounds nothing: {bounded}")
    return Quota(item["of"], _text(item.get("id", "")), **bounds)


def _bound(name: str, value: object) -> int:
    try:
        bound = _size(value) if name == "bytes" else _whole_number(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if bound < 0:
        raise ValueError(f"{name}: {bound} is less than 0")
    return bound


def _size(value: object) -> int:
    """A number of bytes, or a size such as "500 GB" (10⁹ bytes each) or "1.5 GiB" (2³⁰). Text needs a unit."""
    if not isinstance(value, str):
        return _whole_number(value)
    match = _SIZE.fullmatch(value.strip())
    unit = _UNITS.get(match[2].lower()) if match is not None else None
    if match is not None and not match[2]:
        raise ValueError(f"{value!r} has no unit: give a size such as '{value} GB', or a number, which is of bytes")
    if match is None or unit is None:
        raise ValueError(f"{value!r} is neither a whole number nor a size such as '500 GB'")
    return int(Decimal(match[1]) * unit)


def _rules(value: object) -> tuple[RetentionRule, ...]:
    """Rules of retention."""
    return value if isinstance(value, tuple) else rules_of(_tables(value, "rules"))


def _tables(value: object, what: str) -> list[object]:
    """A list of tables, or the same as JSON text."""
    try:
        items = json.loads(value or "[]") if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise ValueError(f"not a list of {what} in JSON: {error}") from None
    if not isinstance(items, list):
        raise ValueError(f"not a list of {what}: put them into [ and ]")
    return items


def _table(item: object, kind: type[FixedUser] | type[GroupRole], what: str, example: str) -> dict[str, str]:
    """A table of texts, whose names are fields of `kind`."""
    if not isinstance(item, dict) or not all(isinstance(value, str) for value in item.values()):
        raise ValueError(f"{what} is a table of texts, such as {{{example}}}")
    if unknown := item.keys() - {known.name for known in fields(kind)}:
        raise ValueError(f"{what} has no field {min(unknown)}")
    return item


def _domains(value: object) -> tuple[Domain, ...]:
    """Domains of e-mail addresses: comma-separated text, or a list of texts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError(f"{value!r} is not a list of domains")
    domains = tuple(Domain(_text(item).strip().lower()) for item in items if item != "")
    for domain in domains:
        if not domain or "@" in domain or "*" in domain:
            raise ValueError(f"{domain!r} is not a domain such as example.org")
    return domains


#: By the type of a setting: makes its value of what was given. ValueError says what is wrong.
PARSERS: dict[Any, Callable[[object], Any]] = {
    str: _text,
    int: _whole_number,
    bool: _yes_or_no,
    Path: _path,
    tuple[str, ...]: _origins,
    tuple[Network, ...]: _networks,
    tuple[FixedUser, ...]: _users,
    tuple[GroupRole, ...]: _groups,
    tuple[Domain, ...]: _domains,
    tuple[Quota, ...]: _quotas,
    tuple[RetentionRule, ...]: _rules,
}
