"""reports.*: pages that people write about tasks."""
