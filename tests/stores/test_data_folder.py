"""The data folder: private, and its secret made once."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from apiserver.stores.data_folder import DataFolder, DataFolderError, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b")
    folder.make()
    folder.make()
    assert mode(folder.root) == 0o700


def test_the_token_secret_is_made_once(tmp_path: Path) -> None:
    secret = DataFolder(tmp_path).token_secret()
    assert len(secret) >= 32
    assert DataFolder(tmp_path).token_secret() == secret
    assert mode(tmp_path / "token_secret") == 0o600


def test_servers_that_start_at_once_agree_in_the_token_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert DataFolder(tmp_path).token_secret() == DataFolder(tmp_path).token_secret()


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 40])
def test_an_unusable_secret_is_not_used(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token_secret").write_bytes(content)
    with pytest.raises(DataFolderError, match="token"):
        DataFolder(tmp_path).token_secret()


@pytest.mark.parametrize(("path", "why"), [("file", "it is no folder"), ("file/data", "Not a directory")])
def test_a_file_in_the_way_is_named(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderError) as caught:
        DataFolder(tmp_path / path).make()
    assert str(caught.value) == f"cannot use the data folder: '{tmp_path / path}': {why}"


def test_commands_that_look_at_a_folder_say_that_it_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderError) as caught:
        DataFolder(tmp_path / "file").require()
    assert str(caught.value) == f"cannot use the data folder: '{tmp_path / 'file'}': it is no folder"


def test_private_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a much longer text than the new one")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "x", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
