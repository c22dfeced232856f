"""The documentation site is built, and loads nothing from the network."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docs.site.build import CONFIGURATION, MADE, build, build_site
from docs.site.errors import SiteError
from docs.site.pages import BESIDE, DOCS, with_lists_apart, with_pictures, written


@pytest.fixture
def builder() -> None:
    """Skip the test unless what builds the site is installed."""
    if not all(importlib.util.find_spec(name) for name in ("zensical", "mmdr")):
        pytest.skip("what builds the documentation is not installed: `make .venv/docs.stamp`")


@pytest.mark.usefixtures("builder")
def test_the_site_is_built_whole(tmp_path: Path) -> None:
    build(tmp_path / "site")
    shown = {path.relative_to(tmp_path / "site"): path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    assert {path.relative_to(DOCS).with_suffix(".html") for path in written()} <= shown.keys()
    for path, html in shown.items():
        assert not re.findall(r'(?:src|srcset)="?(?:https?:)?//', html), f"{path} loads from the network"
        assert not re.findall(r'<link[^>]* rel="?(?:stylesheet|preconnect|preload)[^>]*(?:https?:)?//', html), path
        assert not re.findall(r"<p>(?:(?!</p>).)*\n(?:-|\d\.) ", html, re.DOTALL), f"{path}: a list is no list"


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize("link", ["missing.md", "index.md#missing", "../missing.md"])
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, link: str) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text(f"# Home\n[elsewhere]({link})\n", "utf-8")
    (tmp_path / CONFIGURATION.name).write_text('[project]\nsite_name = "x"\ndocs_dir = "pages"\n', "utf-8")
    with pytest.raises(SiteError, match="does not exist"):
        build_site(tmp_path)


@pytest.mark.usefixtures("builder")
def test_diagrams_are_drawn(tmp_path: Path) -> None:
    text = "Before.\n```mermaid\n%% From A to B\nflowchart LR\n  A --> B\n```\nAfter.\n"
    assert with_pictures(text, tmp_path / "page.md") == "Before.\n![From A to B](page-1.svg){ .diagram }\nAfter.\n"
    assert (tmp_path / "page-1.svg").read_text("utf-8").startswith("<svg")


def test_lists_are_set_apart() -> None:
    text = "Text:\n- one\n  more\n- two\n\n```\nText:\n- no list\n```\n## Head\n- three\nText:\n1. four\n2. five\n"
    apart = "Text:\n\n- one\n  more\n- two\n\n```\nText:\n- no list\n```\n## Head\n- three\nText:\n\n1. four\n2. five\n"
    assert with_lists_apart(text) == apart


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [*(str(path.relative_to(DOCS)) for path in written()), *(name.lower() for name in BESIDE), *MADE]
    assert sorted(_named(tomllib.loads(CONFIGURATION.read_text("utf-8"))["project"]["nav"])) == sorted(pages)


def _named(nav: Any) -> list[str]:
    """The pages in a part of the navigation."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in _named(part)]
