"""Events in Elasticsearch, for any number of servers at once. Nothing is kept in the server but caches."""
