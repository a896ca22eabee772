-- What people have decided: who, when, and about which run, without a word of what it was about. It
-- stays where the run is erased. Rows are added, never changed.
CREATE TABLE audit_chain (
    -- from 1, without gaps
    seq      INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    -- the number of the decision's event in the run
    event    INTEGER NOT NULL,
    -- the ordinal of the approval that it decides, and the number of the event that asked for it
    approval INTEGER,
    asked    INTEGER,
    who      TEXT    NOT NULL,
    decision TEXT    NOT NULL,
    -- HMAC-SHA-256 of both events under the run's key
    what     BLOB    NOT NULL,
    -- SHA-256 of the hash of the row before and of this row
    hash     BLOB    NOT NULL
) STRICT;

CREATE INDEX audit_chain_of_run ON audit_chain (run);

-- The random keys under which `what` is made. A key is erased with its run.
CREATE TABLE audit_keys (
    run TEXT NOT NULL PRIMARY KEY,
    key BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_chain_unchanged BEFORE UPDATE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'the record of decisions is not changed'); END;

CREATE TRIGGER audit_chain_undeleted BEFORE DELETE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'the record of decisions is not deleted'); END;
