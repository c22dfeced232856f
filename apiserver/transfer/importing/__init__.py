"""Imports of what others stored: a ClearML server's data (`clearml/`), and runs of other trackers (`runs/`)."""
