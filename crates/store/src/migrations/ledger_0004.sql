-- The newest link of each token.
ALTER TABLE tokens ADD COLUMN link INTEGER NOT NULL DEFAULT 0;
