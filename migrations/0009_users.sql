-- What a key is for, and until when. Keys that were made before did what an approver does.
ALTER TABLE api_keys ADD COLUMN role TEXT NOT NULL DEFAULT 'approver';
ALTER TABLE api_keys ADD COLUMN expires INTEGER;
-- Whether the role was given by this migration and nobody has set it since.
ALTER TABLE api_keys ADD COLUMN role_migrated INTEGER NOT NULL DEFAULT 1;

-- Whose a conversation is: the user of its first request. It outlives that request's run.
CREATE TABLE session_owners (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    user    TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_owners_of_user ON session_owners (tenant, user);

INSERT OR IGNORE INTO session_owners (tenant, session, user)
SELECT tenant, session, user FROM runs JOIN plans USING (run) ORDER BY created, run;
-- Where every run was erased nobody can tell whose it was: it is nobody's.
INSERT OR IGNORE INTO session_owners (tenant, session, user) SELECT tenant, session, '' FROM sessions;

-- A run's row in `runs` is written before that in `plans`, in the same transaction.
CREATE TRIGGER session_owned AFTER INSERT ON plans BEGIN
    INSERT OR IGNORE INTO session_owners (tenant, session, user)
    SELECT tenant, session, new.user FROM runs WHERE run = new.run;
END;

CREATE INDEX plans_of_user ON plans (user, run);

-- The names of requests are each user's own. A name that words gave which decided about a run is whose the
-- words were; any other is whose the run is.
CREATE TABLE idempotency_of_users (
    tenant TEXT NOT NULL,
    user   TEXT NOT NULL,
    key    TEXT NOT NULL,
    -- SHA-256 of the canonical request, in hex
    hash   TEXT NOT NULL,
    run    TEXT NOT NULL,
    PRIMARY KEY (tenant, user, key)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO idempotency_of_users (tenant, user, key, hash, run)
SELECT tenant,
    coalesce(
        (SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.by') END FROM journal
            WHERE stream = 'run:' || idempotency.run AND body GLOB '{"type":"decided"*'
            AND CASE WHEN json_valid(body) THEN json_extract(body, '$.word.idempotency.key') END = key LIMIT 1),
        (SELECT user FROM plans WHERE plans.run = idempotency.run),
        ''),
    key, hash, run
FROM idempotency;

DROP TABLE idempotency;
ALTER TABLE idempotency_of_users RENAME TO idempotency;
CREATE INDEX idempotency_of_run ON idempotency (run);
