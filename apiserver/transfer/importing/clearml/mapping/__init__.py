"""Converts documents of ClearML's server to ours, with one pure function for each kind.

The functions take JSON, in which times are text as `times.utc_now` writes it. They raise KeyError, TypeError or
ValueError for a document that cannot be converted.
"""
