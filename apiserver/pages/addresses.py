"""Which requests are for pages.

The addresses are those of ClearML's web UI, which the SDK prints, and a few more. A path belongs to the pages by its
first step: `/projects/P/tasks/T/output/log` by `projects`. No endpoint, vendor's API or `/data` begins with one of
these steps.
"""

from __future__ import annotations

from starlette.types import Scope

#: Where the built scripts and styles are.
ASSETS = "assets"
#: Files beside the scripts that have an address of their own: the frames of figures and of HTML reports, the licences.
FRAME, PAPER, LICENCES = "frame.html", "paper.html", "licences.txt"

_PAGES = frozenset(
    {"", "compare", "datasets", "models", "pipelines", "projects", "reports", "s", "search", "settings", "sign-in"}
)
FIRST_STEPS = _PAGES | {ASSETS, FRAME, PAPER, LICENCES}


def is_page(scope: Scope) -> bool:
    """Whether a browser asks for a page. Programs that ask for the same address get what the API says to it."""
    path: str = scope["path"]
    return is_browser(scope) and first_step(path) in _PAGES and not path.startswith("//")


def is_browser(scope: Scope) -> bool:
    """Whether a browser asks for what it would show, as its `Accept` says."""
    if scope["method"] not in ("GET", "HEAD"):
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def is_file(scope: Scope) -> bool:
    """Whether the request is for a file that belongs to the pages."""
    path: str = scope["path"]
    if scope["method"] not in ("GET", "HEAD"):
        return False
    return path.startswith(f"/{ASSETS}/") or path in (f"/{FRAME}", f"/{PAPER}", f"/{LICENCES}")


def first_step(path: str) -> str:
    """`projects` of `/projects/P`, and nothing of `/`."""
    return path[1:].partition("/")[0]
