"""Who calls and what they may do: users, access keys, passwords, logins and roles.

The handlers are in `services/auth.py`, `services/login.py` and `services/users.py`.
"""
