"""Which engine keeps what, by the settings; and that the default imports none of the distributed ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apiserver.data_folder import DataFolder
from apiserver.engines import (
    check,
    document_address,
    document_store,
    event_address,
    event_store,
    owned,
    same_documents,
    same_events,
)
from apiserver.settings import Settings, SettingsError
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(events="http://es:9200"), "events: neither 'embedded' nor an address such as elasticsearch://"),
        (Settings(documents="mongodb://host"), "documents: the address ends with no database"),
        (Settings(events_api_key="k"), "events: events_password and events_api_key are for Elasticsearch"),
        (Settings(documents_password="k"), "documents: documents_password is for MongoDB"),
        (Settings(workers=2), "workers: more than one needs events on Elasticsearch and documents on MongoDB"),
    ],
)
def test_a_bad_address_names_its_setting(settings: Settings, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check(settings)
    assert str(caught.value).startswith(message)


def test_engines_are_addressed() -> None:
    settings = Settings(
        events="elasticsearch://es/prod",
        events_api_key="key",
        documents="mongodb://me@mongo/db",
        documents_password="p",
        workers=2,
    )
    check(settings)
    events = event_address(settings)
    assert events is not None
    assert (events.prefix, events.api_key) == ("prod", "key")
    assert document_address(settings) == "mongodb://me:p@mongo/db"
    assert (event_address(Settings()), document_address(Settings())) == (None, None)


def test_the_same_stores_are_known() -> None:
    assert same_events(Settings(data=Path("x")), Settings(data=Path("y/../x")))
    assert not same_documents(Settings(data=Path("x")), Settings(data=Path("y")))
    assert same_events(Settings(events="elasticsearch://a,b/p"), Settings(events="elasticsearch://b/p"))
    assert not same_events(Settings(events="elasticsearch://a/p"), Settings(events="elasticsearch://a/q"))
    assert not same_events(Settings(events="elasticsearch://a/p"), Settings())
    assert same_documents(Settings(documents=MONGO), Settings(documents=MONGO))
    assert not same_documents(Settings(documents=MONGO), Settings())


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
