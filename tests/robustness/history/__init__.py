"""Many clients call a server at once. Their calls and the answers are recorded, and checked: could a server that keeps
its promises have answered so?

    python -m tests.robustness.history --minutes 30

Clients call a server, or two on the same engines, at the same time: they send and delete events, change the status of
tasks, put these into a queue and take them out, and read all of that. Meanwhile the server is killed again and again.
Each call is recorded: when it began and ended, and whether it was done, refused, or nobody knows (`operations.py`).
The checks see only the record (`events.py`, `tasks.py`). They are tested with records that are wrong.
"""
