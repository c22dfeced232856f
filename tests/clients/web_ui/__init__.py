"""The web UI's side of its conversation with the server."""
