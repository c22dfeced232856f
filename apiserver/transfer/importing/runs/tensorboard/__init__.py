"""TensorBoard's event files: `files.py` finds runs, `structure.py` says which folders are of one, `run.py` reads one.

`records.py` cuts files into records, `restarts.py` finds what restarts take back, `scalars.py` reads records that hold
one scalar many at once, `events.py` all others, and `times.py` says which times can be believed.
"""
