"""Data flows down: nothing imports what lies above it, as docs/architecture.md says."""

from __future__ import annotations

import ast
import re
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
    "memory": set(),
    "import_times": set(),
    "addresses": set(),
    "errors": set(),
    "extras": set(),
    "ip_addresses": set(),
    "json_structure": set(),
    "commit": set(),
    "resources": set(),
    "urls": set(),
    "events": {"json_structure", "times", "urls"},
    "protobuf_wire": set(),
    # the modules of this name in the packages of engines
    "address": {"addresses"},
    "stores.migrations": {"resources"},
    "stores.reserve": set(),
    "stores.inspection": set(),
    "stores.locks": set(),
    "stores.sqlite_files": {"stores.inspection"},
    "stores.sqlite_steps": set(),
    "stores.snapshots": set(),
    "stores.pages": {"stores.snapshots", "stores.sqlite_files"},
    "stores.syncing": set(),
    "passwords": set(),
    "retention_rules": set(),
    "setting_values": {"ip_addresses", "passwords", "retention_rules"},
    "settings": {"addresses", "ip_addresses", "retention_rules", "setting_values"},
    "setting_sources": {"setting_values", "settings", "urls"},
    "data_folder": set(),
    "formats": {"__version__", "data_folder", "operating.escaping", "settings", "stores.sqlite_files"},
    "operating.escaping": set(),
    "refusals": {"operating.escaping"},
    "sizes": set(),
    "stores.events": {
        "__version__",
        "address",
        "answers",
        "events",
        "off_loop",
        "resources",
        "sizes",
        "stores.inspection",
        "stores.locks",
        "stores.migrations",
        "stores.pages",
        "stores.reserve",
        "stores.sqlite_files",
        "stores.sqlite_steps",
        "stores.snapshots",
        "stores.syncing",
        "times",
    },
    "stores.documents": {
        "__version__",
        "json_structure",
        "off_loop",
        "resources",
        "sizes",
        "stores.inspection",
        "stores.migrations",
        "stores.pages",
        "stores.reserve",
        "stores.sqlite_files",
        "stores.sqlite_steps",
        "stores.snapshots",
        "times",
    },
    "stores.files": {"stores.locks", "stores.syncing", "times"},
    "rpc": {"answers", "errors", "json_structure", "off_loop", "times", "urls"},
    "aggregation": {"answers", "events", "off_loop", "stores.events", "times"},
    "files": {"errors", "repeating", "rpc", "stores.documents", "stores.files", "times"},
    "live": {"aggregation", "events", "off_loop", "stores.documents", "stores.events"},
    "copying": {
        "data_folder",
        "engines",
        "events",
        "formats",
        "off_loop",
        "sizes",
        "services",
        "settings",
        "stores.documents",
        "stores.events",
    },
    "importing": {
        *("address", "copying", "data_folder", "events", "formats", "services", "settings", "stores.documents"),
        *("extras", "operating.escaping", "sizes", "protobuf_wire", "refusals", "stores.events", "stores.files"),
        *("import_times", "times"),
    },
    # `stores/engine.py`, and the modules of this name in the packages of engines
    "engine": {
        *("address", "addresses", "data_folder", "settings", "stores.documents", "stores.events", "stores.migrations"),
        *("stores.inspection", "stores.reserve", "stores.snapshots"),
    },
    "engines": {"data_folder", "engine", "settings", "stores.documents", "stores.events", "stores.migrations"},
    "operating": {
        *("__version__", "data_folder", "engines", "events", "files", "formats", "metrics.gauges", "operating.audit"),
        *("copying", "extras", "memory", "operating.escaping", "sizes", "repeating"),
        *("settings", "stores.documents", "stores.events", "stores.files", "stores.inspection"),
        *("stores.locks", "stores.reserve", "stores.snapshots", "stores.syncing", "times"),
    },
    "signals": set(),
    "systemd": {"repeating"},
    "processes": {"signals"},
    "connections": {"ip_addresses"},
    "data.tables": set(),
    "data.formats": {"answers", "data.tables", "errors", "extras", "rpc", "times"},
    "data": {
        *("data.formats", "data.tables", "errors", "operating.retention", "retention_rules"),
        *("aggregation", "answers", "events", "files", "live", "off_loop", "rpc", "services", "stores.documents"),
        *("__version__", "data_folder", "metrics.exposition", "operating.audit", "stores.events", "stores.files"),
        "times",
    },
    "metrics.counters": set(),
    "metrics.exposition": set(),
    "metrics.gauges": set(),
    "metrics": {
        *(
            "__version__",
            "commit",
            "data_folder",
            "errors",
            "metrics.counters",
            "metrics.exposition",
            "metrics.gauges",
            "rpc",
        ),
        "services",
    },
    "operating.audit": {"ip_addresses", "metrics.gauges", "rpc", "settings", "stores.syncing", "times"},
    "operating.retention": {
        *("__version__", "formats", "operating.escaping"),
        *("data.formats", "data.tables", "events", "extras", "files", "metrics.gauges", "operating.audit", "repeating"),
        "import_times",
        *("retention_rules", "settings", "stores.documents", "stores.events", "stores.syncing", "times"),
    },
    "otlp": {"events", "json_structure", "protobuf_wire", "rpc", "services", "times"},
    "vendors": {"aggregation", "errors", "events", "rpc", "services", "stores.documents", "stores.events", "times"},
    "viewer": {"resources", "rpc"},
    "services": {
        *(
            "",
            "aggregation",
            "answers",
            "commit",
            "errors",
            "events",
            "extras",
            "files",
            "import_times",
            "ip_addresses",
            "live",
            "metrics.counters",
            "metrics.gauges",
            "off_loop",
            "passwords",
            "repeating",
            "rpc",
            "setting_values",
            "settings",
            "urls",
        ),
        *("stores.documents", "stores.events", "stores.files", "times"),
    },
}


