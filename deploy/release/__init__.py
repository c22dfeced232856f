"""Builds a release: wheel, source distribution, the accelerator's wheel, and what says what is in them.

A release is made of one commit and the pages that `make viewer` built. The same commit, pages, Python and compiler make
the same bytes, so that anybody can check that a release is what it says.
"""
