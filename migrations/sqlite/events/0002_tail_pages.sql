-- Runs of points of several series of one owner. `live` is how many series list the page, `lengths` (u16) are those of its
-- runs. A page without them is a run of schema 1: raw points, in `details`.
CREATE TABLE tail_pages (
    id INTEGER PRIMARY KEY,
    live INTEGER NOT NULL,
    lengths BLOB,
    curve BLOB NOT NULL,
    details BLOB NOT NULL
);
INSERT INTO tail_pages SELECT id, 1, NULL, x'', body FROM tail;
DROP TABLE tail;
