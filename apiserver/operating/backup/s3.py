"""A bucket of S3, or of a service that speaks its protocol, as a destination: `s3://bucket/prefix`.

Address, region and keys come from the environment, as other programs have them: `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, and `AWS_ENDPOINT_URL` for services other than Amazon's. The library is the extra
`s3`; it is imported only here.

An object is there completely or not at all. Nothing keeps two backups apart: a prefix is for one data folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from apiserver.operating.backup.storage import BackupError, Missing, Storage

Result = TypeVar("Result")
#: Bytes of a stream that are handed on at a time, or a little more.
_PIECE = 2**18
#: The library raises this if it panics, as of a key with a line break. It can't be imported, and is no `Exception`.
_PANIC = "PanicException"


class S3(Storage):
    """Objects below a prefix."""

    def __init__(self, address: str, bucket: str, prefix: str) -> None:
        self.address = address
        self._store = self._asked(
            "used",
            "",
            lambda: S3Store(bucket, prefix=prefix or None, client_options={"allow_http": True, "timeout": "300s"}),
        )

    def sizes(self, folder: str) -> dict[str, int]:
        pages = self._asked("listed", "", lambda: list(obstore.list(self._store, folder, chunk_size=1000)))
        return dict(sorted((one["path"], one["size"]) for page in pages for one in page))

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        if size is None:
            return self._asked("read", name, lambda: bytes(obstore.get(self._store, name).bytes()))
        read = obstore.get_range
        return self._asked("read", name, lambda: bytes(read(self._store, name, start=start, length=size)))

    def stream(self, name: str) -> Iterator[bytes]:
        pieces = self._asked("read", name, lambda: iter(obstore.get(self._store, name).stream(min_chunk_size=_PIECE)))
        while (piece := self._asked("read", name, lambda: next(pieces, None))) is not None:
            yield bytes(piece)

    def write(self, name: str, content: bytes) -> None:
        self._asked("written", name, lambda: obstore.put(self._store, name, content, use_multipart=False))

    def delete(self, name: str) -> None:
        self._asked("deleted", name, lambda: obstore.delete(self._store, name))

    @contextmanager
    def owned(self) -> Iterator[None]:
        yield

    def _asked(self, what: str, name: str, ask: Callable[[], Result]) -> Result:
        """What is answered. `what` says what is to be done: all of the destination, or a content, is `read`, say."""
        place = f"{self.address}/{name}" if name else self.address
        try:
            return ask()
        except (NotFoundError, FileNotFoundError) as error:
            raise Missing(f"{place} cannot be {what}: there is none") from error
        except BaseException as error:
            panicked = type(error).__name__ == _PANIC
            if not panicked and not isinstance(error, BaseError | OSError | ValueError):
                raise
            said = " ".join(str(error).split()).partition(" Debug source: ")[0][:500]
            if panicked:
                said = f"the library cannot use what a variable has, such as AWS_ACCESS_KEY_ID or AWS_REGION ({said})"
            raise BackupError(f"{place} cannot be {what}: {said}", f"the destination cannot be {what}") from error
