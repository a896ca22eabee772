CREATE TABLE journal (
    -- 'run:<run id>', or 'session:<tenant>/<session id>' for what happens to a conversation itself
    stream  TEXT    NOT NULL,
    -- from 1 without gaps within the stream
    seq     INTEGER NOT NULL CHECK (seq > 0),
    session TEXT    NOT NULL,
    tenant  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    -- how many times the stream was taken over
    epoch   INTEGER NOT NULL,
    -- the version of the event format of `body`
    schema  INTEGER NOT NULL,
    -- the event as JSON
    body    TEXT    NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT;
CREATE TABLE runs (
    run      TEXT    NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    -- the first words of the request
    request  TEXT    NOT NULL,
    status   TEXT    NOT NULL,
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_of_tenant ON runs (tenant, created DESC, run DESC);
CREATE INDEX runs_of_session ON runs (tenant, session, created DESC, run DESC);
CREATE INDEX runs_unfinished ON runs (created, run) WHERE status IN ('queued', 'running', 'waiting');
CREATE TABLE sessions (
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    turns    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_tenant ON sessions (tenant, updated DESC, session DESC);
CREATE TABLE api_keys (
    -- the part of the key that is no secret
    id      TEXT    NOT NULL PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    user    TEXT    NOT NULL,
    label   TEXT    NOT NULL,
    -- SHA-256 of the secret part, 32 bytes
    hash    BLOB    NOT NULL CHECK (length(hash) = 32),
    created INTEGER NOT NULL,
    -- when it was revoked; a revoked key stays, so that its id is never another key's
    revoked INTEGER
, no_own_approval INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    key    TEXT NOT NULL,
    -- SHA-256 of the canonical request, in hex
    hash   TEXT NOT NULL,
    run    TEXT NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_of_run ON idempotency (run);
CREATE TABLE erased_usage (
    tenant              TEXT    NOT NULL,
    at                  INTEGER NOT NULL,
    model               TEXT    NOT NULL,
    purpose             TEXT    NOT NULL,
    calls               INTEGER NOT NULL,
    input_tokens        INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    output_tokens       INTEGER NOT NULL,
    cost_nano_usd       INTEGER NOT NULL,
    PRIMARY KEY (tenant, at, model, purpose)
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_costs ON journal (tenant, at) WHERE
    (body GLOB '{"type":"model_replied"*' OR body GLOB '{"type":"model_failed"*'
    OR body GLOB '{"type":"summarised"*' OR body GLOB '{"type":"summary_failed"*');
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
    next_try INTEGER          DEFAULT 0, asked TEXT,
    PRIMARY KEY (run, approval)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_of_tenant ON approvals (tenant, created, run, approval);
CREATE INDEX approvals_open ON approvals (created, run, approval) WHERE state = 'open';
CREATE INDEX approvals_asked ON approvals (decided) WHERE asked IS NOT NULL;
CREATE TABLE vacation_requests (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant          TEXT NOT NULL,
    user            TEXT NOT NULL,
    first_day       TEXT NOT NULL,
    last_day        TEXT NOT NULL,
    note            TEXT,
    requested_at    TEXT NOT NULL,
    -- The call that made it: the same key again finds this row and makes no second one.
    idempotency_key TEXT NOT NULL,
    -- What that call answered, as JSON without the id.
    answer          TEXT NOT NULL,
    -- Null while the request stands. A cancelled one keeps its row.
    cancelled_at    TEXT,
    -- The call that cancelled it.
    cancel_key      TEXT,
    CHECK (first_day <= last_day),
    UNIQUE (tenant, idempotency_key),
    UNIQUE (tenant, cancel_key)
) STRICT;
CREATE INDEX vacation_requests_by_user ON vacation_requests (tenant, user, first_day);
CREATE TABLE vacation_days (
    request INTEGER NOT NULL REFERENCES vacation_requests (id) ON DELETE CASCADE,
    year    INTEGER NOT NULL,
    days    INTEGER NOT NULL CHECK (days > 0),
    PRIMARY KEY (request, year)
) STRICT, WITHOUT ROWID;
CREATE TABLE weather_cities (
    tenant          TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,              -- doing it twice is doing it once
    folded          TEXT NOT NULL,              -- the name as it is compared: no accents, no case
    name            TEXT NOT NULL,
    country         TEXT NOT NULL DEFAULT '',   -- ISO 3166-1, two letters, or empty
    latitude        REAL NOT NULL,              -- degrees north
    longitude       REAL NOT NULL,              -- degrees east
    added_by        TEXT NOT NULL,
    added_at        TEXT NOT NULL,              -- RFC 3339
    PRIMARY KEY (tenant, idempotency_key),
    UNIQUE (tenant, folded, country)
) STRICT;
PRAGMA application_id = 1347571539;
PRAGMA user_version = 6;
