-- Whether the deletion of a document is decided: it cannot be read or named any more, and its conversations forget it one by one.
ALTER TABLE documents ADD COLUMN deleting INTEGER NOT NULL DEFAULT 0;

-- The same content can be uploaded again meanwhile.
DROP INDEX documents_by_content;
CREATE UNIQUE INDEX documents_by_content ON documents (tenant, user, sha256) WHERE deleting = 0;
CREATE INDEX documents_deleting ON documents (id) WHERE deleting = 1;
