"""What the texts of the repository name is there, also for those who read them as files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site.pages import BESIDE, ROOT, written

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
