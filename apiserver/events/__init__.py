"""The domain: what an event is, and how a request body becomes validated columns."""
