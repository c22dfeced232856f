"""Limits on HTTP connections: how many there are, how large their requests are, and how slow their clients may be.

`protocol.py` feeds a parser one message at a time and leaves the rest in the socket. `framing.py` finds where a message
ends. `exchange.py` has the application answer each request. `slots.py` limits the number of connections. Once a second
it checks them all, and closes those that keep the server waiting for longer than `bounds.py` allows.
`tls.py` stands between the socket and `protocol.py` if the server speaks TLS.
"""
