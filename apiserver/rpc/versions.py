"""API versions: reads them from paths, and finds the version of an endpoint that answers a call."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from apiserver.rpc.errors import ApiError, bad_request

#: The server's version as clients are told it; the ClearML SDK reads digits and dots only.
SERVER_VERSION = "2.3.0"

_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")
_PATH = re.compile(r"/(?:v([0-9]{1,6}\.[0-9]{1,6})/)?([A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*)")


class Version(NamedTuple):
    """An API version such as 2.9; ordered by number, so that 2.9 < 2.12."""

    major: int
    minor: int

    @staticmethod
    @lru_cache(maxsize=256)  # clients ask for the same few versions
    def parse(text: str) -> Version:
        """`"2.9"` as a Version; ValueError for anything else."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise ValueError(f"'{text}' is not a version such as 2.9")
        return Version(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


#: The newest version that the server answers, and the one that a path without a version asks for.
NEWEST = Version(2, 34)

#: The oldest version that any client ever asked for.
OLDEST = Version(1, 0)


def split_path(path: str) -> tuple[Version, str]:
    """The version and `service.action` in a path `/[v<major>.<minor>/]<service>.<action>`; 400/0 if it is malformed."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise bad_request(f"Invalid request path {path[:200]}")
    return Version.parse(match[1]) if match[1] else NEWEST, match[2]


def not_found(name: str, requested: Version) -> ApiError:
    """No version of `name` answers `requested`."""
    return ApiError(404, 0, f"Unable to find endpoint for name {name[:200]} and version {requested}")
