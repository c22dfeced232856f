"""Opens the destination of backups that a setting or an argument names: a folder, or `s3://bucket/prefix`."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from apiserver.common.extras import installed_by
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.storage import BackupError, Storage

#: The bucket and the prefix in the address of a bucket.
BUCKET = re.compile(r"s3://([^/]+)/*(.*?)/*")
_ENDPOINT = re.compile(r"https?://[^\s/]\S*")


def storage(said: str, key: str = "") -> Storage:
    """The destination that a folder or `s3://bucket/prefix` names, with the key of its manifests."""
    place = _place(said)
    place.key = key.encode()
    return place


def require_usable(said: str) -> None:
    """BackupError unless this names a folder, or a bucket and the package for buckets is installed. None is opened."""
    if said.startswith("s3://"):
        if not BUCKET.fullmatch(said):
            raise BackupError(f"{said} is not like s3://bucket/prefix")
        if find_spec("obstore") is None:
            raise BackupError(f"s3:// needs the extra s3: {installed_by('s3')}")
        if (endpoint := os.environ.get("AWS_ENDPOINT_URL")) and not _ENDPOINT.fullmatch(endpoint):
            raise BackupError(f"AWS_ENDPOINT_URL: {endpoint!r} is not like https://s3.example.org")
    elif re.match(r"\w+:/", said):  # with one slash, it would make a folder "s3:"
        raise BackupError(f"{said} is neither a folder nor s3://bucket/prefix")


def _place(said: str) -> Storage:
    require_usable(said)
    if bucket := BUCKET.fullmatch(said):
        from apiserver.operating.backup.s3 import S3

        return S3(said, *bucket.groups())
    return Folder(Path(said))
