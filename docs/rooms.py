"""Draws which room of `apiserver/` imports from which, by the imports themselves.

    python -m docs.rooms

writes the picture into docs/architecture.md, and says how large the rooms are. A room is a folder of the package.
FLOORS says which lies above which: imports go down, never up or to a room of the same floor.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "apiserver"
PAGE = Path(__file__).with_name("architecture.md")

#: The rooms, from the top of the house to its bottom.
FLOORS = (
    ("cli",),
    ("server",),
    ("data",),
    ("operating",),
    ("transfer", "otlp", "vendors"),
    ("services",),
    ("live",),
    ("fileserver", "reading"),
    ("pages", "tables", "stores"),
    ("rpc", "http", "events", "settings"),
    ("common",),
)
ROOMS = tuple(room for floor in FLOORS for room in floor)

_BEGIN, _END = "```mermaid\n%% The rooms of apiserver/, and what they import\n", "```\n"


@cache
def modules() -> Mapping[str, Path]:
    """The modules of the package by their names, such as `apiserver.common.times`; a folder is its `__init__`."""
    files = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in sorted(files.items())}


@cache
def imports_of(module: str) -> Set[str]:
    """The modules of the package that a module imports, also inside functions and for types."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(modules()[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            imported |= {name if name in modules() else node.module for name in names}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return (imported & modules().keys()) - {module}


def room_of(module: str) -> str:
    """The room of a module: "" for the package itself, with its version, and for `__main__`."""
    room = module.partition(".")[2].partition(".")[0]
    return "" if room == "__main__" else room


@cache
def arrows() -> Mapping[str, Set[str]]:
    """For each room, those that it imports from."""
    imported: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in modules():
        if room := room_of(module):
            imported.setdefault(room, set()).update(map(room_of, imports_of(module)))
    return {room: others - {room, ""} for room, others in imported.items()}


def floor_of(room: str) -> int:
    """How many floors lie above a room's."""
    return next(number for number, floor in enumerate(FLOORS) if room in floor)


def upward() -> Iterator[str]:
    """Each import that does not go down, as `module imports module`."""
    for module in modules():
        for imported in imports_of(module):
            above, below = room_of(module), room_of(imported)
            if above and below and above != below and floor_of(below) <= floor_of(above):
                yield f"{module} imports {imported}"


def circle() -> Sequence[str]:
    """Modules of which each is imported by the next, and the first is the last, too; none if there is no circle."""
    try:
        TopologicalSorter({module: imports_of(module) for module in modules()}).prepare()
    except CycleError as error:
        along: Sequence[str] = error.args[1]
        return along
    return ()


def picture() -> str:
    """The rooms and their imports, in Mermaid's words. Arrows that follow from others are left out.

    For example, cli → server, server → common and cli → common are two arrows: cli → server → common.
    """
    lines = [f"{_BEGIN}flowchart TB"]
    lines += [f'  {room}["{room}/"]' for room in ROOMS]
    for room in ROOMS:
        further = set().union(*(_reached(other) for other in arrows()[room]))
        lines += [f"  {room} --> {other}" for other in ROOMS if other in arrows()[room] - further]
    return "\n".join([*lines, _END])


def _reached(room: str) -> Set[str]:
    """The rooms that a room imports from, directly or by others."""
    return arrows()[room] | set().union(*(_reached(other) for other in arrows()[room]))


def drawn(page: str) -> str:
    """The page with the picture as it is now."""
    before, begin, rest = page.partition(_BEGIN)
    if not begin:
        raise ValueError(f"there is no picture of rooms in the page: it has to begin with {_BEGIN!r}")
    return before + picture() + rest.partition(f"\n{_END}")[2]


def sizes() -> str:
    """How large the house is: a line for each room, with its modules, lines, and modules of more than 400 lines."""
    rows = []
    for room in ROOMS:
        paths = [path for module, path in modules().items() if room_of(module) == room]
        lines = [len(path.read_bytes().splitlines()) for path in paths]
        long = sum(count > 400 for count in lines)
        rows.append(f"{room:10} {len(lines):4} modules {sum(lines):7,} lines, {long} modules over 400")
    count = sum(map(len, arrows().values()))
    return "\n".join([*rows, f"{len(ROOMS)} rooms, {len(FLOORS)} floors, {count} arrows, {len([*upward()])} upward"])


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
    print(sizes(), file=sys.stderr)  # noqa: T201
