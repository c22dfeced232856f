"""Weights & Biases: `log.py` cuts a run's `.wandb` file into records, `history.py` reads the points in them fast,
`axes.py` says at what x they are, and `runs.py` makes runs of them, `media.py` media and plots, `files.py` artifacts.
"""
