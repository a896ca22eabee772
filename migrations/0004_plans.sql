-- What lists of plans show beside what `runs` has of their run; kept from the journal's events, in the
-- same transaction.
CREATE TABLE plans (
    run         TEXT    NOT NULL PRIMARY KEY,
    -- the plan's public id
    task        TEXT    NOT NULL,
    -- who asked
    user        TEXT    NOT NULL,
    -- whether only a plan is wanted, which then stays a draft
    only_wanted INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    -- the version in force; 0 as long as none was made
    version     INTEGER NOT NULL,
    -- when status or version changed last
    updated     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX plans_of_task ON plans (task);

-- What was put to people, and whether somebody was told of it. All but what was told is kept from the
-- journal's events, in the same transaction.
CREATE TABLE approvals (
    run      TEXT    NOT NULL,
    -- its ordinal in the run, from 1
    approval INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    -- 'plan', 'call' or 'outcome'
    about    TEXT    NOT NULL,
    -- the plan's version, or the call's ordinal
    subject  INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    -- 'open', 'decided' or 'lapsed'
    state    TEXT    NOT NULL,
    decided  INTEGER,
    -- when a webhook's receiver had it
    told     INTEGER,
    -- times that it was sent
    attempts INTEGER NOT NULL DEFAULT 0,
    -- when it is sent next; NULL where it is not sent again
    next_try INTEGER          DEFAULT 0,
    PRIMARY KEY (run, approval)
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_of_tenant ON approvals (tenant, created, run, approval);
CREATE INDEX approvals_open ON approvals (created, run, approval) WHERE state = 'open';

-- No program that wrote the schema before this one asked people, edited plans or waited. A body that is
-- damaged is no reason not to open the file: its run is told by its own id.
INSERT INTO plans (run, task, user, only_wanted, status, version, updated)
SELECT run, coalesce(asked ->> 'task', run), coalesce(asked ->> 'user', ''), only_wanted,
    CASE
        WHEN status IN ('failed', 'partial', 'needs_input') THEN 'failed'
        WHEN status = 'cancelled' THEN 'cancelled'
        WHEN only_wanted OR version = 0 AND status <> 'completed' THEN 'draft'
        WHEN status = 'completed' THEN 'completed'
        WHEN EXISTS (SELECT 1 FROM journal
            WHERE stream = 'run:' || run AND body GLOB '{"type":"step_started"*') THEN 'executing'
        ELSE 'approved'
    END,
    version, updated
FROM (
    SELECT run, status, updated, asked, coalesce(asked ->> 'plan_only', 0) AS only_wanted,
        (SELECT count(*) FROM journal WHERE stream = 'run:' || run
            AND (body GLOB '{"type":"plan_created"*' OR body GLOB '{"type":"replanned"*')) AS version
    FROM (
        SELECT run, status, runs.updated AS updated,
            (SELECT CASE WHEN json_valid(body) THEN json_object(
                'task', json_extract(body, '$.task'),
                'user', json_extract(body, '$.user'),
                'plan_only', CASE json_type(body, '$.plan_only') WHEN 'true' THEN 1 ELSE 0 END) END
            FROM journal WHERE stream = 'run:' || run AND seq = 1) AS asked
        FROM runs
    )
);
