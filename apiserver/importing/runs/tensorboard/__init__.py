"""TensorBoard's event files: `files.py` finds runs, `records.py` cuts files into records, `scalars.py` reads those that
hold one scalar many at once, and `events.py` all others."""
