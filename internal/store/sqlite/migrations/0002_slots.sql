-- How far each schedule came; the newest moment whose event was accepted.
CREATE TABLE slots (
  schedule TEXT PRIMARY KEY,
  at       INTEGER NOT NULL
) STRICT;
