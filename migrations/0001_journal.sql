-- Times are nanoseconds since 1970-01-01T00:00:00Z.

-- Everything that happened, appended before it takes effect.
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

-- What lists of runs show and what writers are checked against; kept from the journal's events, in
-- the same transaction.
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

-- The same for conversations.
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
