"""Documents in one SQLite file: the default, for one server process."""
