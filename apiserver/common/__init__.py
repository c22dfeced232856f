"""Of use to every room: times, sizes, texts, work beside the event loop, reasons to refuse a call.

Nothing here knows what the server is for, but for the words of some reasons.
"""
