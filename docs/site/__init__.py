"""Builds the documentation site: `python -m docs.site`, which `make docs` runs.

The pages are the Markdown files below `docs/`. `pages` puts them into one folder, and Zensical turns that into HTML.
"""
