-- Who decided what about which run, for ever: no content, and a hash of each row over the one before it.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    event INTEGER NOT NULL,
    decided_by TEXT NOT NULL,
    decision TEXT NOT NULL,
    mac TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
-- The key of each run's HMACs, erased with the run.
CREATE TABLE audit_keys (run TEXT PRIMARY KEY, key BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the record of decisions is never changed'); END;
CREATE TRIGGER audit_is_not_erased BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the record of decisions is never erased'); END;
