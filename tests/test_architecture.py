"""Data flows down: nothing imports what lies above it, as docs/architecture.md says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "apiserver"

#: For each part, the parts that it may import from beside itself ("" is the package: its version). Parts that are not
#: named here may import from all.
ALLOWED = {
    "answers": set(),
    "off_loop": set(),
    "repeating": set(),
    "times": set(),
    "ip_addresses": set(),
    "json_structure": set(),
    "resources": set(),
    "urls": set(),
    "events": {"json_structure", "times", "urls"},
    "stores.addresses": set(),
    "stores.migrations": {"resources"},
    "stores.reserve": set(),
    "passwords": set(),
    "settings": {"ip_addresses", "passwords", "stores.addresses"},
    "stores.events": {
        "answers",
        "events",
        "off_loop",
        "resources",
        "stores.addresses",
        "stores.migrations",
        "stores.reserve",
        "times",
    },
    "stores.documents": {
        "json_structure",
        "off_loop",
        "resources",
        "stores.addresses",
        "stores.migrations",
        "stores.reserve",
        "times",
    },
    "stores.files": {"times"},
    "rpc": {"answers", "json_structure", "off_loop", "times", "urls"},
    "aggregation": {"answers", "events", "off_loop", "stores.events", "times"},
    "files": {"repeating", "rpc", "stores.documents", "stores.files", "times"},
    "copying": {
        "data_folder",
        "engines",
        "events",
        "settings",
        "stores.addresses",
        "stores.documents",
        "stores.events",
    },
    "importing": {
        *("copying", "data_folder", "events", "services", "settings", "stores.addresses", "stores.documents"),
        *("stores.events", "stores.files", "times"),
    },
    "engines": {
        *("data_folder", "settings", "stores.addresses", "stores.documents", "stores.events", "stores.migrations"),
        "stores.reserve",
    },
    "processes": set(),
    "connections": {"ip_addresses"},
    "vendors": {"aggregation", "events", "rpc", "services", "stores.documents", "stores.events", "times"},
    "services": {
        *(
            "",
            "aggregation",
            "answers",
            "events",
            "files",
            "ip_addresses",
            "off_loop",
            "passwords",
            "repeating",
            "rpc",
            "settings",
        ),
        *("stores.documents", "stores.events", "times"),
    },
}


def part_of(module: str) -> str:
    """The part of the package that a module belongs to: the longest name in ALLOWED, or its first one."""
    names = module.removeprefix("apiserver").removeprefix(".").split(".")
    two = ".".join(names[:2])
    return two if two in ALLOWED else names[0]


def imports_of(path: Path) -> set[str]:
    """The modules of the package that a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("apiserver."):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if f"{alias.name}.".startswith("apiserver.")}
    return found


def files() -> list[tuple[str, Path]]:
    """Every file of a part that may not import everything, with its part."""
    all_files = sorted(PACKAGE.rglob("*.py"))
    modules = [(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts), path) for path in all_files]
    return [(part, path) for module, path in modules if (part := part_of(module)) in ALLOWED]


@pytest.mark.parametrize(("part", "path"), files(), ids=lambda value: str(value).removeprefix(str(PACKAGE)))
def test_nothing_imports_upward(part: str, path: Path) -> None:
    parts = {part_of(module) for module in imports_of(path)}
    assert parts - ALLOWED[part] <= {part}


def test_only_one_place_knows_the_engines_by_name() -> None:
    engines = (
        *("stores.events.embedded", "stores.events.elasticsearch"),
        *("stores.documents.sqlite", "stores.documents.mongo"),
    )
    for path in sorted(PACKAGE.rglob("*.py")):
        if not any(engine.replace(".", "/") in path.as_posix() for engine in engines) and path.name != "engines.py":
            assert not any(engine in module for module in imports_of(path) for engine in engines), path
