"""A manifest: what a backup has, as JSON. Its name has the moment and the SHA-256 of the content.

What a manifest says is believed only as far as it can do no harm: whoever can write to the destination could have made
it. A file lies below the data folder, under a name that no other file has, and is as large as its blocks.

With a key, a manifest ends with a signature: the HMAC-SHA256 of its moment and of all before the signature. Then only
who has the key can make a manifest that is read, and a manifest cannot be given the moment of another one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from apiserver import __version__
from apiserver.common import memory
from apiserver.common.sizes import shown_bytes
from apiserver.operating.backup.storage import MANIFEST, BackupError, Storage
from apiserver.stores import formats

FORMAT = formats.MANIFESTS.number
#: Most bytes of a manifest: what eight million files take, and two databases of which no two blocks lie side by side. A
#: file takes some 240 bytes, a block some 20, and a database has four million blocks at most.
LARGEST = 2**31
#: The bytes of the largest manifest that is read at once.
_SMALL = 2**20
#: How many times its size a decoded manifest takes at most: 13 of what is made to take much, 3 of real ones.
_DECODED = 13
#: Seconds that the clock of another machine may be ahead.
_AHEAD = 24 * 3600.0
#: How a moment begins that is written as in `made`, such as "2026-11-24T15:30"; names of files have no dashes in it.
_DASHED = re.compile(r"[0-9]{4}-")
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: The signed text begins with this, so that the key signs nothing else in this way.
_LABEL = b"a manifest of a backup\n"
_SIGNATURE = b',"signature":"%b"}'
_SIGNATURE_BYTES = len(_SIGNATURE % (b"0" * 64))
_SIGNED = re.compile(rb',"signature":"[0-9a-f]{64}"\}')


class Extent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Adjacent blocks of a piece, and their bytes."""

    piece: int
    """The piece's place in the list of the manifest."""
    first: int
    count: int
    bytes: int


