"""Reading, whatever the engine: buckets, cursors, walks over plots and images, pages of events and log lines."""
