CREATE TABLE streams (
    session_id     TEXT PRIMARY KEY NOT NULL,
    epoch          INTEGER NOT NULL CHECK (epoch >= 1),
    seq            INTEGER NOT NULL CHECK (seq >= 0),
    first_seq      INTEGER NOT NULL CHECK (first_seq BETWEEN 1 AND seq + 1),
    raised_because TEXT
) STRICT, WITHOUT ROWID;

-- Only the present epoch of a session has rows. Rows below first_seq are emptied but kept, so that an event that
-- is fetched again is known for a repetition.
CREATE TABLE events (
    session_id      TEXT NOT NULL REFERENCES streams (session_id),
    seq             INTEGER NOT NULL CHECK (seq >= 1),
    event_id        TEXT NOT NULL,
    at              TEXT NOT NULL,
    kind            TEXT NOT NULL,
    journaled_at_ms INTEGER NOT NULL,
    payload_json    TEXT NOT NULL,
    UNIQUE (session_id, event_id)
) STRICT;

CREATE UNIQUE INDEX events_by_seq ON events (session_id, seq);
