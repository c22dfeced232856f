"""The server's side of the viewer: serves the pages that are built from the folder `viewer` of the sources.

`addresses` says which requests are for pages, `built` reads what was built, `headers` says what a browser lets the
pages do, and `server` answers. The pages themselves ask the API and `/data`, as any other client does.
"""
