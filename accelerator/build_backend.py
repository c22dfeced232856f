"""setuptools, and where the machine has no C++ compiler, one from PyPI: so that pip is all that is needed."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  the other hooks

_ZIG = "ziglang>=0.15"


def _has_compiler() -> bool:
    return "CXX" in os.environ or any(map(shutil.which, ("c++", "g++", "clang++")))


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What must be installed before building."""
    return [] if _has_compiler() else [_ZIG]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build with the machine's own compiler, or with Zig's."""
    if not _has_compiler():
        # Zig would compile for the processor of this machine. What is built, such as an image, may run on another one.
        zig = f"{sys.executable} -m ziglang c++ -mcpu=baseline"
        os.environ |= {"CC": zig, "CXX": zig, "LDSHARED": f"{zig} -shared", "LDCXXSHARED": f"{zig} -shared"}
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name
