"""Reads events, whatever the engine: histograms, pages of events and log lines, walks over plots and images."""
