-- Where the last good result of a call is in the journal, by the key of the call (SHA-256 of tenant, user, tool and
-- arguments), kept in the transactions that append and erase events.
CREATE TABLE last_results (
    tenant TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    run    TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX last_results_by_run ON last_results (run);
CREATE INDEX last_results_by_time ON last_results (at);
