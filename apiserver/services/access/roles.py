"""Which endpoints each role may call, and who may act for another user.

Admins may do everything in their company. What belongs to the server itself, such as its settings, only admins of the
server's own company see (`check_owns_server`): the setting `company` names it. Users may do everything but
`ADMINS_ONLY`. Guests may call endpoints that the schema marks as reading. The role "login page" is for a web UI where a
name is enough to log in: it lists users, adds them and logs them in. Rules about single things, such as a user's own
access keys, are in their endpoints.

An access key may allow less than its owner's role does: see `scopes.py`. `check` asks both.
"""

from __future__ import annotations

from apiserver.common.errors import forbidden, not_granted
from apiserver.rpc.call import Identity
from apiserver.services.access import scopes
from apiserver.services.backend import Call
from apiserver.settings.settings import Settings

ADMIN, USER, GUEST, LOGIN_PAGE = "admin", "user", "guest", "login page"
#: The roles that users can have. The others are for the server's own users.
ASSIGNABLE = (ADMIN, USER)

ADMINS_ONLY = frozenset(
    {
        "audit.get",
        "auth.create_user",
        "auth.edit_user",
        "models.make_public",
        "projects.make_public",
        "server.config",
        "server.get_stats",
        "storage.reset_settings",
        "storage.set_settings",
        "tasks.make_public",
        "users.create",
        "users.delete",
    }
)
#: The endpoints that every role may call: log in and out, and ask how to.
FOR_ALL_ROLES = frozenset(
    {
        *("auth.fixed_users_mode", "auth.login", "auth.login_by_link", "auth.logout"),
        *("auth.begin_provider_login", "auth.finish_provider_login"),
        *("debug.ping", "login.logout", "login.supported_modes"),
    }
)
FOR_LOGIN_PAGE = frozenset({"auth.create_user", "users.get_all"})


def check(caller: Identity, endpoint: str, *, reads: bool) -> None:
    """Raises Refusal(NOT_GRANTED) if the caller's role or access key does not allow the endpoint.

    `reads`: whether the endpoint only reads.
    """
    if not _allows(caller.role, endpoint, reads):
        raise not_granted(f"the role {caller.role} does not allow {endpoint}")
    allowed = caller.grant.scopes
    if allowed is not None and endpoint not in FOR_ALL_ROLES and not scopes.allow(allowed, endpoint, reads=reads):
        raise not_granted(f"an access key for {', '.join(allowed)} does not allow {endpoint}")
    if caller.grant.project is not None and endpoint not in FOR_ALL_ROLES and not scopes.allow_within_project(endpoint):
        raise not_granted(f"an access key that is limited to a project does not allow {endpoint}")


def owns_server(caller: Identity, settings: Settings) -> bool:
    """Whether the caller is of the server's own company."""
    return caller.company == settings.company


def check_owns_server(caller: Identity, settings: Settings) -> None:
    """Raises Refusal(FORBIDDEN) if the caller is not of the server's own company. `check` asks about the role."""
    if not owns_server(caller, settings):
        raise forbidden("it is for admins of the server's own company")


def _allows(role: str, endpoint: str, reads: bool) -> bool:
    if role == ADMIN:
        return True
    if role == USER:
        return endpoint not in ADMINS_ONLY
    if role == GUEST:
        return endpoint in FOR_ALL_ROLES or (reads and endpoint not in ADMINS_ONLY)
    return role == LOGIN_PAGE and (endpoint in FOR_ALL_ROLES or endpoint in FOR_LOGIN_PAGE)


def may_become(caller: Identity, other: Identity) -> bool:
    """Whether the caller may act for `other`: admins for everybody in their company, the login page for people."""
    if caller.company != other.company:
        return False
    return caller.role == ADMIN or (caller.role == LOGIN_PAGE and other.role == USER and not other.service)


def is_admin(call: Call) -> bool:
    return call.identity.role == ADMIN
