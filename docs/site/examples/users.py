"""Examples of the service `users`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("users.get_current_user", {}, {"COMPANY": "user.company.id"}),
    Call("users.create", {"id": "0123456789abcdef0123456789abcdef", "company": "$COMPANY", "name": "bob"}),
    Call("users.get_by_id", {"user": "0123456789abcdef0123456789abcdef"}),
    Call("users.get_all", {"only_fields": ["name", "role"], "order_by": ["name"]}),
    Call("users.get_all_ex", {"only_fields": ["name"], "page": 0, "page_size": 10}),
    Call("users.update", {"user": "0123456789abcdef0123456789abcdef", "given_name": "Bob"}),
    Call("users.set_preferences", {"preferences": {"theme": "dark"}}),
    Call("users.get_preferences"),
    Call("users.get_sessions"),
    Call("users.end_sessions", {"user": "0123456789abcdef0123456789abcdef", "all": True}),
    Call("users.delete", {"user": "0123456789abcdef0123456789abcdef"}),
]
