"""Golden folders: data folders that releases made, and what these answered. This code answers the same."""
