"""queues.*: queues of tasks that wait for a worker."""
