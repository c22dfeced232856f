"""Examples of the service `auth`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("auth.login", {"expiration_sec": 3600}, {"TOKEN": "token"}),
    Call("auth.validate_token", {"token": "$TOKEN"}),
    Call("auth.fixed_users_mode"),
    Call(
        "auth.create_credentials",
        {"label": "for the nightly job", "scopes": ["read"]},
        {"NEW_KEY": "credentials.access_key"},
    ),
    Call("auth.get_credentials"),
    Call("auth.edit_credentials", {"access_key": "$NEW_KEY", "label": "for the weekly job"}),
    Call("auth.revoke_credentials", {"access_key": "$NEW_KEY"}),
    Call("auth.create_user", {"name": "alice", "email": "alice@example.org", "role": "user"}, {"USER": "id"}),
    Call("auth.edit_user", {"user": "$USER", "role": "admin"}),
    Call("auth.get_token_for_user", {"user": "$USER", "expiration_sec": 60}),
    Call("auth.logout"),
]
