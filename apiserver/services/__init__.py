"""One thin module a ClearML service: a validated request in, calls of stores and readings, a plain dict out."""
