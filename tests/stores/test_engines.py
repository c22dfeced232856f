"""Which engine keeps what, by the settings; and that the default imports none of the distributed ones."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.settings.settings import Settings, SettingsError, masked
from apiserver.stores import engines
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.mongo.engine import MongoEngine
from apiserver.stores.engines import check, document_engine, event_engine, owned
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch.engine import ElasticsearchEngine
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
    stores = (event_engine(settings).store(folder), document_engine(settings).store(folder))
    assert [type(store).__name__ for store in stores] == names


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(events="http://es:9200"), "events: neither 'embedded' nor an address such as elasticsearch://"),
        (Settings(events=""), "events: neither 'embedded' nor an address such as elasticsearch://"),
        (Settings(events="embedded://x"), "events: neither 'embedded' nor an address"),
        (Settings(events=MONGO), "events: neither 'embedded' nor an address"),
        (Settings(documents="mongo://host/db"), "documents: neither 'embedded' nor an address such as mongodb://"),
        (Settings(documents="mongodb://host"), "documents: the address ends with no database"),
        (Settings(events_api_key="k"), "events: events_password and events_api_key are for an engine with an address"),
        (Settings(documents_password="k"), "documents: documents_password is for an engine with an address"),
        (Settings(workers=2), "workers: more than one needs events in elasticsearch://… and documents in mongodb://…"),
        (Settings(workers=2, events=ELSEWHERE), "workers: more than one needs events in"),
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
    events, documents = event_engine(settings), document_engine(settings)
    assert isinstance(events, ElasticsearchEngine)
    assert isinstance(documents, MongoEngine)
    assert (events.address.prefix, events.address.api_key) == ("prod", "key")
    assert documents.uri == "mongodb://me:p@mongo/db"


@pytest.mark.test
@given(st.text(max_size=40), st.sampled_from(["", "elasticsearch://", "mongodb://"]))
def test_any_text_is_an_address_or_is_refused(text: str, begins: str) -> None:
    settings = Settings(events=begins + text, documents=begins + text)
    masked(settings)
    for engine in (event_engine, document_engine):
        with suppress(SettingsError):
            engine(settings)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Settings(data=Path("x")), Settings(data=Path("y/../x")), True),
        (Settings(data=Path("x")), Settings(data=Path("y")), False),
        (Settings(events="elasticsearch://a,b/p"), Settings(events="elasticsearch://b/p"), True),
        (Settings(events="elasticsearch://a/p"), Settings(events="elasticsearch://a/q"), False),
        (Settings(events="elasticsearch://a/p"), Settings(), False),
    ],
)
def test_the_same_events_are_known(one: Settings, other: Settings, same: bool) -> None:
    assert bool(event_engine(one).places & event_engine(other).places) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Settings(data=Path("x")), Settings(data=Path("y/../x")), True),
        (Settings(data=Path("x")), Settings(data=Path("y")), False),
        (Settings(documents=MONGO), Settings(documents=MONGO), True),
        (Settings(documents=MONGO), Settings(), False),
    ],
)
def test_the_same_documents_are_known(one: Settings, other: Settings, same: bool) -> None:
    assert bool(document_engine(one).places & document_engine(other).places) is same


@pytest.mark.test
def test_the_default_imports_no_client() -> None:
    script = (
        "import sys; from apiserver.server import app, serve; from apiserver.settings.settings import Settings\n"
        "from apiserver.stores.engines import document_engine, event_engine\n"
        "from apiserver.stores.data_folder import DataFolder; from pathlib import Path\n"
        "[engine(Settings()).store(DataFolder(Path('x'))) for engine in (event_engine, document_engine)]\n"
        "assert not {'elasticsearch', 'elastic_transport', 'motor', 'pymongo', 'google'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE)


@pytest.mark.test
def test_the_modules_of_engines_import_no_client() -> None:
    names = {*engines.EVENTS.values(), *engines.DOCUMENTS.values()}
    script = (
        f"import pkgutil, sys; engines = [pkgutil.resolve_name(name) for name in {sorted(names)}]\n"
        "assert len({engine.form for engine in engines}) == 3\n"
        "assert not {'elasticsearch', 'elastic_transport', 'pymongo', 'numpy', 'sqlite3'} & sys.modules.keys()"
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
