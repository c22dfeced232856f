"""Taking over all data of a ClearML server: read as it lies there, mapped document by document, written to our stores.

Sources answer pages (`mongodb.py`, `elasticsearch.py`); `mapping/` has a pure function a kind; `documents.py`,
`events.py` and `files.py` are the stages. What was taken is marked in the target: another run goes on, and takes what
is new.
"""
