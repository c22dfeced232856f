"""What a role allows: who may call which endpoint, and who may act for whom.

Admins may do everything in their company; users everything but `ADMINS_ONLY`, and guests only read: the schema says
which endpoints do. The login page is the web UI where a name is enough to log in: with the key that every copy of it
has, it lists and adds users, and logs them in. What of a thing is whose (one's own access keys, say) is its endpoint's
business.
"""

from __future__ import annotations

from apiserver.rpc.call import Identity
from apiserver.rpc.errors import role_not_allowed
from apiserver.services.backend import Call

ADMIN, USER, GUEST, LOGIN_PAGE = "admin", "user", "guest", "login page"
#: Those that users are given; the others are the server's own.
GIVEN = (ADMIN, USER)

ADMINS_ONLY = frozenset(
    {
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
#: What any role may do: log in and out, and ask how.
ANYONES = frozenset(
    {
        "auth.fixed_users_mode",
        "auth.login",
        "auth.logout",
        "debug.ping",
        "login.logout",
        "login.supported_modes",
    }
)
LOGIN_PAGES = frozenset({"auth.create_user", "users.get_all"})


def check(caller: Identity, endpoint: str, *, reads: bool) -> None:
    """403/20 when the caller's role does not allow the endpoint; `reads`: whether that changes nothing."""
    if not _allows(caller.role, endpoint, reads):
        raise role_not_allowed(caller.role, endpoint)


def _allows(role: str, endpoint: str, reads: bool) -> bool:
    if role == ADMIN:
        return True
    if role == USER:
        return endpoint not in ADMINS_ONLY
    if role == GUEST:
        return endpoint in ANYONES or (reads and endpoint not in ADMINS_ONLY)
    return role == LOGIN_PAGE and (endpoint in ANYONES or endpoint in LOGIN_PAGES)


def may_become(caller: Identity, other: Identity) -> bool:
    """Whether the caller may act for another user: admins for all of their company, the login page for its users."""
    if caller.company != other.company:
        return False
    return caller.role == ADMIN or (caller.role == LOGIN_PAGE and other.role == USER)


def is_admin(call: Call) -> bool:
    return call.identity.role == ADMIN
