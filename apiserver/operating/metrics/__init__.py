"""Numbers about the server for Prometheus: counted while it works (`counters.py`), and answered at `/metrics`."""
