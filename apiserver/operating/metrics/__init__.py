"""Numbers for Prometheus: counted while the server works (`common/counters.py`), and answered at `/metrics`."""
