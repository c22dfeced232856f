"""Quotas of the settings: how many events a second, bytes and series a task, project, user or company may have."""
