-- Which runs only listed a document, in the question which one is meant: they do not keep it, and its name goes with it.
-- Questions of earlier releases are not here.
CREATE TABLE document_listings (
    document TEXT NOT NULL,
    run      TEXT NOT NULL,
    PRIMARY KEY (document, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX document_listings_by_run ON document_listings (run);
