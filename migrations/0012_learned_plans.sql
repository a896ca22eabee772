-- Plans that succeeded, by the template of their requests: its words, with placeholders for values. Kept from the
-- journal's events, in the same transaction.
CREATE TABLE learned_plans (
    tenant          TEXT    NOT NULL,
    -- SHA-256 of the template, in hex
    template        TEXT    NOT NULL,
    words           TEXT    NOT NULL,
    -- the plan with placeholders, as JSON
    plan            TEXT    NOT NULL,
    -- since it was learned or demoted
    successes       INTEGER NOT NULL,
    failures        INTEGER NOT NULL DEFAULT 0,
    -- how often it was reused
    uses            INTEGER NOT NULL DEFAULT 0,
    users           INTEGER NOT NULL DEFAULT 0,
    -- whether three users said such a request; until then it is erased with each of its conversations
    kept            INTEGER NOT NULL DEFAULT 0,
    -- 'failure', 'definition', 'rating', or NULL
    demoted         TEXT,
    suspended_until INTEGER,
    created         INTEGER NOT NULL,
    seen            INTEGER NOT NULL,
    PRIMARY KEY (tenant, template)
) STRICT, WITHOUT ROWID;

CREATE INDEX learned_plans_by_use ON learned_plans (tenant, kept, seen);

-- Who said a request of the template (SHA-256 of the name, in hex), until it is kept.
CREATE TABLE learned_users (
    tenant   TEXT NOT NULL,
    template TEXT NOT NULL,
    user     TEXT NOT NULL,
    PRIMARY KEY (tenant, template, user)
) STRICT, WITHOUT ROWID;

-- The conversations in which it was said, until it is kept.
CREATE TABLE learned_sources (
    tenant   TEXT NOT NULL,
    session  TEXT NOT NULL,
    template TEXT NOT NULL,
    PRIMARY KEY (tenant, session, template)
) STRICT, WITHOUT ROWID;

CREATE INDEX learned_sources_of_template ON learned_sources (tenant, template);

-- What is deleted from a template, or a template that is deleted, takes these with it.
CREATE TRIGGER learned_plan_deleted AFTER DELETE ON learned_plans BEGIN
    DELETE FROM learned_users WHERE tenant = old.tenant AND template = old.template;
    DELETE FROM learned_sources WHERE tenant = old.tenant AND template = old.template;
END;
