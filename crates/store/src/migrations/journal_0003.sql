-- The boot of the machine that wrote last: what it did not get to the disk before a power failure is not known to be missing.
ALTER TABLE lineage ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
