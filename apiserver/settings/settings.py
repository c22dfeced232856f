"""Every setting of the server, with its name, type, default and meaning."""

from __future__ import annotations

import json
from dataclasses import Field, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from apiserver.common.ip_addresses import Network
from apiserver.settings import engine_addresses as addresses
from apiserver.settings.retention_rules import RetentionRule
from apiserver.settings.values import Domain, FixedUser, GroupRole, Quota

ENVIRONMENT_PREFIX = "APISERVER_"
#: What `events` and `documents` are for stores in the data folder, instead of an address.
EMBEDDED = "embedded"


class SettingsError(ValueError):
    """A setting is unknown, or its value cannot be used; the message names the setting and where it was given."""


def _setting(default: Any, help: str, **limits: Any) -> Any:
    """A field of Settings.

    `limits`: `min`, `max`, `min_length`, `filled` (not empty), `web` (an address of http or https), `choices`,
    `secret`, `address` (may hold a secret).
    """
    shown = not (limits.get("secret") or limits.get("address"))
    return field(default=default, repr=shown, metadata={"help": help, **limits})


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings of one server."""

    host: str = _setting("127.0.0.1", "address to listen on", filled=True)
    port: int = _setting(8008, "port of the API, which also serves the files under /files", min=0, max=65535)
    files_port: int = _setting(
        8081, "port of the file server; 0: the API alone serves the files, under /files", min=0, max=65535
    )
    tls_cert: str = _setting(
        "", "file of a certificate and its chain (PEM), with which both ports speak TLS; empty: they speak plain HTTP"
    )
    tls_key: str = _setting("", "file of the key of `tls_cert` (PEM, without a password)")
    data: Path = _setting(Path("data"), "data folder, for the embedded stores, files and secrets")  # noqa: RUF009
    events: str = _setting(
        EMBEDDED,
        "where events are kept: embedded, or elasticsearch://[user[:password]@]host[:9200][,host…][/prefix][?…]",
        address=True,
    )
    events_password: str = _setting("", "password of the user that `events` names", secret=True)
    events_api_key: str = _setting("", "API key for Elasticsearch, in place of user and password", secret=True)
    documents: str = _setting(
        EMBEDDED,
        "where documents are kept: embedded, or mongodb://[user[:password]@]host[:27017][,host…]/database[?…]",
        address=True,
    )
    documents_password: str = _setting("", "password of the user that `documents` names", secret=True)
    consistency: str = _setting(
        "session",
        "what a server on Elasticsearch reads; session: its own events at once, those of other servers "
        "within a second; strict: all events at once",
        choices=("session", "strict"),
    )
    migrate_at_start: bool = _setting(
        False, "whether a server that starts brings the schemas of the engines up to date"
    )
    workers: int = _setting(
        1, "number of processes that serve; more than one needs both Elasticsearch and MongoDB", min=1, max=256
    )
    company: str = _setting("d1e5c0a8f00d4e0ab1e0c0ffee000001", "id of the default company", filled=True)
    admin_key: str = _setting(
        "", "access key of the admin, at least 8 characters; if it is empty, the first start makes one", min_length=8
    )
    admin_secret: str = _setting(
        "",
        "secret of the admin's access key, at least 16 characters; if it is empty, the first start makes one",
        secret=True,
        min_length=16,
    )
    metrics_token: str = _setting(
        "",
        "token, at least 16 characters, with which Prometheus may read /metrics; if it is empty, only admins may",
        secret=True,
        min_length=16,
    )
    token_secret: str = _setting(
        "",
        "secret that signs tokens, at least 32 characters; if it is empty, the first start makes one",
        secret=True,
        min_length=32,
    )
    token_lifetime: int = _setting(
        30 * 86400, "seconds that a token is valid, unless its request asks for another time", min=3600, max=365 * 86400
    )
    token_renewal_days: int = _setting(
        90,
        "days after a login in which its tokens can get further tokens; afterwards one has to log in again",
        min=1,
        max=36500,
    )
    login: str = _setting(
        "password",
        "what the web UI asks for; password: an access key and its secret, or a name and its password; "
        "simple: a name only, so that whoever reaches the server is a user",
        choices=("password", "simple"),
    )
    users: tuple[FixedUser, ...] = _setting((), "users with passwords, as the guide on users says")
    oidc_issuer: str = _setting(
        "",
        "address of a provider of OpenID Connect where people sign in, such as https://id.example.org/realms/lab; see "
        "the guide on users",
        web=True,
    )
    oidc_client_id: str = _setting("", "id that the provider knows this server by")
    oidc_client_secret: str = _setting("", "secret that the provider gave this server, if it gave one", secret=True)
    oidc_name: str = _setting("single sign-on", "what the sign-in page calls the provider", filled=True)
    oidc_scopes: str = _setting("openid email profile", "scopes that the provider is asked for, with spaces between")
    oidc_groups_claim: str = _setting(
        "groups", "claim that lists a person's groups; of a claim in another one the path, such as realm_access.roles"
    )
    oidc_groups: tuple[GroupRole, ...] = _setting(
        (), "which groups of the provider may sign in, and as what; if it is empty, everybody may, as a user"
    )
    oidc_email_domains: tuple[Domain, ...] = _setting(
        (), "only people with a verified e-mail address in one of these domains may sign in; if it is empty, all may"
    )
    oidc_session_seconds: int = _setting(
        12 * 3600,
        "seconds after which somebody who signed in at the provider has to do so again",
        min=3600,
        max=365 * 86400,
    )
    oidc_sign_out: bool = _setting(True, "whether signing out here also signs out at the provider")
    proxy_user_header: str = _setting(
        "",
        "header in which one of `trusted_proxies` says who has signed in there, such as X-Forwarded-User; it is taken "
        "from all other requests",
    )
    proxy_sign_out: str = _setting(
        "", "where pages go to sign out at that proxy: a path, such as /oauth2/sign_out, or an address"
    )
    sign_up: bool = _setting(
        True, "whether somebody who comes by way of the provider or the proxy for the first time becomes a user"
    )
    guest: bool = _setting(False, "whether anybody may log in as a guest, who may only read")
    viewer: bool = _setting(True, "whether browsers get pages, which show what runs report")
    web_url: str = _setting(
        "",
        "address of another web UI, such as http://ui.example.org:8080, in place of these pages: the SDK prints links "
        "to it, and browsers that ask for a page here are sent there",
        web=True,
    )
    allowed_origins: tuple[str, ...] = _setting(
        (), "web origins that may call the API from a browser, such as http://ui.example.org:8080"
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        (),
        "addresses and networks of proxies in front of the server, such as 127.0.0.1,10.0.0.0/8; the "
        "server believes what they say in X-Forwarded-For about the address of a client",
    )
    max_connections: int = _setting(
        0,
        "most connections of a process, on both ports together; beyond it, idle connections are closed "
        "for new ones, or new ones get 503; 0: as many as half of the files that may be open (ulimit "
        "-n), 10000 at most",
        min=0,
    )
    max_connections_per_address: int = _setting(
        2048,
        "most connections from one address, or one IPv6 network of 64 bits; connections of proxies are not counted",
        min=1,
    )
    max_body_bytes: int = _setting(16 * 2**20, "most bytes of a request body, after decompression", min=2**20)
    max_bytes_in_flight: int = _setting(
        64 * 2**20,
        "most bytes of all request bodies together that are read or handled at a time; one body may "
        "exceed it, others wait and then get 429",
        min=2**20,
    )
    max_upload_bytes: int = _setting(5 * 2**30, "most bytes of an uploaded file; 0: no limit", min=0)
    durability: str = _setting(
        "process",
        "what acknowledged data survives; process: kill -9; fsync: also a power loss",
        choices=("process", "fsync"),
    )
    merge_events: int = _setting(
        262_144,
        "number of events that wait in memory and journal before they are merged; none waits longer than 15 seconds",
        min=1,
    )
    max_unmerged_bytes: int = _setting(
        128 * 2**20, "most bytes of events that wait to be merged; beyond it, new events get 429", min=2**16
    )
    reserve_bytes: int = _setting(
        64 * 2**20,
        "size of a file that keeps room on the disk of the data folder; when the disk is full, deleting "
        "uses that room; 0: no such file",
        min=0,
    )
    scrub_days: int = _setting(
        30,
        "days in which the server reads all events of the data folder once, a little at a time, to find damage; 0: it "
        "never does",
        min=0,
        max=36500,
    )
    max_series_per_task: int = _setting(
        20_000,
        "about how many scalar series, and metrics of plots, images and vectors, a task may have; events "
        "of further ones are refused",
        min=100,
    )
    quotas: tuple[Quota, ...] = _setting(
        (),
        "how many bytes, series and events a second tasks, projects, users and companies may have, as their page says",
    )
    multi_task_limit: int = _setting(100, "most tasks in one call about several tasks", min=1)
    backup_to: str = _setting(
        "",
        "folder or s3://bucket/prefix to which the server by itself backs up the data folder, and what is in engines; "
        "empty: it does not",
    )
    backup_key: str = _setting(
        "",
        "key that signs backups, at least 32 characters, so that no other ones are restored; see the guide on backups",
        secret=True,
        min_length=32,
    )
    backup_every: int = _setting(24, "hours from one backup to the next", min=1, max=8760)
    backup_keep: int = _setting(7, "number of backups that are kept in `backup_to`; older ones are deleted", min=1)
    backup_work: str = _setting(
        "",
        "folder in which a copy of what is in engines stays from one backup to the next, which then reads only what "
        "has changed; empty: each backup makes the copy in the data folder, and deletes it",
    )
    backup_check_every: int = _setting(
        168,
        "hours from one check of what is in `backup_to` to the next; it reads all of it slowly; 0: there are none",
        min=0,
        max=8760,
    )
    retention: tuple[RetentionRule, ...] = _setting(
        (),
        "how long events are kept, by project and type, and which scalars are thinned, as the page on retention says; "
        "empty: for ever",
    )
    retention_every: int = _setting(
        0,
        "hours between two deletions of what `retention` does not keep; 0: only the command "
        "`apiserver retention` deletes it",
        min=0,
        max=8760,
    )
    retention_archive: str = _setting(
        "", "folder to which events are written as Parquet before retention deletes them; empty: they are not"
    )
    history_days: int = _setting(
        60, "days that reports of workers, queues and serving containers are kept, at least", min=1, max=36500
    )
    replaced_files_days: int = _setting(
        7,
        "days that the file of a model stays that an upload of other weights has replaced, if nothing names it; "
        "0: for ever",
        min=0,
        max=36500,
    )
    shutdown_seconds: int = _setting(
        10, "seconds that a server which stops gives to requests under way", min=0, max=86400
    )
    slow_loop_ms: int = _setting(
        200,
        "milliseconds for which one piece of work may keep all others waiting before the log names it; "
        "0: the log never does",
        min=0,
        max=3_600_000,
    )
    audit: str = _setting(
        "file",
        "where the audit log goes, which says who signed in, made keys and users, deleted, published and exported; "
        "file: into the folder audit of the data folder; stdout: to standard output; off: nowhere",
        choices=("file", "stdout", "off"),
    )
    audit_bytes: int = _setting(
        2**30, "most bytes of the audit log in the data folder; beyond it, the oldest lines are deleted", min=64 * 2**20
    )
    traces_to: str = _setting(
        "",
        "address of an OpenTelemetry collector, such as http://127.0.0.1:4318, that gets a trace of each request; "
        "empty: there are no traces",
        web=True,
    )
    traces_trust_clients: bool = _setting(
        False,
        "whether a client's header traceparent decides if its request is sampled; only for a server that no stranger "
        "reaches, because a client can then have each of its requests traced",
    )
    log_level: str = _setting(
        "info",
        "least level of what is logged; debug logs a line for each call of the API",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = _setting(
        "text", "format of the log; text, or json: one JSON object a line", choices=("text", "json")
    )


def setting_fields() -> tuple[Field[Any], ...]:
    """The fields of Settings, in order; `metadata["help"]` describes each."""
    return fields(Settings)


def masked(settings: Settings) -> dict[str, str]:
    """The settings as text, by name, with secrets hidden."""
    return {item.name: _shown(item, getattr(settings, item.name)) for item in setting_fields()}


def changed(settings: Settings) -> dict[str, str]:
    """The settings that differ from their defaults, as text, by name, with secrets hidden."""
    return {name: text for name, text in masked(settings).items() if text != _DEFAULTS[name]}


def _shown(item: Field[Any], value: Any) -> str:
    if item.metadata.get("secret"):
        return "********" if value else ""
    if item.metadata.get("address"):
        return addresses.masked(value)
    if item.name == "users":
        return ",".join(user.name for user in value)
    return shown(value)


def shown(value: object) -> str:
    """A value as text, in the form in which the environment gives it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple) and any(is_dataclass(item) for item in value):
        return json.dumps([asdict(item) for item in value])
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


#: By name, the default of each setting, as text.
_DEFAULTS = masked(Settings())
