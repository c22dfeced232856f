"""Large blocks go back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: How many bytes of a block of 20 MB are the system's own, once the allocator has seen another one come and go.
_PROGRAM = """
import ctypes
from apiserver.memory import give_back_large_blocks

class Info(ctypes.Structure):  # of glibc's mallinfo2(3)
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd more".split()] + [
        (f"other{n}", ctypes.c_size_t) for n in range(4)
    ]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
if CALLED:
    give_back_large_blocks()
seen = bytes(20 * 2**20)
del seen
before = libc.mallinfo2().hblkhd
block = bytes(20 * 2**20)
print((libc.mallinfo2().hblkhd - before) // 2**20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.parametrize(("called", "megabytes"), [(True, 20), (False, 0)])
def test_large_blocks_are_the_systems_own(called: bool, megabytes: int) -> None:
    command = [sys.executable, "-c", _PROGRAM.replace("CALLED", str(called))]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) == megabytes
