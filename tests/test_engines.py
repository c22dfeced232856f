"""Which engine keeps what, by the settings; and that the default imports none of the distributed ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apiserver.data_folder import DataFolder
from apiserver.engines import document_store, event_store, owned
from apiserver.settings import Settings
from apiserver.stores.events.base import EventStoreError
from tests.harness import PATIENCE

ELSEWHERE = "elasticsearch://127.0.0.1"
MONGO = "mongodb://127.0.0.1/db"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (Settings(), ["EmbeddedEventStore", "SqliteDocumentStore"]),
        (Settings(events=ELSEWHERE, documents=MONGO), ["ElasticsearchEventStore", "MongoDocumentStore"]),
    ],
)
def test_the_settings_say_which(settings: Settings, names: list[str], tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    stores = (event_store(settings, folder), document_store(settings, folder))
    assert [type(store).__name__ for store in stores] == names


def test_the_default_imports_no_client() -> None:
    script = (
        "import sys; from apiserver import app, serve; from apiserver.settings import Settings\n"
        "from apiserver.engines import document_store, event_store\n"
        "from apiserver.data_folder import DataFolder; from pathlib import Path\n"
        "[make(Settings(), DataFolder(Path('x'))) for make in (event_store, document_store)]\n"
        "assert not {'elasticsearch', 'elastic_transport', 'motor', 'pymongo'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE)


def test_embedded_documents_have_one_server_wherever_events_are(tmp_path: Path) -> None:
    folder, mixed = DataFolder(tmp_path), Settings(events=ELSEWHERE)
    with owned(mixed, folder):
        with pytest.raises(EventStoreError, match="in use by the process"), owned(mixed, folder):
            raise AssertionError("two servers on one folder")
        with owned(Settings(events=ELSEWHERE, documents=MONGO), folder), owned(Settings(), folder):
            pass
    with owned(mixed, folder):
        pass
