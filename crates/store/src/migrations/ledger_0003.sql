-- Counts the daemon's starts. It begins anywhere, so that a ledger that takes the place of a lost one hardly counts the same again.
CREATE TABLE daemon_starts (
    id     INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    number INTEGER NOT NULL CHECK (number >= 0)
) STRICT;

INSERT INTO daemon_starts VALUES (1, random() & 0x3FFFFF);
