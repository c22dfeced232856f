"""What workers, queues and containers reported over time, beside the tasks' own events."""
