-- Drawn when the file is made: a position names it, so that one of another file is never taken for one of this. Zero where
-- positions were given out before there was one.
CREATE TABLE lineage (
    id     INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    number INTEGER NOT NULL CHECK (number >= 0)
) STRICT;

INSERT INTO lineage
SELECT 1, CASE WHEN EXISTS (SELECT 1 FROM streams) THEN 0 ELSE 1 + (random() & 0x0FFFFFFFFFFFFFFF) END;
