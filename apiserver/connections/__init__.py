"""HTTP connections, governed: what one client may ask of the server before any of its requests is known.

uvicorn's protocol parses requests and runs the application. In front of it, `protocol.py` gives the parser one message
at a time, as `framing.py` measures it, and leaves the rest in the socket. `places.py` bounds how many connections there
are, and looks at all of them once a second: who keeps the server waiting for longer than `bounds.py` allows is ended.
"""
