-- Vacation requests of all tenants. Days are local dates, YYYY-MM-DD; moments are UTC.
CREATE TABLE IF NOT EXISTS vacation_requests (
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

CREATE INDEX IF NOT EXISTS vacation_requests_by_user ON vacation_requests (tenant, user, first_day);

-- Working days of a request in each calendar year that it touches, as counted when it was made: a
-- changed calendar does not change what was asked for.
CREATE TABLE IF NOT EXISTS vacation_days (
    request INTEGER NOT NULL REFERENCES vacation_requests (id) ON DELETE CASCADE,
    year    INTEGER NOT NULL,
    days    INTEGER NOT NULL CHECK (days > 0),
    PRIMARY KEY (request, year)
) STRICT, WITHOUT ROWID;
