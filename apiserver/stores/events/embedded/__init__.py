"""The embedded event store: columns in a journal, in memory and in one SQLite file."""
