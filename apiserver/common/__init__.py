"""Of use to every room: times, sizes, texts, work beside the event loop. It knows nothing of what the server is for."""
