-- Counters: merged_journal (newest journal segment that is wholly in this file), next_sequence (of log lines), next_series.
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO state VALUES ('merged_journal', 0), ('next_sequence', 1), ('next_series', 1);

-- Two places in the journal, each a segment and how many of its records lie before the place; 0 until the next segment
-- with events of the owner is merged. The owner's newest merged record lies just before `changed`. Behind `whole`,
-- nothing of the owner was deleted.
CREATE TABLE owners (
    id INTEGER PRIMARY KEY,
    company TEXT NOT NULL,
    name TEXT NOT NULL,
    is_model INTEGER NOT NULL,
    changed_segment INTEGER NOT NULL DEFAULT 0,
    changed_record INTEGER NOT NULL DEFAULT 0,
    whole_segment INTEGER NOT NULL DEFAULT 0,
    whole_record INTEGER NOT NULL DEFAULT 0,
    UNIQUE (company, name, is_model)
);

-- Owners whose documents may be older than their events.
CREATE TABLE restate (
    company TEXT NOT NULL,
    name TEXT NOT NULL,
    is_model INTEGER NOT NULL,
    PRIMARY KEY (company, name, is_model)
) WITHOUT ROWID;

-- Names of reporting processes, numbered from 0 without gaps; points refer to them.
CREATE TABLE workers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);

CREATE TABLE series (
    owner INTEGER NOT NULL,
    type INTEGER NOT NULL,
    metric TEXT NOT NULL,
    variant TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (owner, type, metric, variant)
) WITHOUT ROWID;

-- What is known of a scalar series: how many chunk ids were given, the last iteration in chunks, the points in the tail
-- and the ids of their runs, stats.
CREATE TABLE scalars (
    series INTEGER PRIMARY KEY,
    chunks INTEGER NOT NULL,
    chunk_end INTEGER,
    tail INTEGER NOT NULL,
    runs BLOB NOT NULL,
    stats BLOB NOT NULL
);

-- A chunk's id is series << 24 | number. Chunks of a series are disjoint in iterations. A sealed chunk has up to 16,384
-- points in few bytes. The others are sealed in time, so they have an index.
CREATE TABLE chunk_index (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    shift INTEGER NOT NULL,
    stats BLOB NOT NULL,
    blocks BLOB NOT NULL,
    sealed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX chunk_order ON chunk_index (series, last, first, count, shift);
CREATE INDEX unsealed_chunks ON chunk_index (series, last, count) WHERE sealed = 0;
CREATE TABLE chunk_curves (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE chunk_details (id INTEGER PRIMARY KEY, body BLOB NOT NULL);

-- What was found damaged when something had to be written into it. Nobody reads it; it may be saved by hand.
CREATE TABLE damaged_chunks (id INTEGER NOT NULL, count INTEGER NOT NULL, curve BLOB NOT NULL, details BLOB NOT NULL);

-- Runs of points that are not in chunks yet, of several series of one owner. Those of a series lie beyond its last chunk.
-- `live` is how many series list the page, `lengths` (u16) are those of its runs.
CREATE TABLE tail_pages (
    id INTEGER PRIMARY KEY,
    live INTEGER NOT NULL,
    lengths BLOB,
    curve BLOB NOT NULL,
    details BLOB NOT NULL
);

CREATE TABLE log_series (series INTEGER PRIMARY KEY, lines INTEGER NOT NULL);

-- Blocks of an owner are disjoint in (timestamp, sequence). `names` lists the series ids in the block. `sizes` says how
-- much each worker logged in it (a msgpack list of [worker, first timestamp, bytes]), so that nobody has to read the lines
-- for it.
CREATE TABLE log_blocks (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    first_time INTEGER NOT NULL,
    first_sequence INTEGER NOT NULL,
    last_time INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    count INTEGER NOT NULL,
    names BLOB NOT NULL,
    body BLOB NOT NULL,
    sizes BLOB
);
CREATE INDEX log_order ON log_blocks (owner, last_time, last_sequence, first_time, first_sequence, count);
CREATE INDEX log_sizes ON log_blocks (owner, sizes);

CREATE TABLE log_digests (owner INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (owner, digest)) WITHOUT ROWID;

CREATE TABLE samples (
    series INTEGER NOT NULL,
    iter INTEGER NOT NULL,
    key TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    document INTEGER NOT NULL,
    PRIMARY KEY (series, iter, key)
) WITHOUT ROWID;
CREATE TABLE sample_documents (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
