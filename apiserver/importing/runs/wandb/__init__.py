"""Weights & Biases: `log.py` cuts a run's `.wandb` file into records, `history.py` reads the points in them fast, and
`runs.py` makes runs of them."""
