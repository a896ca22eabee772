-- Whether a key may not approve what its own user has asked for; it may everything else that its user may.
-- Keys that were made before may.
ALTER TABLE api_keys ADD COLUMN no_own_approval INTEGER NOT NULL DEFAULT 0;
