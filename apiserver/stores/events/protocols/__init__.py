"""What every engine of events promises: a protocol a concern. `EventStore` (`base.py`) is all of them together."""