def part_of(module: str) -> str:
    """The part of the package that a module belongs to: the longest name in ALLOWED, or its first one.

    The modules `engine` and `address` of all engines are parts of their own.
    """
    names = module.removeprefix("apiserver").removeprefix(".").split(".")
    if names[0] == "stores" and (found := {"address", "engine"}.intersection(names)):
        return found.pop()
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


@pytest.mark.test
@pytest.mark.parametrize(("part", "path"), files(), ids=lambda value: str(value).removeprefix(str(PACKAGE)))
def test_nothing_imports_upward(part: str, path: Path) -> None:
    parts = {part_of(module) for module in imports_of(path)}
    assert parts - ALLOWED[part] <= {part}


#: The packages of the engines.
ENGINES = (
    *("stores/events/embedded", "stores/events/elasticsearch", "stores/events/columnar"),
    *("stores/documents/sqlite", "stores/documents/mongo"),
)
#: Who else names engines in code, by module and definition, and why.
MAY_NAME_ENGINES = {
    "engines:EVENTS": "the table of the engines of events",
    "engines:DOCUMENTS": "the table of the engines of documents",
    "settings:Settings": "the help of settings",
    "formats:": "the table of formats, and reading the numbers of SQLite files",
    "formats:BLOCKS": "the table of formats",
    "formats:COLLECTIONS": "the table of formats",
    "stores.pages:": "reads the pages of SQLite's files",
    "stores.pages:Pages": "the same",
    "stores.pages:reading": "the same",
    "cli.operations:_cannot": "tells damage of SQLite's files from other errors",
    "cli.transfers:_add_clearml_flags": "the flags of import clearml, whose source is a ClearML server's databases",
    "cli.transfers:_source": "the same flags",
    "importing": "reads a ClearML server's databases",
    "logs:setup": "the loggers of client libraries",
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
                found.add("importing" if module.startswith("importing.") else f"{module}:{name}")
    return found


@pytest.mark.test
def test_only_the_tables_know_engines_by_name() -> None:
    shared = ("stores/sqlite_files.py", "stores/sqlite_steps.py")  # by the engines that have SQLite files
    own = (*ENGINES, *shared)
    others = [path for path in PACKAGE.rglob("*.py") if not any(f"/{one}/" in f"{path}/" for one in own)]
    assert set().union(*map(definitions_that_name_engines, others)) == MAY_NAME_ENGINES.keys()


@pytest.mark.test
def test_only_the_importer_imports_from_an_engine() -> None:
    packages = tuple(f"apiserver.{one.replace('/', '.')}." for one in ENGINES)
    found = {
        (path.relative_to(PACKAGE).as_posix(), module)
        for path in PACKAGE.rglob("*.py")
        for module in imports_of(path)
        if module.startswith(packages) and not any(f"apiserver/{one}/" in str(path) for one in ENGINES)
    }
    # It takes addresses of Elasticsearch, as the setting does.
    assert {path.partition("/")[0] for path, _ in found} == {"importing"}
    assert {module.rpartition(".")[0] for _, module in found} == {"apiserver.stores.events.elasticsearch.address"}
