"""projects.*: folders of tasks and models."""
