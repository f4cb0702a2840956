-- The request that a receipt was made for; unknown for older ones.
ALTER TABLE receipts ADD COLUMN request_id TEXT;
