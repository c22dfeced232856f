"""One thin module a ClearML service: a validated request in, store or aggregation calls, a plain dict out."""
