-- A sealed chunk has up to 16,384 points in few bytes. The others are sealed in time, so they have an index.
ALTER TABLE chunk_index ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX unsealed_chunks ON chunk_index (series, last, count) WHERE sealed = 0;
-- What was found damaged when something had to be written into it. Nobody reads it; it may be saved by hand.
CREATE TABLE damaged_chunks (id INTEGER NOT NULL, count INTEGER NOT NULL, curve BLOB NOT NULL, details BLOB NOT NULL);
