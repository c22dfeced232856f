"""Every setting of the server, once: its name, type, default and meaning.

A setting comes from, in rising order: its default, the configuration file, the environment (`APISERVER_` + its name in
capitals), the command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings of one server."""

    host: str = field(default="127.0.0.1", metadata={"help": "address to listen on"})
    port: int = field(default=8008, metadata={"help": "port of the API (and of the files, under /files)"})
    files_port: int = field(default=8081, metadata={"help": "port of the file server; 0: only under /files of the API"})
    data: Path = field(default=Path("data"), metadata={"help": "data folder of the embedded stores, files and secrets"})
    company: str = field(default="d1e5c0a8f00d4e0ab1e0c0ffee000001", metadata={"help": "id of the default company"})
    admin_key: str = field(default="", metadata={"help": "access key of the admin; made at first start when empty"})
    admin_secret: str = field(default="", metadata={"help": "secret of the admin's access key", "secret": True})
    token_secret: str = field(default="", metadata={"help": "signs tokens; made at first start", "secret": True})
    token_lifetime: int = field(default=30 * 86400, metadata={"help": "seconds a token is valid when not asked otherwise"})
    max_body_bytes: int = field(default=16 * 2**20, metadata={"help": "largest request body, decoded, in bytes"})
    max_upload_bytes: int = field(default=5 * 2**30, metadata={"help": "largest uploaded file in bytes; 0: no limit"})
    durability: str = field(
        default="process",
        metadata={"help": "process: acknowledged events survive kill -9; fsync: power loss too", "choices": ["process", "fsync"]},
    )
    multi_task_limit: int = field(default=100, metadata={"help": "most tasks that one multi-task call may name"})
    log_level: str = field(default="info", metadata={"help": "debug, info, warning or error"})
    log_format: str = field(default="text", metadata={"help": "text or json", "choices": ["text", "json"]})
