"""Runs of other trackers."""
