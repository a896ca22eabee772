-- What is known of the deaths of earlier processes, as JSON (`run::recovery::Deaths`): one row, written before
-- anything begins under it.
CREATE TABLE recovery (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    deaths TEXT NOT NULL
) STRICT;
