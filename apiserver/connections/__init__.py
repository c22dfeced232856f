"""Limits on HTTP connections: how many there are, how large their requests are, and how slow their clients may be.

uvicorn's protocol parses requests and runs the application. `protocol.py` feeds it one message at a time and leaves the
rest in the socket; `framing.py` finds where a message ends. `slots.py` limits the number of connections. Once a second
it checks them all, and closes those that keep the server waiting for longer than `bounds.py` allows.
"""
