"""Every table, curve, log and plot as a URL: anybody who may read a task reads it with curl, pandas or a spreadsheet.

`scalars.py` and its like say what an address answers: a `Table` of typed columns, which is read batch by batch.
`tables/formats/` writes such a table as JSON, CSV, Parquet and so on. `routes.py` stands between the two: it checks the
caller and the parameters, chooses the format, and answers errors.
"""
