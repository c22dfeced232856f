"""Golden folders: data folders that older releases made, and what these answered. This release answers the same."""
