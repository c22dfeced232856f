"""Deletes events that no rule of the setting `retention` keeps. Before that, it can write them to an archive.

| module | what it does |
|---|---|
| `due.py` | finds which events of a task and type are due, reads them in parts, and deletes them |
| `thinned.py` | reads which points of series go that are thinned |
| `tables.py` | makes batches of a table of what is due |
| `archive.py` | writes such events to files of Parquet, and says what a run that was cut short left |
| `run.py` | goes over all tasks that are at rest |
| `checks.py` | finds what is wrong with the settings before anything is to be deleted |
| `deleting.py` | does so in a turn, and adds up what was deleted |
| `turns.py` | lets only one server, or command, do so at a time, and remembers the last time |
| `schedule.py` | does so again and again beside a server |

`apiserver/settings/retention_rules.py` has the rules.
"""
