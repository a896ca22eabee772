-- Who may ask over the network: a key belongs to a tenant and acts as one user. Of a key's secret only
-- a hash is here.
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
) STRICT, WITHOUT ROWID;

-- Requests that may be sent again without being carried out again, by the name that their client gave
-- them; kept from the journal's `run_queued`, in the same transaction.
CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    key    TEXT NOT NULL,
    -- SHA-256 of the canonical request, in hex
    hash   TEXT NOT NULL,
    run    TEXT NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_of_run ON idempotency (run);

-- What erased conversations had cost: figures without a word of them, so that budgets and reports still
-- hold. By quarters of an hour, which every time zone's days are made of.
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
