"""What a browser lets the pages do, said in headers.

The pages run only scripts of this server, speak only with this server, and cannot be shown in pages of others. Text
cannot become markup by accident (Trusted Types). Figures and HTML of runs are drawn in a frame, whose document has no
origin of its own: it has no cookie, and reaches neither the API nor the page around it.
"""

from __future__ import annotations

Headers = list[tuple[bytes, bytes]]

#: Of every answer: browsers must not guess another type, and tell other sites nothing of the address.
COMMON: Headers = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]

#: A page. Files that runs reported come by `/data/file`, so it needs no other host for them.
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    b"media-src 'self' blob: data:; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; "
    b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

#: The document that draws figures. Libraries that draw set styles and make markup, which is why it is kept apart.
FRAME_POLICY = (
    b"sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    b"img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; form-action 'none'; "
    b"base-uri 'none'; frame-ancestors 'self'"
)

#: The document that becomes an HTML report of a run. Reports are pages with scripts inside (Bokeh's, plotly.py's), and
#: would be blank without them. So the scripts run, but without an origin, a network, forms and pop-ups. `frame-src` of
#: the page around it keeps the frame from going to other hosts. Not even scripts of this server are for it: its own one
#: is inside.
PAPER_POLICY = (
    b"sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    b"style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; "
    b"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

#: To whom these two documents may connect at all, in `Connection-Allowlist` (Chromium from 152). Their policies above
#: know nothing of WebRTC, and of the connections that a browser opens ahead, before it refuses what they are for.
FRAME_CONNECTIONS = b"(response-origin);webrtc=block"
PAPER_CONNECTIONS = b"();webrtc=block"

#: A page without scripts and pictures, which says why there are no others.
BARE_POLICY = b"default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
