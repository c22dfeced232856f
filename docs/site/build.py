"""From pages to HTML."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, copytree, rmtree
from tempfile import TemporaryDirectory

from docs.site.pages import put_written_pages

CONFIGURATION = Path(__file__).with_name("zensical.toml")

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class SiteError(Exception):
    """The site cannot be built; the message says why."""


def build(target: Path) -> None:
    """Build the site into a folder, in place of what is there; SiteError if a link in it leads nowhere."""
    with TemporaryDirectory() as name:
        place = Path(name)
        copyfile(CONFIGURATION, place / CONFIGURATION.name)
        put_written_pages(place / "pages")
        build_site(place)
        rmtree(target, ignore_errors=True)
        copytree(place / "site", target)


def build_site(place: Path) -> None:
    """Turn the configuration and `pages` in a folder into its `site`; SiteError if a link leads nowhere."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise SiteError(_COLOURS.sub("", done.stdout + done.stderr))
