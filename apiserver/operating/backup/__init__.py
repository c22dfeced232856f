"""Backups of a data folder, taken while a server uses it.

A backup is a *manifest*: the list of all files, as they are at one moment, and where their contents are. These are in
*pieces*, which backups have in common. So the next backup adds only what has changed. At the destination lie

    manifests/20261124T153000.125Z-<SHA-256 of the manifest>.json
    pieces/3f/3fa1…          each is named by the SHA-256 of its content

A piece holds up to 16 MB of *blocks*, one after another, and says where each begins and what its SHA-256 is:

    events.db, day 1    blocks a b c d    piece 3f: a b c d
    events.db, day 2    blocks a x c d    piece 77: x           manifest: 3f block 0, 77 block 0, 3f blocks 2 and 3

| module | what it does |
|---|---|
| `storage.py`, `folder.py`, `s3.py` | where backups are kept: a folder or a bucket |
| `pieces.py`, `block_index.py` | pieces, and an index of the blocks in them |
| `manifest.py` | manifests, their names, and what is refused in one |
| `moment.py` | the one moment of events, documents and files |
| `making.py` | makes a backup |
| `checking.py`, `forgetting.py` | lists and checks backups; deletes old ones |
| `restoring.py` | makes a data folder of a backup, and reads all of it |
| `rereading.py` | reads what is at the destination again, a little at a time, and remembers what was damaged |
| `scheduled.py`, `schedule.py`, `check_schedule.py` | backups and checks that a server makes by itself |
| `command.py` | runs `apiserver backup` for a server, in a process of its own |
| `progress.py` | says how far the work is, and leaves time to the server |
"""
