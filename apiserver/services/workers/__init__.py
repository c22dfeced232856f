"""workers.*: the agents that run tasks."""
