"""Who calls and what they may do: users, their access keys, passwords and logins, and what roles allow.

`auth.py`, `login.py` and `users.py` beside it are the handlers.
"""