class Stamp(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The times of a file, which tell whether it has changed, in nanoseconds since 1970."""

    modified: int = 0
    changed: int = 0
    inode: int = 0


class File(msgspec.Struct, array_like=True, frozen=True):
    """A file in the data folder."""

    path: str
    size: int
    stamp: Stamp
    extents: list[Extent]


class PieceUsed(msgspec.Struct, array_like=True, frozen=True):
    """A piece that the backup needs, how large it is, and how many blocks it has."""

    sha256: str
    size: int
    blocks: int
    table: str
    """The SHA-256 of its table."""


class Manifest(msgspec.Struct, frozen=True):
    """A backup."""

    format: int
    version: str
    """The version of the server that made it."""
    made: str
    """Its moment: 2026-11-24T15:30:00.125Z."""
    seconds: float
    """How long it took."""
    copied: int
    """Bytes that it added to the destination, without the manifest."""
    counts: dict[str, int]
    """How much there is: points, lines, files and the like."""
    pieces: list[PieceUsed]
    files: list[File]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class Named(NamedTuple):
    """A manifest at the destination."""

    name: str
    id: str
    """Its moment: 20261124T153000.125Z."""
    manifest: Manifest
    is_signed: bool
    """Whether it ends with a signature. Without a key, nobody has compared it."""


class DamagedManifest(BackupError):
    """A manifest is not what it was."""


class _Head(msgspec.Struct):
    """The fields of manifests of all formats."""

    format: int
    version: str


_decoder, _head = msgspec.json.Decoder(Manifest), msgspec.json.Decoder(_Head)


def listed(storage: Storage) -> tuple[list[str], list[str]]:
    """The names of all manifests, oldest first, and of strays: other files, and manifests from over a day ahead."""
    manifests: list[str] = []
    strays: list[str] = []
    for name in storage.sizes("manifests"):
        (strays if _is_stray(name) else manifests).append(name)
    return manifests, strays


def names(storage: Storage) -> list[str]:
    """The names of all manifests, oldest first, but for strays."""
    return listed(storage)[0]


def names_left(storage: Storage) -> list[str]:
    """As `names`, where there were some before. BackupError if none is left: a folder that is not mounted looks so."""
    if found := names(storage):
        return found
    raise BackupError(
        f"there is no backup at {storage.address} any more", "there is no backup at the destination any more"
    )


def ahead(names: Sequence[str], now: float | None = None) -> list[str]:
    """The names whose moment is ahead of `now`, as the clock was set back since. `names` has the oldest first."""
    now = time.time() if now is None else now
    return [name for name in names if time_of(name) > now]


def _is_stray(name: str) -> bool:
    try:
        return time_of(name) > time.time() + _AHEAD
    except (BackupError, ValueError):
        return True


def write(storage: Storage, manifest: Manifest, largest: int = LARGEST) -> Named:
    """Keep a manifest: from now on, the backup is there."""
    content = msgspec.json.encode(manifest)
    id = re.sub("[-:]", "", manifest.made)
    if storage.key:
        signature = _signature(storage.key, id)
        signature.update(memoryview(content)[:-1])
        content = content[:-1] + _end(signature)
    require_room(len(content), largest)
    name = f"manifests/{id}-{hashlib.sha256(content).hexdigest()}.json"
    storage.write(name, content)
    return Named(name, id, manifest, is_signed=bool(storage.key))


def require_room(size: int, largest: int = LARGEST) -> None:
    """BackupError if files take more bytes in a manifest than it may have."""
    if size > largest:
        said = f"there are too many files: the list of them has {size:,} bytes, not {largest:,}"
        raise BackupError(said, said)


def bytes_of(file: File) -> int:
    """How many bytes a file takes in a manifest."""
    return len(msgspec.json.encode(file)) + 1


def read(storage: Storage, name: str, largest: int = LARGEST) -> Named:
    """The manifest of this name; BackupError says what is wrong with it, such as that it is larger than it may be."""
    content = _content(storage, name, largest)
    try:
        head = _head.decode(content)
        if head.format != FORMAT:
            raise BackupError(
                f"{name} has format {head.format} of manifests, which apiserver {head.version} wrote; this is apiserver"
                f" {__version__}, which reads format {FORMAT}. Nothing was changed. Use the release that wrote it"
            )
        manifest = _decoder.decode(content)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{name} is not a manifest that this version can read: {error}") from error
    for problem in _problems(manifest):
        raise BackupError(f"{name} is refused: {problem}")
    return Named(name, _parts(name)[0], manifest, is_signed=bool(_SIGNED.fullmatch(content[-_SIGNATURE_BYTES:])))


def check(storage: Storage, name: str) -> None:
    """BackupError if a manifest does not fit its name, or is not signed though there is a key. It is not decoded."""
    _checked(storage, name, 0, LARGEST)


def _content(storage: Storage, name: str, largest: int) -> bytearray:
    """The content of a manifest that `check` does not refuse.

    A large one is read twice, so that one that is refused never takes much memory, whoever wrote it.
    """
    content, size = _checked(storage, name, _SMALL, largest)
    if size > _SMALL:
        if not storage.key:
            _require_memory(name, size)
        content, _ = _checked(storage, name, size, largest)
    return content


def _checked(storage: Storage, name: str, most: int, largest: int) -> tuple[bytearray, int]:
    """A manifest that fits its name and the key, and its size; the content is empty if it has more than `most` bytes.

    It is read piece by piece. BackupError says what is wrong.
    """
    id, sha256 = _parts(name)
    content, size, end = bytearray(), 0, b""
    digest, signature = hashlib.sha256(), _signature(storage.key, id)
    for piece in storage.stream(name):
        size += len(piece)
        if size > largest:
            raise BackupError(f"{name} is refused: it is larger than {largest:,} bytes, the most a manifest may have")
        digest.update(piece)
        if storage.key:
            end += piece
            signature.update(memoryview(end)[:-_SIGNATURE_BYTES])
            end = end[-_SIGNATURE_BYTES:]
        content += piece if size <= most else b""
    if digest.hexdigest() != sha256:
        raise DamagedManifest(f"the manifest {name} is damaged: its content has another SHA-256")
    if storage.key and not hmac.compare_digest(end, _end(signature)):
        raise BackupError(f"{name} is refused: it is not signed with your key")
    return content if size <= most else bytearray(), size


def _require_memory(name: str, size: int) -> None:
    """BackupError if the machine has too little memory for any manifest of this size."""
    free = memory.available()
    if free is not None and free < size * _DECODED:
        raise BackupError(
            f"{name} is refused: without a key, anybody may have made it, and it may take"
            f" {shown_bytes(size * _DECODED)} of memory, of which {shown_bytes(free)} are free."
            " Give the key if it is signed, or use a larger machine"
        )


def _signature(key: bytes, id: str) -> hmac.HMAC:
    """The signature of the backup with this id, begun: the content is still to be added."""
    return hmac.new(key, _LABEL + id.encode() + b"\n", "sha256")


def _end(signature: hmac.HMAC) -> bytes:
    """The end of a signed manifest, in place of its last brace: the signature as the last field, and the brace."""
    signature.update(b"}")
    return _SIGNATURE % signature.hexdigest().encode()


def time_of(name: str) -> float:
    """The moment of the backup with this name, in seconds since 1970; BackupError if it is not the name of one."""
    return datetime.fromisoformat(_parts(name)[0]).timestamp()


def id_of(name: str) -> str:
    """The moment in the name of a manifest."""
    return _parts(name)[0]


def _parts(name: str) -> tuple[str, str]:
    """The moment and the SHA-256 in the name of a manifest."""
    parts = MANIFEST.fullmatch(name)
    if parts is None:
        raise BackupError(f"{name} is not the name of a manifest")
    return parts[1], parts[2]


def choose(storage: Storage, at: str | None) -> Named:
    """The newest backup, or the one whose moment (or file name) begins with `at`: "2026-11-24T15" or "20261124T15"."""
    every = [name.removeprefix("manifests/") for name in names(storage)]
    if not every:
        raise BackupError(
            f"there is no backup at {storage.address}: the command backup makes one, and its --list lists what is there"
        )
    beginning = re.sub("[-:]", "", at[:19]) + at[19:] if at and _DASHED.match(at) else at
    matching = [name for name in every if beginning is None or name.startswith(beginning)]
    if not matching:
        ends = f"from {_id(every[0])} to {_id(every[-1])}"
        there = f"there are {len(every)}, {ends}" if len(every) > 1 else f"there is only {_id(every[0])}"
        raise BackupError(f"no backup begins with {at}: {there}; backup --list lists them")
    if beginning is not None and len(matching) > 1:
        raise BackupError(f"{len(matching)} backups begin with {at}: say more of it, such as {_id(matching[-1])}")
    try:
        return read(storage, f"manifests/{matching[-1]}")
    except BackupError as error:
        others = [_id(name) for name in every if name != matching[-1]]
        other = f"name another one by --at, such as {others[-1]}" if others else "there is no other one"
        raise BackupError(f"{error}; {other}") from error


def _id(name: str) -> str:
    """The moment in the name of a file: up to the SHA-256."""
    return name.partition("-")[0]


def moment() -> str:
    """Now, as manifests say it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _problems(manifest: Manifest) -> list[str]:
    seen: set[str] = set()
    for piece in manifest.pieces:
        if not _SHA256.fullmatch(piece.sha256) or piece.blocks < 1:
            return [f"{piece.sha256[:80]!r} does not name a piece"]
    for file in manifest.files:
        parts = file.path.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in file.path or file.path in seen:
            return [f"a file has the path {file.path[:80]!r}"]
        seen.add(file.path)
        if not 0 <= file.stamp.modified < 2**62:
            return [f"{file.path[:80]!r} has no possible time"]
        for extent in file.extents:
            if not (0 <= extent.piece < len(manifest.pieces) and extent.count > 0 and extent.bytes >= 0):
                return [f"{file.path[:80]!r} refers to no piece"]
            if not 0 <= extent.first <= manifest.pieces[extent.piece].blocks - extent.count:
                return [f"{file.path[:80]!r} refers to blocks that its piece does not have"]
        if file.size != sum(extent.bytes for extent in file.extents):
            return [f"{file.path[:80]!r} is not as large as its blocks"]
    return []
