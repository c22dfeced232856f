"""Every figure that the documentation claims, and the commands that measure it."""
