"""Documents in MongoDB, for any number of server processes."""
