-- Collections are tables that the store makes as they are first named (`sqlite/table.py`). The number says whose file it is.
PRAGMA application_id = 1163281491;

-- Which side tables there are ("side:<number>"), of which collection, what they hold, and in which state they are:
-- 'filling', 'ready', or 'large' when there was too much to keep, so that there is no table (`sqlite/side_tables.py`).
CREATE TABLE "side:tables" (
    number INTEGER PRIMARY KEY,
    collection NOT NULL,
    holds NOT NULL,
    state NOT NULL,
    UNIQUE (collection, holds)
);
