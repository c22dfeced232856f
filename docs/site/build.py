"""From pages to HTML."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, copytree, rmtree
from tempfile import TemporaryDirectory

from apiserver.cli import command_line
from apiserver.common import resources
from apiserver.rpc.hocon import read_hocon
from apiserver.rpc.schema import load_schemas
from docs.site.errors import SiteError
from docs.site.examples import SERVICES, calls_of
from docs.site.pages import put_written_pages
from docs.site.reference import command_page, event_page, service_page
from docs.site.running import answers, server

#: The pages that are made of the code.
MADE = (
    *("reference/events.md", "reference/command-line.md"),
    *(f"reference/endpoints/{service}.md" for service in SERVICES),
)
CONFIGURATION = Path(__file__).with_name("zensical.toml")

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def build(target: Path) -> None:
    """Build the site into a folder, in place of what is there.

    SiteError if a link in it leads nowhere, or if an example is refused.
    """
    with TemporaryDirectory() as name:
        place = Path(name)
        copyfile(CONFIGURATION, place / CONFIGURATION.name)
        put_written_pages(place / "pages")
        put_reference(place / "pages" / "reference")
        build_site(place)
        rmtree(target, ignore_errors=True)
        copytree(place / "site", target)


def build_site(place: Path) -> None:
    """Turn the configuration and `pages` in a folder into its `site`; SiteError if a link leads nowhere."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise SiteError(_COLOURS.sub("", done.stdout + done.stderr))


def put_reference(folder: Path) -> None:
    """Write the pages that are made of the code, with what a server answers to the examples."""
    schemas = resources.path("schemas")
    cache = schemas / resources.PARSED
    table = load_schemas(schemas, cache)
    (folder / "endpoints").mkdir()
    (folder / "events.md").write_text(event_page(table), "utf-8")
    (folder / "command-line.md").write_text(command_page(command_line()), "utf-8")
    with server() as client:
        for service in SERVICES:
            description = read_hocon(schemas / f"{service}.conf", cache)["_description"]
            page = service_page(service, description, table, list(answers(client, calls_of(service))))
            (folder / "endpoints" / f"{service}.md").write_text(page, "utf-8")
