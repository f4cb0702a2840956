-- An event that the stream left out stands behind its place in the server's log: its place is not compared.
ALTER TABLE events ADD COLUMN is_late INTEGER NOT NULL DEFAULT 0 CHECK (is_late IN (0, 1));
