"""Settings: where they come from, in which order, and how bad ones are named."""

from __future__ import annotations

import json
import re
from ipaddress import ip_network
from pathlib import Path

import pytest

from apiserver.settings.settings import Settings, SettingsError, masked, setting_fields, shown
from apiserver.settings.sources import load, unknown_variables
from apiserver.settings.values import FixedUser, GroupRole


def test_defaults_alone() -> None:
    assert load() == Settings()


def test_file_then_environment_then_flags(tmp_path: Path) -> None:
    config = tmp_path / "apiserver.toml"
    config.write_text('port = 1\nfiles_port = 2\nhost = "file"\n')
    settings = load({"port": "5", "host": None}, {"APISERVER_FILES_PORT": "4", "APISERVER_PORT": "3"}, config)
    assert (settings.port, settings.files_port, settings.host) == (5, 4, "file")


def test_unrelated_environment_is_ignored() -> None:
    assert load(environ={"APISERVER_URL": "x", "PORT": "9"}) == Settings()


def test_variables_that_are_named_like_settings_are_told_with_the_nearest_setting() -> None:
    known = {f"APISERVER_{item.name.upper()}": "" for item in setting_fields()}
    misspelled = ("APISERVER_PROT", "APISERVER_LOGLEVEL", "APISERVER_files_port", "APISERVER_LISTEN", "APISERVER_")
    assert unknown_variables({**known, **dict.fromkeys(misspelled, "secret"), "PORT": "9", "APISERVERS": "x"}) == [
        "APISERVER_: there is no such setting",
        "APISERVER_LISTEN: there is no such setting",
        "APISERVER_LOGLEVEL: there is no such setting; did you mean APISERVER_LOG_LEVEL?",
        "APISERVER_PROT: there is no such setting; did you mean APISERVER_PORT?",
        "APISERVER_files_port: there is no such setting; did you mean APISERVER_FILES_PORT?",
    ]


def test_networks_are_parsed() -> None:
    networks = (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))
    settings = load(environ={"APISERVER_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8,2001:db8::/32"})
    assert settings.trusted_proxies == networks
    assert load(environ={"APISERVER_TRUSTED_PROXIES": shown(networks)}) == settings
    for wrong in ("proxy", "10.0.0.1/8", "10.0.0.0/8;"):
        with pytest.raises(SettingsError, match="APISERVER_TRUSTED_PROXIES"):
            load(environ={"APISERVER_TRUSTED_PROXIES": wrong})


def test_paths_and_origins_are_parsed() -> None:
    settings = load(environ={"APISERVER_DATA": "/srv/x", "APISERVER_ALLOWED_ORIGINS": "http://a:1, https://b/"})
    assert settings.data == Path("/srv/x")
    assert settings.allowed_origins == ("http://a:1", "https://b")


HASH = "scrypt$16$8$3$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


def test_groups_and_domains_are_parsed(tmp_path: Path) -> None:
    config = tmp_path / "apiserver.toml"
    config.write_text('oidc_email_domains = ["Example.org"]\n[[oidc_groups]]\ngroup = "boss"\nrole = "admin"\n')
    settings = load(config=config)
    assert settings.oidc_groups == (GroupRole("boss", "admin"),)
    assert settings.oidc_email_domains == ("example.org",)
    environ = {name: shown(getattr(settings, name)) for name in ("oidc_groups", "oidc_email_domains")}
    assert load(environ={f"APISERVER_{name.upper()}": value for name, value in environ.items()}) == settings


