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

-- Which runs named a document, or answer a question of one that did; kept in the transactions that append and erase
-- events.
CREATE TABLE document_uses (
    document TEXT NOT NULL,
    run      TEXT NOT NULL,
    PRIMARY KEY (document, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX document_uses_by_run ON document_uses (run);
