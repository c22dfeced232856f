"""Tables of rows, and the formats in which they are written."""
