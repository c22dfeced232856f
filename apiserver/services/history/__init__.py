"""The history of workers, queues and containers: what they reported over time."""
