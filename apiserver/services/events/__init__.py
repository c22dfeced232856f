"""events.*: scalars, vectors, plots, debug images and logs."""
