"""Reads what lies at the destination again, a little at a time: backups do not look at pieces that are there already.

1. Read all pieces in the order of their names, and compare each with its name, which is its SHA-256.
2. Read those that are not well once more, as the destination may have failed for a moment.
3. Look whether each manifest is what it was, and whether each piece is there that one needs.

Pieces that are not well are *suspects*. The next backup reads them whole, and copies anew what damaged ones had, as far
as the data folder still has it. After that, steps 2 and 3 are done again.

How far it is, and what it found, is in a file of the data folder for each destination, so that it goes on after a
restart. If a release does not understand the file, it begins anew.
"""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_right
from collections.abc import Collection, Sequence

import msgspec

from apiserver.common.sizes import counted
from apiserver.common.times import utc_now
from apiserver.operating.backup import manifest as manifests
from apiserver.operating.backup import pieces
from apiserver.operating.backup.manifest import DamagedManifest
from apiserver.operating.backup.progress import Progress
from apiserver.operating.backup.storage import BackupError, Missing, Storage
from apiserver.stores.data_folder import DataFolder, write_private

#: Bytes a second that are read at least, if time allows it: a terabyte takes 36 hours.
SLOWLY = 8e6
#: Seconds between two writes of the file.
NOTED_EVERY = 30.0
#: Most suspects, and most lines of damage, that are remembered. The next reading finds the rest.
_MOST = 1000


class State(msgspec.Struct):
    """How far the reading is, and the damage it found."""

    destination: str
    place: str = ""
    """The piece that was read last; "": all have been read, or none has."""
    pieces: int = 0
    """How many were read since the beginning."""
    suspects: list[str] = []
    """The pieces that were not well when they were read."""
    ended: str = ""
    """When the last check had read all pieces; "": no check has."""
    wrong: list[str] = []
    """The damage at that time, a line each, without damage that was mended since."""


def read_state(data: DataFolder, destination: str) -> State:
    """The remembered state of this destination."""
    try:
        state = msgspec.json.decode(data.backup_check(destination).read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return State(destination)
    return state if state.destination == destination else State(destination)


def read_on(
    storage: Storage, data: DataFolder, hours: float, progress: Progress, noted_every: float = NOTED_EVERY
) -> State:
    """Go on to read all pieces, in half of these hours or sooner; what is wrong is in the state that is returned."""
    state = read_state(data, storage.address)
    if state != State(storage.address):
        manifests.names_left(storage)
    sizes, _ = pieces.listed(storage)
    left = sorted(sizes)
    left = left[bisect_right(left, state.place) :]
    total = sum(sizes[sha256] for sha256 in left)
    progress.step("pieces", total, rate=max(SLOWLY, total / (hours * 1800)))
    noted = time.monotonic()
    for sha256 in left:
        if not _is_well(storage, sha256, progress) and sha256 not in state.suspects and len(state.suspects) < _MOST:
            state.suspects.append(sha256)
        state.place, state.pieces = sha256, state.pieces + 1
        if time.monotonic() - noted >= noted_every:
            _write(data, state)
            noted = time.monotonic()
    progress.end()
    suspects, wrong = _what_is_wrong(storage, state.suspects, progress)
    _write(data, State(storage.address, suspects=suspects, ended=utc_now(), wrong=wrong))
    return msgspec.structs.replace(state, suspects=suspects, wrong=wrong)


def look_again(storage: Storage, data: DataFolder, progress: Progress) -> None:
    """Look whether a new backup has mended what was wrong. If all is being read, that is seen at the end of it."""
    state = read_state(data, storage.address)
    if state.wrong and not state.place:
        suspects, wrong = _what_is_wrong(storage, state.suspects, progress)
        _write(data, msgspec.structs.replace(state, suspects=suspects, wrong=wrong))


def _is_well(storage: Storage, sha256: str, progress: Progress) -> bool:
    """Whether a piece is what it was; rests after reading it. BackupError: the destination does not answer."""
    digest, size = hashlib.sha256(), 0
    try:
        for part in storage.stream(pieces.name_of(sha256)):
            digest.update(part)
            size += len(part)
            if size > pieces.LARGEST:
                break
    except Missing:  # it was deleted since
        manifests.names_left(storage)
        return True
    except BackupError:
        storage.sizes(f"pieces/{sha256[:2]}")
        return False
    finally:
        progress.advance(size)
    return digest.hexdigest() == sha256


def _what_is_wrong(storage: Storage, suspects: Collection[str], progress: Progress) -> tuple[list[str], list[str]]:
    """Which of the suspects are not well still, and what is wrong with backups, in a line each.

    What was written by somebody else, and is refused, is not looked at: `backup --check` names it.
    """
    if suspects:
        progress.say(f"reading once more what was not well: {counted(len(suspects), 'pieces')}")
    still = [sha256 for sha256 in suspects if not _is_well(storage, sha256, progress)]
    wrong: list[str] = []
    needing: dict[str, list[str]] = {}
    for name in manifests.names(storage):
        try:
            backup = manifests.read(storage, name)
        except DamagedManifest as error:
            wrong.append(str(error))
        except BackupError:
            continue
        else:
            for piece in backup.manifest.pieces:
                needing.setdefault(piece.sha256, []).append(name)
    sizes, _ = pieces.listed(storage)
    there = {*manifests.names(storage)}  # some may have been deleted since, with their pieces
    for what, some in (("damaged", still), ("missing", needing.keys() - sizes.keys())):
        for sha256 in sorted(some):
            if names := [name for name in needing.get(sha256, ()) if name in there]:
                wrong.append(f"the piece {sha256} is {what}, which {_backups(names)}")
    return still, wrong[:_MOST]


def _backups(names: Sequence[str]) -> str:
    """The backups that need a piece, for people."""
    newest = manifests.id_of(names[-1])
    return f"{newest} needs" if len(names) == 1 else f"{len(names)} backups need, the newest of them is {newest}"


def _write(data: DataFolder, state: State) -> None:
    path = data.backup_check(state.destination)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(path, msgspec.json.encode(state).decode())
    except OSError as error:
        raise BackupError(
            f"{path} cannot be written: {error.strerror}", f"the data folder cannot be written: {error.strerror}"
        ) from error
