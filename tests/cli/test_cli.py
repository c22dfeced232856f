"""The command line: settings, users, and what it says when something is wrong."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver.cli import main
from apiserver.common import passwords
from apiserver.operating.backup import destinations
from apiserver.server import advice
from apiserver.settings.settings import setting_fields
from tests.harness import Served, served, wait_until

KEEP = '[{"types": ["logs"], "keep": "90 d"}]'


def key_and_secret(conf: str) -> tuple[str, str]:
    """The access key in a clearml.conf."""
    key, secret = (re.search(rf'"{name}" = "(.+)"', conf) for name in ("access_key", "secret_key"))
    assert key
    assert secret
    return key[1], secret[1]


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data").mkdir()
    return str(tmp_path / "data")


def test_config_prints_what_is_in_effect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "apiserver.toml"
    config.write_text('log_level = "debug"\n')
    monkeypatch.setenv("APISERVER_ADMIN_KEY", "the-key-of-an-admin")
    monkeypatch.setenv("APISERVER_ADMIN_SECRET", "correct horse battery")
    assert main(["config", "--port", "9000", "--config", str(config)]) == 0
    lines = dict(line.split(" = ", 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == [item.name for item in setting_fields()]
    assert (lines["port"], lines["log_level"], lines["admin_secret"]) == ("9000", "debug", "********")


def test_config_says_what_does_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("APISERVER_BACKUP_KEEP", "3")
    monkeypatch.setenv("APISERVER_RETENTION_EVERY", "24")
    assert main(["config"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "apiserver: warning: backup_keep does nothing without backup_to",
        "apiserver: warning: retention_every does nothing without retention",
    ]
    monkeypatch.setenv("APISERVER_RETENTION", KEEP)
    monkeypatch.setenv("APISERVER_BACKUP_TO", "/backups")
    assert main(["config"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.test
def test_a_misspelled_variable_is_told_by_config_and_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "APISERVER_PROT: there is no such setting; did you mean APISERVER_PORT?"
    monkeypatch.setenv("APISERVER_PROT", "1")
    assert main(["config"]) == 0
    assert capsys.readouterr().err == f"apiserver: warning: {sentence}\n"
    with served(tmp_path / "data") as server:
        assert sentence in server.log.read_text()


@pytest.mark.test
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"TRACES_TRUST_CLIENTS": "true"}, "traces_trust_clients does nothing without traces_to"),
        ({"PROXY_SIGN_OUT": "/out"}, "proxy_sign_out does nothing without proxy_user_header"),
        ({"CONSISTENCY": "strict"}, "consistency does nothing with the embedded store of events"),
        ({"MIGRATE_AT_START": "true"}, "migrate_at_start does nothing with the embedded stores"),
        ({"AUDIT_BYTES": str(2**27), "AUDIT": "off"}, "audit_bytes does nothing with audit = off"),
        ({"AUDIT_BYTES": str(2**27), "AUDIT": "stdout"}, "audit_bytes does nothing with audit = stdout"),
        ({"AUDIT_BYTES": str(2**27)}, ""),
        ({"RETENTION": KEEP}, "retention: without retention_every, only the command `apiserver retention` deletes"),
        (
            {"RETENTION": f"{KEEP[:-1]}, {KEEP[1:]}", "RETENTION_EVERY": "24"},
            "retention: rule 2 never counts: rule 1 comes first, and fits all that it fits",
        ),
    ],
)
def test_config_names_each_setting_that_does_nothing(
    values: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"APISERVER_{name}", value)
    assert main(["config"]) == 0
    assert capsys.readouterr().err == (f"apiserver: warning: {sentence}\n" if sentence else "")


@pytest.mark.parametrize("command", ["config", "serve"])
def test_an_archive_without_its_package_is_said_at_the_start(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: str
) -> None:
    for name, value in {"RETENTION": KEEP, "RETENTION_EVERY": "24", "RETENTION_ARCHIVE": "/archive"}.items():
        monkeypatch.setenv(f"APISERVER_{name}", value)
    monkeypatch.setattr(advice, "find_spec", lambda name: None)
    assert main([command, "--data", data]) == 2
    assert "retention_archive: the archive needs an optional package: run 'make parquet'" in capsys.readouterr().err


@pytest.mark.test
@pytest.mark.parametrize("command", ["config", "serve"])
@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ("s3://bucket/prefix", "backup_to: s3:// needs the extra s3: run 'make s3'"),
        ("s3://", "backup_to: s3:// is not like s3://bucket/prefix"),
        ("gs://bucket", "backup_to: gs://bucket is neither a folder nor s3://bucket/prefix"),
        ("{data}/backups", "/backups lies in the data folder: a backup belongs elsewhere"),
    ],
)
def test_a_destination_of_backups_that_cannot_be_used_is_said_at_the_start(
    command: str,
    to: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: str,
) -> None:
    monkeypatch.setenv("APISERVER_BACKUP_TO", to.format(data=data))
    monkeypatch.setattr(destinations, "find_spec", lambda name: None)
    assert main([command, "--data", data]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.test
def test_a_command_that_is_interrupted_says_so_in_a_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings")  # the command waits for somebody to write into it
    command = [sys.executable, "-m", "apiserver", "config", "--config", str(tmp_path / "settings")]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        open(tmp_path / "settings", "w"),  # this opens once the command does
    ):
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (130, "apiserver: interrupted\n")


@pytest.mark.test
def test_a_reader_may_leave() -> None:
    command = [sys.executable, "-m", "apiserver", "config"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--port", "x"], "--port: 'x' is not a whole number"),
        (["config", "--files-port", "99999"], "--files-port: 99999 is more than 65535"),
        (["config", "--config", "/nothing.toml"], "/nothing.toml"),
        (["config", "--events", "http://es:9200"], "events: neither 'embedded' nor an address"),
        (["migrate", "--documents", "mongodb://host"], "documents: the address ends with no database"),
    ],
)
def test_a_bad_setting_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"apiserver: {message}")


def test_one_command_sets_up_both_engines(engines: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    addresses = ["--events", engines["events"], "--documents", engines["documents"]]
    assert main(["user", "list", *addresses[2:]]) == 1
    assert "has no schema yet: run `apiserver migrate`" in capsys.readouterr().err
    assert main(["migrate", "--check", *addresses]) == 1
    assert "0001_indexes is to be applied" in capsys.readouterr().out
    assert main(["migrate", *addresses]) == 0
    assert main(["migrate", "--dry-run", *addresses]) == 0
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()[-2:]] == ["up to date"] * 2
    assert main(["user", "add", "alice", *addresses[2:]]) == 0


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["user"], ["user", "add"], ["serve", "--nonsense"]])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: apiserver" in capsys.readouterr().err


def test_a_flag_that_a_command_does_not_have_shows_those_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--check"])
    said = capsys.readouterr().err
    assert "usage: apiserver doctor " in said
    assert "--repair" in said
    assert said.endswith("apiserver doctor: error: unrecognized arguments: --check\n")


def test_users_come_and_are_listed(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["user", "add", "alice", "--role", "admin", "--data", data]) == 0
    key, _ = key_and_secret(capsys.readouterr().out)
    assert main(["user", "list", "--data", data]) == 0
    assert capsys.readouterr().out == f"alice (admin): {key}\n"
    assert main(["user", "revoke", key, "--data", data]) == 0
    assert main(["user", "list", "--data", data]) == 0
    assert capsys.readouterr().out == "alice (admin): no access key\n"


def test_names_end_no_line_and_move_no_terminal(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["user", "add", "eve\x1b[2K\nbob (admin)", "--data", data]) == 0
    key, _ = key_and_secret(capsys.readouterr().out)
    assert main(["user", "list", "--data", data]) == 0
    assert capsys.readouterr().out == f"eve\\x1b[2K\\nbob (admin) (user): {key}\n"


@pytest.mark.test
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "alice"], "there is a user named 'alice' already"),
        (["rotate", "nobody"], "there is no user or access key 'nobody'"),
        (["revoke", "nothing"], "there is no access key 'nothing'; `apiserver user list` shows them"),
        (["add", " "], "a user needs a name"),
    ],
)
def test_what_cannot_be_done_is_1(
    data: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["user", "add", "alice", "--data", data]) == 0
    assert main(["user", *arguments, "--data", data]) == 1
    assert capsys.readouterr().err == f"apiserver: {message}\n"


def typed(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(line))


@pytest.mark.test
def test_a_hash_is_printed_of_what_comes_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "correct horse\r\nbattery\n")
    assert main(["user", "hash"]) == 0
    assert passwords.matches("correct horse", capsys.readouterr().out.strip())


@pytest.mark.test
def test_a_password_that_is_typed_is_asked_for_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    lines = iter(["correct horse", "correct horse", "correct horse", "battery staple"])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(lines))
    assert main(["user", "hash"]) == 0
    assert main(["user", "hash"]) == 1
    assert capsys.readouterr().err == "apiserver: the two passwords differ\n"


@pytest.mark.test
def test_users_get_passwords(data: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["user", "add", "alice", "--data", data]) == 0
    for line, name, message in (
        ("short\n", "alice", "a password has at least 8 characters"),
        ("correct horse\n", "nobody", "there is no user 'nobody'"),
        ("correct horse\n", "a:b", "to have a password, a user needs a name of up to 200 characters without a colon"),
    ):
        typed(monkeypatch, line)
        assert main(["user", "password", name, "--data", data]) == 1
        assert capsys.readouterr().err == f"apiserver: {message}\n"
    typed(monkeypatch, "correct horse\n")
    assert main(["user", "password", "alice", "--data", data]) == 0
    with served(Path(data)) as server:
        assert httpx.get(f"{server.api_url}/auth.login", auth=("alice", "correct horse")).status_code == 200
        assert httpx.get(f"{server.api_url}/auth.login", auth=("alice", "battery staple")).status_code == 401


def test_a_folder_that_cannot_be_used_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["user", "list", "--data", str(tmp_path / "file")]) == 1
    assert "cannot use the data folder" in capsys.readouterr().err


@pytest.mark.test
@pytest.mark.parametrize(
    "command",
    [
        *(["user", action] for action in ("list", "sessions")),
        *(["user", action, "alice"] for action in ("add", "key", "rotate", "revoke", "unlink")),
        *(["backup", "backups"], ["user", "password", "alice"]),
        *(["audit"], ["audit", "--check"], ["migrate", "--dry-run"], ["retention", "--retention", KEEP]),
    ],
)
def test_a_folder_that_is_not_there_is_1_and_stays_so(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typo = tmp_path / "typo"
    assert main([*command, "--data", str(typo)]) == 1
    assert f"there is no data folder '{typo}'" in capsys.readouterr().err
    assert not typo.exists()


def test_the_doctor_cannot_look_at_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--data", str(tmp_path / "typo")]) == 2
    assert f"there is no data folder '{tmp_path / 'typo'}'" in capsys.readouterr().err


def test_a_running_server_sees_what_the_command_changes(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    def logs_in(key_pair: tuple[str, str]) -> bool:
        return httpx.get(f"{server.api_url}/auth.login", auth=key_pair).status_code == 200

    assert main(["user", "add", "alice", "--data", str(server.data)]) == 0
    first = key_and_secret(capsys.readouterr().out)
    assert logs_in(first)
    assert main(["user", "rotate", "alice", "--data", str(server.data)]) == 0
    second = key_and_secret(capsys.readouterr().out)
    assert logs_in(second)
    wait_until(lambda: not logs_in(first))
    assert main(["user", "revoke", second[0], "--data", str(server.data)]) == 0
    wait_until(lambda: not logs_in(second))
