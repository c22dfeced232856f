"""An Elasticsearch 8.17 node for tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen
from zipfile import ZipFile

from tests.engines import archives, jvm
from tests.engines.nodes import ForeignNode, Node, ProcessNode, container, first_available
from tests.harness import free_ports

VERSION = "8.17.0"
VARIABLE = "EVENTS_TEST_ELASTICSEARCH_URL"
_HEAP = "768m"
_ARCHIVE_SECONDS = 600
#: Indices that stay from one test to the next.
_KEPT_INDICES = 20
#: So many names fit into an address.
_DELETED_AT_ONCE = 20


def node(folder: Path, heap: str = _HEAP, *, quick: bool = False, lifeline: Path | None = None) -> Node:
    """A node that is not started yet, with its data below `folder`; Unavailable when none can be had.

    quick: it starts in half the time, and is slower later. lifeline: what it ends with, if not this process.
    """

    def own() -> Node:
        return process(folder, heap, quick=quick, lifeline=lifeline)

    return first_available([_named, own, lambda: _container(heap, lifeline)])


def process(
    folder: Path,
    heap: str,
    *,
    quick: bool = False,
    settings: Mapping[str, str | int] | None = None,
    lifeline: Path | None = None,
) -> ProcessNode:
    """A node as a process of ours, not started yet; Unavailable where it cannot be had. `settings` are the node's.

    It may write snapshots into a folder of its own. It starts with an archive of its classes, which takes half of the
    CPU time.
    """
    home = jvm.home("elasticsearch", _arrange)
    option = archives.option(home, partial(_use, home))
    return _process(home, folder, heap, option, quick=quick, settings=settings, lifeline=lifeline)


def _process(
    home: Path,
    folder: Path,
    heap: str,
    option: str,
    *,
    quick: bool,
    settings: Mapping[str, str | int] | None = None,
    lifeline: Path | None = None,
) -> ProcessNode:
    """option: one more of the JVM's."""
    [port] = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    java = jvm.java(
        home,
        heap,
        option,
        # It looks for the exports of its own modules: on the class path alone it does not start.
        f"--module-path={home / 'lib'}",
        "--add-modules=jdk.net,ALL-MODULE-PATH",
        f"-Djava.io.tmpdir={folder}",
        f"-Djna.tmpdir={folder}",
        "-Djava.awt.headless=true",
        "-Des.distribution.type=tar",
        f"-Dlog4j2.configurationFile={home / 'config' / 'log4j2.properties'}",
        "-Dlog4j2.disable.jmx=true",
        quick=quick,
    )
    given = [f"path.repo={folder / 'snapshots'}", *(f"{name}={value}" for name, value in (settings or {}).items())]
    command = [*java, "ElasticsearchNode", str(home), str(folder / "data"), str(port), *given]
    return ProcessNode(f"http://127.0.0.1:{port}", command, folder / "elasticsearch.log", answers, lifeline)


def _use(home: Path, option: str) -> bool:
    """Run a node with an option of the JVM, and let it load the classes that most tests need; whether it ended well."""
    with tempfile.TemporaryDirectory() as folder:
        node = _process(home, Path(folder), _HEAP, option, quick=True)
        try:
            node.start()
            lines = b'{"index":{"_id":"a","routing":"b"}}\n{"n":1,"word":"c"}\n{"delete":{"_id":"d"}}\n'
            call(node.url, "POST", "/used/_bulk?refresh=true", lines)
            counts = {"values": {"terms": {"field": "word.keyword"}, "aggs": {"most": {"max": {"field": "n"}}}}}
            query = {"bool": {"filter": [{"term": {"word.keyword": "c"}}, {"range": {"n": {"gte": 1}}}]}}
            call(node.url, "POST", "/used/_search", {"query": query, "sort": [{"n": "asc"}], "aggs": counts})
            call(node.url, "POST", "/used/_delete_by_query", {"query": {"match_all": {}}})
            assert node.process is not None
            node.process.terminate()  # it takes longer to write an archive than one that is let go may take to end
            return node.process.wait(_ARCHIVE_SECONDS) == 128 + signal.SIGTERM
        finally:
            node.remove()


def address(url: str, prefix: str) -> str:
    """The setting `events` of a server that keeps its events at `url` (a node without users)."""
    return f"{url.replace('http://', 'elasticsearch://')}/{prefix}"


