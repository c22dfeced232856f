"""MLflow: `experiments.py` makes runs of what a store has, whether it is a folder, an SQLite file or a server."""
