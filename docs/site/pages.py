"""The pages that people write: what is done to them on their way from `docs/` into the site.

They are written for a plain view of the repository, where links lead from file to file and ```mermaid blocks are drawn
by the viewer. The site's Markdown is an older one and its pages load no scripts, so that three things change:

- a list gets an empty line before it, which the site's Markdown needs;
- links to the texts beside `docs/` (`../SECURITY.md`) lead to their copies in the site (`security.md`);
- ```mermaid blocks are drawn here, as SVG files, and shown as pictures.
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from shutil import copyfile, copytree

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Texts that lie beside `docs/`, and are pages of the site, too.
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

_FENCED = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_TEXT_THEN_LIST = re.compile(r"^((?![-#|\s]|\d+\. ).*)\n(?=(?:-|\d+\.) )", re.MULTILINE)
_LINK_BESIDE = re.compile(rf"\]\((?:\.\./)((?:\.\./)*)({'|'.join(BESIDE)})")
_LINK_INTO_DOCS = re.compile(r"\]\(docs/")
_DIAGRAM = re.compile(r"^```mermaid\n%% (?P<title>[^\n]*)\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)


def written() -> list[Path]:
    """The pages that people write, below `docs/`."""
    return sorted(DOCS.rglob("*.md"))


def put_written_pages(folder: Path) -> None:
    """Put them all, and the style sheet, into the folder that the site is made of."""
    for source in written():
        _put(source, folder / source.relative_to(DOCS))
    for name in BESIDE:
        _put(ROOT / name, folder / name.lower())
    copyfile(Path(__file__).with_name("style.css"), folder / "style.css")
    copytree(DOCS / "pictures", folder / "pictures")


def _put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    text = _LINK_INTO_DOCS.sub("](", source.read_text("utf-8"))
    text = _LINK_BESIDE.sub(lambda link: f"]({link[1]}{link[2].lower()}", text)
    target.write_text(with_pictures(with_lists_apart(text), target), "utf-8")


def with_lists_apart(text: str) -> str:
    """The text, with an empty line between a paragraph and the list that follows it."""
    parts = _FENCED.split(text)
    return "".join(part if index % 2 else _TEXT_THEN_LIST.sub(r"\1\n\n", part) for index, part in enumerate(parts))


def with_pictures(text: str, page: Path) -> str:
    """The text, with pictures in place of diagrams; these are drawn into files beside the page.

    A diagram begins with a comment (`%% …`): its title, which is what those read who do not see the picture.
    """
    import mmdr

    numbers = count(1)

    def drawn(diagram: re.Match[str]) -> str:
        picture = page.with_name(f"{page.stem}-{next(numbers)}.svg")
        picture.write_text(mmdr.render(diagram["source"]).svg(), "utf-8")
        return f"![{diagram['title']}]({picture.name}){{ .diagram }}"

    return _DIAGRAM.sub(drawn, text)
