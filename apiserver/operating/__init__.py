"""What those who run a server need: it looks at what is kept, and keeps it safe."""
