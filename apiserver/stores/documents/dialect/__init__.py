"""The language of filters, updates and sorts, for every engine: what is valid, and what it means for one document."""
