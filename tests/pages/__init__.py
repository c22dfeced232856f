"""The viewer: how the server serves it, and its pages in a real browser."""
