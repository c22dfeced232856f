"""server.*: the server itself."""
