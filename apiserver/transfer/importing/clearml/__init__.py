"""Imports all data of a ClearML server: reads them from its databases or API, converts them, and writes them here.

The sources (`mongodb.py`, `elasticsearch.py`, `api.py`) give pages. `mapping/` converts documents, with one function
for each kind. The stages are `documents.py`, `events.py` and `files.py`. Marks in the target say what was imported, so
that another run continues, and imports what is new.
"""
