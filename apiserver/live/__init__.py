"""Tells readers at once what changes: one look at the stores serves all who watch."""
