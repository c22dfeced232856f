"""Weights & Biases: `runs.py` finds runs, `folders.py` says which folders are of one, `run.py` reads one.

`log.py` cuts a run's `.wandb` file into records, `messages.py` says what is in them, `history.py` reads the points in
them fast, `axes.py` says at what x they are, and `gathering.py` keeps some together. `config.py` reads parameters,
`console.py` lines, `media.py` media and plots, `files.py` artifacts.
"""
