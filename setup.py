"""Puts schemas, migrations and pages, which lie beside the package, into what is installed.

`make viewer` builds the pages. Without it, what is installed has none.

The schemas are parsed while installing, as that takes seconds, and the server is to start in one.
"""

import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).parent
RESOURCES = ("schemas", "migrations")
PAGES = "viewer/dist"


class BuildWithResources(build_py):
    """`build_py`, and the resources; an editable installation finds them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return parse_schemas(SOURCE / "schemas")
        resources = Path(self.build_lib) / "apiserver" / "_resources"
        for name in (*RESOURCES, *([PAGES] if (SOURCE / PAGES / "index.html").exists() else [])):
            copytree(SOURCE / name, resources / name, ignore=ignore_patterns(".*"), dirs_exist_ok=True)
        parse_schemas(resources / "schemas")


def parse_schemas(folder: Path) -> None:
    """Leave the parsed schemas in the folder, readable for everyone."""
    sys.path.insert(0, str(SOURCE))
    from apiserver.common.resources import PARSED
    from apiserver.rpc.schema import load_schemas

    load_schemas(folder, folder / PARSED)
    for file in (folder / PARSED).iterdir():
        file.chmod(0o644)


setup(cmdclass={"build_py": BuildWithResources})
