CREATE TABLE receipts (
    client_action_id TEXT PRIMARY KEY NOT NULL,
    session_id       TEXT,
    operation_id     TEXT NOT NULL,
    fingerprint      TEXT NOT NULL,
    caller           TEXT NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('queued', 'in_flight', 'applied', 'rejected', 'outcome_unknown')),
    code             TEXT,
    detail           TEXT,
    input_json       TEXT NOT NULL,
    result_json      TEXT,
    created_at_ms    INTEGER NOT NULL,
    updated_at_ms    INTEGER NOT NULL
) STRICT;

-- The open receipts are few among very many: a start reads these alone.
CREATE INDEX receipts_open ON receipts (state) WHERE state IN ('queued', 'in_flight');

CREATE TABLE receipt_steps (
    client_action_id TEXT NOT NULL REFERENCES receipts (client_action_id),
    ordinal          INTEGER NOT NULL,
    name             TEXT NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('intent', 'done', 'failed', 'unknown', 'not_sent')),
    code             TEXT,
    detail           TEXT,
    PRIMARY KEY (client_action_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    session_id        TEXT PRIMARY KEY NOT NULL,
    workspace         TEXT NOT NULL,
    title             TEXT,
    origin            TEXT NOT NULL CHECK (origin IN ('created', 'attached', 'forked')),
    parent_session_id TEXT,
    baseline_event_id TEXT,
    created_at_ms     INTEGER NOT NULL,
    closed_at_ms      INTEGER
) STRICT;

-- INVARIANT I1: the primary key lets an action's accept be recorded, and so sent, once.
CREATE TABLE sent_accepts (
    session_id    TEXT NOT NULL,
    event_id      TEXT NOT NULL,
    approval_id   TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('sent', 'answered', 'in_doubt')),
    sent_at_ms    INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (session_id, event_id)
) STRICT, WITHOUT ROWID;

-- INVARIANT I2: a token is never stored, only its digest.
CREATE TABLE tokens (
    name          TEXT PRIMARY KEY NOT NULL,
    token_sha256  TEXT NOT NULL UNIQUE CHECK (length(token_sha256) = 64),
    roles         TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT;
