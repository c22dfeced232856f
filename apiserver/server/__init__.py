"""One process: puts the parts together, opens the stores, routes requests, listens, and stops."""
