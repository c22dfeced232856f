"""Makes entries of the audit log of requests, when they are answered.

There are three kinds: endpoints that `actions.py` names; sign-ins and calls that are refused (401 and 403), whatever
they ask for; and files that are deleted, exports, and links that are made below `/data`.

A name that somebody tried to sign in as is shown only if there is such a user, and a key only if it looks like one of
this server's: people type passwords into the wrong field.

Refused calls of strangers are counted by nothing that a stranger can choose freely: by the address, one of four ways to
sign in, and the name of a user who exists. The key and the endpoint that a line shows are those of the first call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from apiserver.common.ip_addresses import neighbourhood
from apiserver.operating.audit.actions import ACTIONS, COUNTED
from apiserver.operating.audit.entries import Entry
from apiserver.operating.audit.log import AuditLog
from apiserver.rpc.auth import basic_credentials, noted_caller
from apiserver.rpc.call import ANONYMOUS, Identity
from apiserver.rpc.envelope import Meta

_REFUSED = (401, 403)
#: Types of answers of `/data` that are files to take away: pages do not ask for them.
_EXPORTS = ("text/csv", "application/x-ndjson", "application/vnd.apache.")
#: Ways to sign in by an Authorization header, as lines name them. Without one it is `cookie`; all else is `other`.
_SCHEMES = ("basic", "bearer")
_OUR_KEY = re.compile(r"[0-9A-F]{20}")
#: The beginnings of the keys of sessions that began without an access key. The first word says how they began.
_WITHOUT_KEY = ("password-", "provider-", "proxy-")


class RequestAudit:
    """Tells the log of requests."""

    endpoints = ACTIONS.keys()
    """Endpoints whose calls are told of, however they are answered."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def call(self, scope: Scope, headers: Mapping[str, str], meta: Meta, status: int) -> None:
        """A call of an endpoint was answered."""
        heard = meta.heard
        name = heard.tried if heard is not None else ""
        if status in _REFUSED:
            self._refused(meta.endpoint, scope, headers, status, meta.caller, name)
        elif heard is not None and meta.caller != ANONYMOUS:
            what = {field: heard.request[field] for field in ACTIONS[meta.endpoint] if heard.request.get(field)}
            self._done(meta.endpoint, scope, status, meta.caller, what)

    def other(self, scope: Scope, status: int, content_type: str) -> None:
        """A request was answered that was not for an endpoint."""
        path, method, caller = scope["path"], scope["method"], noted_caller(scope)
        if status in _REFUSED:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self._refused(f"{method} {path}", scope, headers, status, caller)
        elif caller == ANONYMOUS or status >= 400:
            return
        elif method == "DELETE":
            self._done("files.delete", scope, status, caller, {"file": path})
        elif path == "/data/links":
            self._done("data.link", scope, status, caller, {})
        elif path.startswith("/data/") and content_type.startswith(_EXPORTS):
            entry = _entry("data.export", scope, status, caller, {"address": path})
            self._log.count((caller.user, path), entry)

    def _done(self, action: str, scope: Scope, status: int, caller: Identity, what: Mapping[str, Any]) -> None:
        entry = _entry(action, scope, status, caller, what)
        if action in COUNTED and status == 200:
            self._log.count((action, caller.user, caller.key, entry.address, str(what)), entry)
        else:
            self._log.add(entry)

    def _refused(
        self, asked: str, scope: Scope, headers: Mapping[str, str], status: int, caller: Identity, name: str = ""
    ) -> None:
        kind, _, given = headers.get("authorization", "").strip().partition(" ")
        if status == 401 and not given and "cookie" not in headers:
            return  # nobody tried to sign in
        scheme = kind.lower() if kind.lower() in _SCHEMES else "other" if kind else "cookie"
        is_stranger = caller == ANONYMOUS
        if is_stranger and scheme == "basic":
            key = (basic_credentials(given) or ("",))[0]
            caller = Identity("", "", user_name=name, key=key if _OUR_KEY.fullmatch(key) else None)
        action = "auth.refused" if status == 401 else "call.refused"
        entry = _entry(action, scope, status, caller, {"asked": asked, "by": scheme})
        who = (action, scheme, neighbourhood(entry.address), caller.user_name)
        if is_stranger:
            self._log.count(who, entry, by_stranger=True)
        else:
            self._log.count((*who, caller.user, caller.key), entry)


def _entry(action: str, scope: Scope, status: int, caller: Identity, what: Mapping[str, Any]) -> Entry:
    key = caller.key or ""
    if caller.acted_by:
        what = {"acted_by": caller.acted_by, **what}
    return Entry(
        action,
        status,
        company=caller.company,
        user=caller.user,
        name=caller.user_name,
        key=key.partition("-")[0] if key.startswith(_WITHOUT_KEY) else key,
        address=(scope.get("client") or ("",))[0],
        what=what,
    )
