"""serving.*: containers that serve models, and their endpoints."""
