"""What it takes to run the server elsewhere, and to release it."""
