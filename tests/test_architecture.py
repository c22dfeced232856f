"""The house: imports go down, in no circle, as the picture in docs/architecture.md shows; engines are apart."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docs import rooms
from docs.rooms import PACKAGE

ROOT = PACKAGE.parent


def test_every_folder_is_a_room_on_one_floor() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(rooms.ROOMS)
    assert len(rooms.ROOMS) == len(folders)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.test
def test_nothing_imports_upward() -> None:
    assert list(rooms.upward()) == []


#: Rooms that a room does not know, though they lie below it.
STRANGERS = {
    "services": {"http"},
    "transfer": {"http", "rpc"},
    "live": {"http", "rpc"},
    "reading": {"http", "rpc"},
    "stores": {"http", "rpc"},
    "fileserver": {"http", "events"},
    "pages": {"http", "events"},
}


@pytest.mark.test
def test_rooms_do_not_know_what_is_not_theirs() -> None:
    imported = {room: rooms.arrows()[room] & strangers for room, strangers in STRANGERS.items()}
    assert {room: strangers for room, strangers in imported.items() if strangers} == {}


@pytest.mark.test
@pytest.mark.parametrize("kind", ["documents", "events", "files"])
def test_stores_of_one_kind_do_not_know_the_others(kind: str) -> None:
    others = tuple(f"apiserver.stores.{other}" for other in ("documents", "events", "files") if other != kind)
    modules = [module for module in rooms.modules() if module.startswith(f"apiserver.stores.{kind}")]
    assert {name for module in modules for name in rooms.imports_of(module) if name.startswith(others)} == set()


@pytest.mark.test
def test_no_modules_import_each_other() -> None:
    assert list(rooms.circle()) == []


@pytest.mark.test
def test_the_picture_shows_the_imports() -> None:
    page = rooms.PAGE.read_text("utf-8")
    assert page == rooms.drawn(page), "`python -m docs.rooms` draws it anew"


@pytest.mark.test
def test_modules_that_others_name_are_there() -> None:
    """In docstrings and comments, a module is a name such as `times.py`, or a path such as `common/times.py`."""
    folders = ("apiserver", "tests", "benchmarks", "docs")
    files = [path for folder in folders for path in ROOT.joinpath(folder).rglob("*.py")]
    paths = [f"/{path.relative_to(ROOT).as_posix()}" for path in (*files, *ROOT.glob("*.py"))]
    text = {path: path.read_text("utf-8") for path in files if path.is_relative_to(PACKAGE)}
    named = {(path.name, name) for path in text for name in re.findall(r"`((?:\w+/)*\w+\.py)[`:]", text[path])}
    assert len(named) > 100
    assert {(path, name) for path, name in named if not any(full.endswith(f"/{name}") for full in paths)} == set()


#: Lines of a function at most, as a reader should see it at once.
LONGEST = 60


@pytest.mark.test
def test_functions_fit_on_a_screen() -> None:
    functions = {
        f"{module}:{node.name}": node.end_lineno - node.lineno + 1
        for module, path in rooms.modules().items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None
    }
    assert len(functions) > 1000
    assert {name: lines for name, lines in functions.items() if lines > LONGEST} == {}


#: The packages of the engines.
ENGINES = (
    *("stores/events/embedded", "stores/events/elasticsearch", "stores/events/blocks"),
    *("stores/documents/sqlite", "stores/documents/mongo"),
)
#: Who else names engines in code, by module and definition, and why.
MAY_NAME_ENGINES = {
    "stores.engines:EVENTS": "the table of the engines of events",
    "stores.engines:DOCUMENTS": "the table of the engines of documents",
    "settings.settings:Settings": "the help of settings",
    "stores.formats:": "the table of formats, and reading the numbers of SQLite files",
    "stores.formats:BLOCKS": "the table of formats",
    "stores.formats:COLLECTIONS": "the table of formats",
    "stores.sqlite_pages:": "reads the pages of SQLite's files",
    "stores.sqlite_pages:Pages": "the same",
    "stores.sqlite_pages:reading": "the same",
    "cli.operations:_cannot": "tells damage of SQLite's files from other errors",
    "cli.transfers:_add_clearml_flags": "the flags of import clearml, whose source is a ClearML server's databases",
    "cli.transfers:_source": "the same flags",
    "transfer.importing": "reads a ClearML server's databases",
    "server.logs:setup": "the loggers of client libraries",
}


def definitions_that_name_engines(path: Path) -> set[str]:
    """The definitions at the top of a module, as module:name, in which code but no docstring names an engine."""
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    found = set()
    for node in ast.parse(path.read_text()).body:
        docstrings = {id(one.value) for one in ast.walk(node) if isinstance(one, ast.Expr)}
        for one in ast.walk(node):
            words = [getattr(one, field, None) for field in ("id", "attr", "name", "module", "arg", "value")]
            said = " ".join(word for word in words if isinstance(word, str)) if id(one) not in docstrings else ""
            if re.search("elastic|mongo|sqlite", said, re.IGNORECASE):
                target = node.targets[0] if isinstance(node, ast.Assign) else node
                name = getattr(target, "name", None) or getattr(target, "id", "")
                importer = "transfer.importing"
                found.add(importer if module.startswith(f"{importer}.") else f"{module}:{name}")
    return found


@pytest.mark.test
def test_only_the_tables_know_engines_by_name() -> None:
    shared = ("stores/sqlite_files.py", "stores/sqlite_steps.py")  # by the engines that have SQLite files
    within = (*ENGINES, *shared)
    others = [path for path in PACKAGE.rglob("*.py") if not any(f"/{name}/" in f"{path}/" for name in within)]
    assert set().union(*map(definitions_that_name_engines, others)) == MAY_NAME_ENGINES.keys()


@pytest.mark.test
def test_only_the_importer_imports_from_an_engine() -> None:
    packages = tuple(f"apiserver.{one.replace('/', '.')}." for one in ENGINES)
    imports = {
        (module, imported)
        for module in rooms.modules()
        for imported in rooms.imports_of(module)
        if imported.startswith(packages) and not f"{module}.".startswith(packages)
    }
    assert all(module.startswith("apiserver.transfer.importing.") for module, _ in imports)
    # It takes addresses of Elasticsearch, as the setting does.
    assert {imported for _, imported in imports} == {"apiserver.stores.events.elasticsearch.address"}
