from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.stores.reserve import Reserve

SIZE = 2**20


class Clock:
    """What the reserve takes for the time and the free room."""

    def __init__(self) -> None:
        self.now = 100.0
        self.free = 2**40

    def reserve(self, folder: Path, size: int) -> Reserve:
        return Reserve(folder / "reserve", size, lambda: self.now, lambda _: self.free)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_really_takes_room(tmp_path: Path) -> None:
    assert Reserve(tmp_path / "reserve", SIZE).held()
    taken = (tmp_path / "reserve").stat()
    assert (taken.st_size, taken.st_blocks * 512 >= SIZE, taken.st_mode & 0o777) == (SIZE, True, 0o600)


def test_it_is_given_up_on_a_full_disk_alone(tmp_path: Path, clock: Clock) -> None:
    reserve = clock.reserve(tmp_path, SIZE)
    assert reserve.held()
    reserve.make_room()
    assert reserve.held()
    assert (tmp_path / "reserve").exists()
    clock.free = 0
    reserve.make_room()
    assert not reserve.held()
    assert not (tmp_path / "reserve").exists()


def test_deleting_may_have_it_before_the_disk_is_full(tmp_path: Path, clock: Clock) -> None:
    reserve = clock.reserve(tmp_path, 8 * SIZE)
    assert reserve.held()
    clock.free = 7 * SIZE
    reserve.make_room()
    assert reserve.held()
    reserve.make_room(much=True)
    assert not (tmp_path / "reserve").exists()


def test_it_is_made_again_once_there_is_room_for_more(tmp_path: Path, clock: Clock) -> None:
    reserve = clock.reserve(tmp_path, SIZE)
    clock.free = 0
    reserve.make_room()
    clock.free = SIZE
    clock.now += 10
    assert not reserve.held()
    clock.free = SIZE * 2
    assert not reserve.held()  # it is not tried at each batch
    clock.now += 10
    assert reserve.held()
    assert (tmp_path / "reserve").stat().st_size == SIZE


def test_one_of_another_size_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "reserve").write_bytes(b"left")
    assert Reserve(tmp_path / "reserve", SIZE).held()
    assert (tmp_path / "reserve").stat().st_size == SIZE


def test_none_is_wanted(tmp_path: Path, clock: Clock) -> None:
    reserve = clock.reserve(tmp_path, 0)
    clock.free = 0
    reserve.make_room()
    assert reserve.held()
    assert not list(tmp_path.iterdir())
