"""Uploaded files — artifacts, models, debug images — on disk."""