def answers(url: str) -> bool:
    """Whether the node at `url` can be written to and read from."""
    try:
        call(url, "GET", "/_cluster/health?wait_for_status=yellow&timeout=5s")
    except (URLError, ConnectionError, TimeoutError):
        return False
    return True


def call(url: str, method: str, path: str, body: Any = None) -> Any:
    """One call, without the client's library; HTTPError for any status that is not a success.

    body: JSON, or the lines of a bulk as bytes. Returns the decoded answer.
    """
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
    request = Request(f"{url}{path}", content, {"Content-Type": kind, "Accept": "application/json"}, method=method)
    with urlopen(request, timeout=60) as response:
        return json.load(response)


def remove(url: str, prefix: str) -> None:
    """Delete all indices and templates whose names begin with `prefix`, many with each request."""
    remove_indices(url, prefix)
    # Index templates first: they may be made of component templates.
    for kind in ("index_template", "component_template"):
        templates = call(url, "GET", f"/_{kind}?filter_path={kind}s.name").get(f"{kind}s", [])
        _delete(url, f"/_{kind}", [one["name"] for one in templates if one["name"].startswith(prefix)])


def remove_indices(url: str, prefix: str, but: str = "") -> None:
    """Delete all indices whose names begin with `prefix`, but for one."""
    indices = call(url, "GET", f"/{prefix}*/_settings?expand_wildcards=all&filter_path=*.settings.index.uuid")
    _delete(url, "", [index for index in indices if index != but])


def templates(url: str, prefix: str) -> list[Any]:
    """All index templates whose names begin with `prefix`, by name."""
    found = call(url, "GET", "/_index_template")["index_templates"]
    return sorted((one for one in found if one["name"].startswith(prefix)), key=lambda one: str(one["name"]))


def _delete(url: str, kind: str, names: list[str]) -> None:
    for start in range(0, len(names), _DELETED_AT_ONCE):
        call(url, "DELETE", f"{kind}/{','.join(names[start : start + _DELETED_AT_ONCE])}")


def empty(url: str, prefix: str) -> None:
    """Delete all events and marks in the indices whose names begin with `prefix`; the schema stays, and so do indices.

    To make an index takes more time than most tests do. Those of many companies are deleted.
    """
    indices = [index for index in call(url, "GET", f"/{prefix}*/_alias") if index != f"{prefix}-schema"]
    if len(indices) > _KEPT_INDICES:
        _delete(url, "", indices)
    elif indices:
        call(url, "POST", f"/{','.join(indices)}/_refresh")
        call(url, "POST", f"/{','.join(indices)}/_delete_by_query?refresh=true", {"query": {"match_all": {}}})


def _named() -> Node | None:
    url = os.environ.get(VARIABLE)
    return ForeignNode(url.rstrip("/"), answers) if url else None


def _container(heap: str, lifeline: Path | None) -> Node:
    environment = {
        "discovery.type": "single-node",
        "xpack.security.enabled": "false",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "ES_JAVA_OPTS": f"-Xms{heap} -Xmx{heap}",
    }
    return container(f"elasticsearch:{VERSION}", 9200, "http", answers, environment, lifeline)


def _arrange(home: Path) -> None:
    """Give a node's home the form of the distribution's: config/, and a folder a module."""
    shutil.copytree(jvm.SOURCES / "elasticsearch", home / "config", ignore=shutil.ignore_patterns("*.java", "pom.xml"))
    network, missing = home / "modules" / "transport-netty4", home / "modules" / "missing"
    for folder, plugin in (
        (network, "org.elasticsearch.transport.netty4.Netty4Plugin"),
        (missing, "engines.MissingModules"),
    ):
        folder.mkdir(parents=True)
        (folder / "plugin-descriptor.properties").write_text(
            f"name={folder.name}\ndescription={folder.name}\nversion={VERSION}\n"
            f"elasticsearch.version={VERSION}\njava.version=17\nclassname={plugin}\n"
        )
    for pattern in ("netty-*.jar", "transport-netty4-*.jar"):
        for jar in (home / "lib").glob(pattern):
            jar.rename(network / jar.name)
    with ZipFile(missing / "missing.jar", "w") as archive:
        for compiled in (home / "classes" / "engines").iterdir():
            archive.write(compiled, f"engines/{compiled.name}")
    shutil.rmtree(home / "classes" / "engines")
