"""Writes a project of a running server to a folder: points as Parquet, all else as JSON, and files.

`apiserver import export` reads it again. For each task there is a folder `tasks/<id>` with `scalars.parquet`,
`events.ndjson` (log lines, plots, images, vectors) and `task.json`, which is written last. `files` has the files.
"""
