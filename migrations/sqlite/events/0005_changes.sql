-- Two places in the journal, each a segment and how many of its records lie before the place; 0 until the next segment
-- with events of the owner is merged. The owner's newest merged record lies just before `changed`. Behind `whole`,
-- nothing of the owner was deleted.
ALTER TABLE owners ADD COLUMN changed_segment INTEGER NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN changed_record INTEGER NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN whole_segment INTEGER NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN whole_record INTEGER NOT NULL DEFAULT 0;
