"""What the texts of the repository name is there, also for those who read them as files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site.pages import BESIDE, DOCS, ROOT, written

TEXTS = [ROOT / "README.md", *(ROOT / name for name in BESIDE), *written()]
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
_NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as viewers of repositories make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {_NOT_IN_AN_ANCHOR.sub("", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link, anchor in _LINK.findall(page.read_text("utf-8")):
        target = (page.parent / link) if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


#: Pages that say where things are in the code.
OF_THE_CODE = ("architecture.md", "in-depth.md", "adding.md")
_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[a-z_]+\.(?:py|conf))`")


@pytest.mark.parametrize("page", OF_THE_CODE)
def test_files_that_are_named_are_there(page: str) -> None:
    """By their path in the repository, by that in the package, or by their name alone."""
    known = {path.name for path in (ROOT / "apiserver").rglob("*.py")}
    named = {name for name in _FILE.findall((DOCS / page).read_text("utf-8")) if "SERVICE" not in name}
    assert len(named) > 20
    missing = {name for name in named - known if not (ROOT / name).exists()}
    assert {name for name in missing if not (ROOT / "apiserver" / name).exists()} == set()


def test_names_of_the_code_are_there() -> None:
    """What `adding.md` tells to look for in these files: constants, functions, fields of the schema."""
    sources = [*(ROOT / "apiserver").rglob("*.py"), *(ROOT / "schemas").glob("*.conf")]
    code = "\n".join(source.read_text("utf-8") for source in sources)
    named = set(re.findall(r"`(_?[A-Z]+(?:_[A-Z]+)*|_?[a-z]+(?:_[a-z]+)+)`", (DOCS / "adding.md").read_text("utf-8")))
    assert len(named) > 15
    assert {name for name in named if not re.search(rf"\b{name}\b", code)} == set()
