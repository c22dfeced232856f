"""The tools of the people who run a server: they look at its data, and keep them safe."""