def test_users_come_from_tables_or_json(tmp_path: Path) -> None:
    config = tmp_path / "apiserver.toml"
    config.write_text(f'[[users]]\nname = "alice"\npassword = "{HASH}"\nrole = "admin"\n')
    alice = FixedUser("alice", HASH, role="admin")
    assert load(config=config).users == (alice,)
    bob = {"APISERVER_USERS": json.dumps([{"name": "bob", "password": HASH, "email": "bob@example.com"}])}
    settings = load(environ=bob, config=config)
    assert settings.users == (FixedUser("bob", HASH, email="bob@example.com"),)
    assert load(environ={"APISERVER_USERS": shown(settings.users)}) == Settings(users=settings.users)
    assert masked(settings)["users"] == "bob"
    assert HASH not in repr(settings)
    assert load(environ={"APISERVER_USERS": ""}).users == ()


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ("{", "not a list of users in JSON"),
        ("{}", "not a list of users"),
        ('["alice"]', "a user is a table of texts"),
        ('[{"name": 5}]', "a user is a table of texts"),
        ('[{"password": "x"}]', "to have a password, a user needs a name"),
        ('[{"name": "a:b"}]', "without a colon"),
        ('[{"name": "a", "shoe": "39"}]', "a user has no field shoe"),
        ('[{"name": "a", "role": "guest"}]', "a: role: neither user nor admin"),
        ('[{"name": "a"}]', "a: password: not a hash of a password; `apiserver user hash` makes one"),
        ('[{"name": "a", "password": "secret"}]', "a: password: not a hash"),
        (json.dumps([{"name": "a", "password": HASH}] * 2), "two users have the same name"),
    ],
)
def test_users_that_cannot_be_are_refused(users: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        load(environ={"APISERVER_USERS": users})


@pytest.mark.test
@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"APISERVER_OIDC_ISSUER": "https://id.example.org"}, "oidc_issuer and oidc_client_id: give both or neither"),
        (
            {"APISERVER_OIDC_ISSUER": "http://id.example.org", "APISERVER_OIDC_CLIENT_ID": "x"},
            "oidc_issuer: give an address of https",
        ),
        (
            {
                "APISERVER_OIDC_ISSUER": "https://id.example.org",
                "APISERVER_OIDC_CLIENT_ID": "x",
                "APISERVER_OIDC_SCOPES": "email",
            },
            "oidc_scopes: openid must be among them",
        ),
        ({"APISERVER_PROXY_USER_HEADER": "X-Forwarded-User"}, "proxy_user_header: trusted_proxies must say"),
        *(
            (
                {"APISERVER_TRUSTED_PROXIES": "10.0.0.1", "APISERVER_PROXY_USER_HEADER": header},
                "proxy_user_header: give the name of a header",
            )
            for header in (
                "Authorization",
                "cookie",
                "X-Forwarded-For",
                "X-ClearML-Impersonate-As",
                "a b",
                "x:",
                "Host",
            )
        ),
        *(
            ({"APISERVER_PROXY_SIGN_OUT": address}, "proxy_sign_out: give a path")
            for address in ("//evil.example", "javascript:alert(1)", "sign_out")
        ),
        ({"APISERVER_OIDC_GROUPS": '[{"role": "admin"}]'}, "APISERVER_OIDC_GROUPS: a group needs its name"),
        (
            {"APISERVER_OIDC_GROUPS": '[{"group": "x", "role": "root"}]'},
            "APISERVER_OIDC_GROUPS: x: role: neither user nor admin",
        ),
        (
            {"APISERVER_OIDC_EMAIL_DOMAINS": "a@b"},
            "APISERVER_OIDC_EMAIL_DOMAINS: 'a@b' is not a domain such as example.org",
        ),
        ({"APISERVER_PORT": "many"}, "APISERVER_PORT: 'many' is not a whole number"),
        ({"APISERVER_PORT": "70000"}, "APISERVER_PORT: 70000 is more than 65535"),
        ({"APISERVER_MAX_BODY_BYTES": "1"}, "APISERVER_MAX_BODY_BYTES: 1 is less than 1048576"),
        ({"APISERVER_DURABILITY": "none"}, "APISERVER_DURABILITY: 'none' is not one of process, fsync"),
        ({"APISERVER_DATA": ""}, "APISERVER_DATA: the path is empty"),
        ({"APISERVER_HOST": ""}, "APISERVER_HOST: it is empty"),
        ({"APISERVER_COMPANY": " "}, "APISERVER_COMPANY: it is empty"),
        ({"APISERVER_SLOW_LOOP_MS": "3600001"}, "APISERVER_SLOW_LOOP_MS: 3600001 is more than 3600000"),
        ({"APISERVER_SHUTDOWN_SECONDS": "86401"}, "APISERVER_SHUTDOWN_SECONDS: 86401 is more than 86400"),
        ({"APISERVER_ALLOWED_ORIGINS": "*"}, "APISERVER_ALLOWED_ORIGINS: '*' is not an origin"),
        ({"APISERVER_TLS_CERT": "a.pem"}, "tls_cert and tls_key: give both or neither"),
        ({"APISERVER_ADMIN_KEY": "long enough"}, "admin_key and admin_secret: give both or neither"),
        ({"APISERVER_ADMIN_KEY": "shorter"}, "APISERVER_ADMIN_KEY: shorter than 8 characters"),
        ({"APISERVER_ADMIN_SECRET": "a"}, "APISERVER_ADMIN_SECRET: shorter than 16 characters"),
        ({"APISERVER_PORT": "8081"}, "port and files_port: give two different ports"),
        ({"APISERVER_MIGRATE_AT_START": "1"}, "APISERVER_MIGRATE_AT_START: '1' is neither true nor false"),
        ({"APISERVER_TOKEN_SECRET": "short"}, "APISERVER_TOKEN_SECRET: shorter than 32 characters"),
    ],
)
def test_a_bad_value_names_its_variable(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(environ=environ)
    assert str(caught.value).startswith(message)


def test_a_secret_is_not_repeated_in_an_error() -> None:
    with pytest.raises(SettingsError) as caught:
        load(environ={"APISERVER_TOKEN_SECRET": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("port = true", "port: True is not a whole number"),
        ("prot = 1", "prot: there is no such setting; did you mean port?"),
        ("listen = 1", "listen: there is no such setting"),
        ("port = ", "apiserver.toml: "),
        ("allowed_origins = 3", "allowed_origins: 3 is not a list of origins"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    config = tmp_path / "apiserver.toml"
    config.write_text(content)
    with pytest.raises(SettingsError, match=r"apiserver\.toml") as caught:
        load(config=config)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(config=tmp_path / "nothing.toml")
    assert str(caught.value) == f"{tmp_path / 'nothing.toml'}: No such file or directory"


@pytest.mark.parametrize("name", ["data", "backup_to", "retention_archive"])
def test_a_home_folder_that_no_shell_has_replaced_makes_no_folder_of_this_name(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: only a shell knows what ~ is"):
        load(environ={f"APISERVER_{name.upper()}": "~/folder"})


def test_secrets_are_masked() -> None:
    shown = masked(Settings(admin_key="key", admin_secret="hunter2", token_secret=""))
    assert shown["admin_key"] == "key"
    assert shown["admin_secret"] == "********"
    assert shown["token_secret"] == ""
    assert "hunter2" not in str(shown)
    assert "hunter2" not in repr(Settings(admin_secret="hunter2"))


def test_secrets_in_addresses_are_masked() -> None:
    settings = Settings(events="elasticsearch://me:hunter2@es", documents="mongodb://me:hunter2@mongo/db")
    assert masked(settings)["events"] == "elasticsearch://me:********@es"
    assert "hunter2" not in repr(settings)


def test_each_setting_is_documented_with_its_default() -> None:
    rows = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text("utf-8").splitlines()
    for item in setting_fields():
        default = shown(item.default)
        assert f"| `{item.name}` | {f'`{default}`' if default else 'empty'} | {item.metadata['help']} |" in rows
