-- `sizes` says how much each worker logged in a block (a msgpack list of [worker, first timestamp, bytes]), so that
-- nobody has to read the lines for it. Blocks of older versions, until they are written anew, have none.
ALTER TABLE log_blocks ADD COLUMN sizes BLOB;
CREATE INDEX log_sizes ON log_blocks (owner, sizes);
