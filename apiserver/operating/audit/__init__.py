"""The audit log: who did what, from where, when, and how it was answered.

It is files of lines in the data folder, `audit/00000001.ndjson` and so on, which only the owner can read. Each line is
a JSON object, and carries the SHA-256 of the line before it. So a line that somebody changes, removes or puts in is
found by `check`, unless all lines after it were made anew, or taken away. Whoever can write the folder can do that. So
keep the last hash, which `apiserver audit --check` prints, or the lines themselves elsewhere, if that matters.

- `entries.py`: what a line says, and how it is written: bounded, and in ASCII.
- `files.py`: appends lines to the files, from any number of processes, and begins a new file when one is full.
- `log.py`: takes entries from a server that has no time to wait, and writes them in a thread.
- `requests.py`: makes entries of requests; `actions.py` says of which, and which of their fields.
- `checking.py` checks the chain, `reading.py` reads lines, the newest first.
"""
