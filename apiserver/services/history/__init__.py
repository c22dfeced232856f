"""The history of workers, queues and containers: the values that they reported over time."""
