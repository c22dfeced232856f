"""One of those who ask for a lock gets it, and the others are told at once that they did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apiserver.stores.locks import lock_if_free

#: Takes the lock, says so, and keeps it until it is ended.
_HOLDER = """
import sys
from pathlib import Path
from apiserver.stores.locks import lock_if_free
with lock_if_free(Path(sys.argv[1])) as is_mine:
    print(is_mine, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["lock", "."])
def test_a_file_or_a_folder_is_locked_once_until_the_block_ends(tmp_path: Path, name: str) -> None:
    with lock_if_free(tmp_path / name) as first, lock_if_free(tmp_path / name) as second:
        assert (first, second) == (True, False)
    with lock_if_free(tmp_path / name) as again:
        assert again


@pytest.mark.test
def test_a_lock_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with lock_if_free(tmp_path / "lock") as while_it_runs:
            assert not while_it_runs
        holder.kill()
        holder.wait()
    with lock_if_free(tmp_path / "lock") as afterwards:
        assert afterwards


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), lock_if_free(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_an_error_inside_the_block_is_not_taken_for_a_lock_of_others(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="of the block"), lock_if_free(tmp_path / "lock"):
        raise BlockingIOError("of the block")
