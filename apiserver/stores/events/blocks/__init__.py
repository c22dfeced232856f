"""One engine of columns for stores to which any number of servers write: points of scalars, and log lines."""
