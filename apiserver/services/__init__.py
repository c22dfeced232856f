"""The services of ClearML's API, a module or folder each.

A handler gets a validated request, calls stores and `reading/`, and returns a plain dict.
"""
