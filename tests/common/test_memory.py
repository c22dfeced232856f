"""Large blocks go back to the system, and threads share arenas of the allocator."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: How many bytes of a block of 20 MB are the system's own, once the allocator has seen another one come and go.
_LARGE = """
import ctypes
from apiserver.common.memory import keep_little

class Info(ctypes.Structure):  # of glibc's mallinfo2(3)
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd more".split()] + [
        (f"other{n}", ctypes.c_size_t) for n in range(4)
    ]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
if CALLED:
    keep_little()
seen = bytes(20 * 2**20)
del seen
before = libc.mallinfo2().hblkhd
block = bytes(20 * 2**20)
print((libc.mallinfo2().hblkhd - before) // 2**20)
"""
#: How many arenas seven threads use at once.
_THREADS = """
import ctypes
import threading
from apiserver.common.memory import keep_little

libc = ctypes.CDLL(None)
libc.fmemopen.restype = ctypes.c_void_p
if CALLED:
    keep_little()
taken = threading.Barrier(8)

def take():
    block = bytes(100_000)
    taken.wait()  # all threads have taken blocks
    taken.wait()  # they are counted

for _ in range(7):
    threading.Thread(target=take).start()
taken.wait()
said = ctypes.create_string_buffer(2**20)
file = ctypes.c_void_p(libc.fmemopen(said, ctypes.c_size_t(len(said)), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
taken.wait()
print(said.value.count(b"<heap nr="))
"""

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")


@pytest.mark.test
@pytest.mark.parametrize(("called", "megabytes"), [(True, 20), (False, 0)])
def test_large_blocks_are_the_systems_own(called: bool, megabytes: int) -> None:
    assert said(_LARGE, called) == megabytes


@pytest.mark.test
@pytest.mark.parametrize(("called", "arenas"), [(True, 2), (False, 8)])
def test_threads_share_arenas(called: bool, arenas: int) -> None:
    assert said(_THREADS, called) == arenas


def said(program: str, called: bool) -> int:
    """The number that a program prints whose allocator is told to keep little, or not."""
    command = [sys.executable, "-c", program.replace("CALLED", str(called))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
