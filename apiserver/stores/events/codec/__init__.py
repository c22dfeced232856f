"""Columns of points and log lines, wherever they are kept: how they are encoded, summed up and read in pages."""
