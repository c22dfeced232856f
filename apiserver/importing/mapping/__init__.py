"""A document of ClearML's server as ours: a pure function a kind.

What they take is JSON: times are text already, as `times.utc_now` writes them. KeyError, TypeError and ValueError mean
that a document cannot be taken.
"""
