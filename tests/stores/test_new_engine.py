"""A new engine is one line in a table: then settings, the server, `copy`, `migrate`, `user` and help know it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from apiserver.cli import main
from apiserver.stores import engines
from tests.harness import running_api


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The address of an empty store of the new engine."""
    monkeypatch.setitem(engines.DOCUMENTS, "toy://", "tests.toy_engine:ToyEngine")
    monkeypatch.chdir(tmp_path)
    return f"toy://{tmp_path}/toy.db"


async def create(data: Path, documents: str) -> None:
    async with running_api(data, documents=documents) as api:
        await api.call("tasks.create", {"name": "kept", "type": "training"})


async def names(data: Path, documents: str) -> list[str]:
    async with running_api(data, documents=documents) as api:
        return [task["name"] for task in (await api.call("tasks.get_all"))["tasks"]]


def test_a_server_keeps_documents_in_it(toy: str, tmp_path: Path) -> None:
    asyncio.run(create(tmp_path / "one", toy))
    assert not (tmp_path / "one" / "documents.db").exists()
    assert asyncio.run(names(tmp_path / "two", toy)) == ["kept"]


@pytest.mark.test
def test_documents_are_copied_there_and_back(toy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(create(tmp_path / "one", "embedded"))
    assert main(["copy", "--from", "one", "--to", toy]) == 0
    assert main(["copy", "--from", toy, "--to", "two"]) == 0
    assert capsys.readouterr().out.count("copied") == 2
    assert asyncio.run(names(tmp_path / "two", "embedded")) == ["kept"]
    assert main(["copy", "--from", toy, "--documents", toy]) == 1
    assert "source and target are the same" in capsys.readouterr().err
    assert main(["copy", "--from", toy, toy]) == 2
    assert "at most one data folder, one address for events and one for documents" in capsys.readouterr().err


@pytest.mark.test
def test_commands_take_its_address(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--documents", toy]) == 0
    assert f"documents = {toy}\n" in capsys.readouterr().out
    assert main(["migrate", "--documents", toy]) == 0
    assert "documents: toy, so a server brings the schema up to date by itself\n" in capsys.readouterr().out
    assert main(["user", "add", "ann", "--documents", toy]) == 0
    assert main(["user", "list", "--documents", toy]) == 0
    assert "\nann (user): " in capsys.readouterr().out


def test_what_is_wrong_with_its_settings_is_named(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["config", "--documents", "toy://x"], "documents: the address names no file that ends with .db"),
        (["copy", "--to", "toy://x"], "--from, --to: documents: the address names no file that ends with .db"),
        (["serve", "--documents", toy, "--workers", "2"], "workers: more than one needs events in elasticsearch://…"),
    ):
        assert main(arguments) == 2
        assert capsys.readouterr().err.startswith(f"apiserver: {message}")
    assert main(["config", "--documents", "http://x"]) == 2
    assert "option=…] or toy:///path.db" in capsys.readouterr().err


def test_the_help_of_copy_names_it(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["copy", "--help"])
    said = "a data folder, elasticsearch://…, mongodb://…, mongodb+srv://… or toy://…; by default"
    assert said in " ".join(capsys.readouterr().out.split())
