"""Where data is kept: events, documents and files, each behind one protocol."""
