-- Documents of users. The content of each is a file named after its id: written before the row, removed after it.
CREATE TABLE documents (
    id       TEXT    NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    user     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    -- 'text/plain' or 'text/markdown'
    media    TEXT    NOT NULL,
    bytes    INTEGER NOT NULL,
    -- SHA-256 of the content, in hex
    sha256   TEXT    NOT NULL,
    heading  TEXT,
    language TEXT,
    created  INTEGER NOT NULL,
    -- when it was last uploaded or named by a request
    used     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX documents_by_content ON documents (tenant, user, sha256);
CREATE INDEX documents_by_use ON documents (used);
