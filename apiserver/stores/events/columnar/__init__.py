"""One engine of columns for stores to which any number of servers write. So far for scalars; no server uses it yet."""
