-- The chain of what was done. A link is never changed and never removed; rowid order is its order, whatever the clock said.
CREATE TABLE audit (
    n      INTEGER PRIMARY KEY NOT NULL CHECK (n >= 1),
    entry  TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32)
) STRICT;

CREATE TRIGGER audit_links_do_not_change BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'a link is never changed'); END;
CREATE TRIGGER audit_links_do_not_go BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'a link is never removed'); END;

-- Only the newest head has a signature: that of an older one would let the links after it be cut off unseen.
CREATE TABLE audit_head (
    id        INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    n         INTEGER NOT NULL CHECK (n >= 1),
    digest    BLOB NOT NULL CHECK (length(digest) = 32),
    signature BLOB NOT NULL
) STRICT;

-- The newest link of each row.
ALTER TABLE receipts ADD COLUMN link INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN link INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sent_accepts ADD COLUMN link INTEGER NOT NULL DEFAULT 0;

-- Who asked for the session's last change, and when; unknown for older rows.
ALTER TABLE sessions ADD COLUMN changed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN changed_at_ms INTEGER NOT NULL DEFAULT 0;
