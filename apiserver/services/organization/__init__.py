"""organization.*: the caller's company as a whole."""
