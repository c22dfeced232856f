"""A self-hosted, ClearML-compatible events server."""

__version__ = "0.1.0"
