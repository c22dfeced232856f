"""People whom a proxy has signed in: it names them in a header of each request.

The setting `proxy_user_header` names the header. Connections take it from all requests that do not come from one of
`trusted_proxies` (`http/protocol.py`), so what is left of it is true. It counts before the cookie: who signs in
at the proxy as somebody else is somebody else here. No session begins, so none outlasts that of the proxy.
"""

from __future__ import annotations

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.auth import OfProxy
from apiserver.rpc.call import Identity
from apiserver.services.access.identities import remembered
from apiserver.services.access.oidc.people import user_of_proxy
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore

_LONGEST_NAME = 200


def of_proxy(documents: DocumentStore, settings: Settings) -> OfProxy:
    """A coroutine function that returns the user of what the header says.

    It raises Refusal(NO_CREDENTIALS) if that is no name, Refusal(FORBIDDEN) if they may not come in.
    """

    async def user(said: str) -> Identity:
        name = _name(said)
        found: Identity = await remembered(documents, ("proxy", name), lambda: user_of_proxy(documents, settings, name))
        return found

    return user


def _name(said: str) -> str:
    """The name in the header. Two headers, of which a client may have sent one, arrive as one with a comma."""
    try:
        name = said.encode("latin-1").decode()
    except UnicodeError:
        name = ""
    if not name.isprintable() or "," in name or not 0 < len(name) <= _LONGEST_NAME:
        raise Refusal(Why.NO_CREDENTIALS, "Unauthorized (the proxy names nobody, or more than one)")
    return name
