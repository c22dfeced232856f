"""Where documents (tasks, projects, models, queues, users, credentials …) are kept."""
