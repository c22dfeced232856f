"""Runs in tables of any program: their files become batches of columns, sorted rows, and points of each run."""
