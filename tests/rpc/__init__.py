"""The wire protocol, tested with tiny applications."""
